"""Weight divergence: how far training takes clients from the model that they received.

    D_k = ||w - w_k||_1   and beside it   ||A_G - p_k||_1,   A_G = (A_1, ..., A_C) / sum_c A_c

with w the model that client k received, w_k what it trained of it, A_c the accuracy of w on class c, and
p_k the shares of classes in client k's training data (Lee et al. 2022, FedNTD, section 5.2 and Figure 8).
The paper's text divides the accuracies of classes by the overall accuracy, so that they sum to about C;
only with a sum of 1 they compare with p_k.

The parts that clients send count, without running statistics, over the clients of the last merge; of a
single layer there is the mean over them.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import torch

from edgefl.measures import Measure
from edgefl.measures._layers import layer_of
from edgefl.measures._over_clients import means, over_clients
from edgefl.protocol import Observation, Participant, Row


class Params(Measure):
    NEEDS = ("participants",)

    def measure(self, seen: Observation) -> Iterator[Row]:
        moved = {one.client: _by_layer(one) for one in seen.participants if one.sent}
        total = {client: sum(layers.values()) for client, layers in moved.items()}
        yield from over_clients(total, model="trained")
        for name, value in means(moved.values()).items():
            yield Row(value, model="trained", label=name)
        if seen.global_model is not None:
            apart = {one.client: _distance(seen, one) for one in seen.participants}
            yield from over_clients(apart, "distribution", model="trained")


def _by_layer(one: Participant) -> dict[str, float]:
    """The L1 norm of a client's change by layer."""
    found = defaultdict[str, float](float)
    for part in one.sent:
        for name, before in one.start.weights[part].items():
            after = one.trained.weights[part][name]
            found[layer_of(part, name)] += float((after - before).to(torch.float64).abs().sum())
    return dict(found)


def _distance(seen: Observation, one: Participant) -> float:
    accuracy = np.nan_to_num(seen.class_accuracies(one.start))
    shares = seen.class_shares([one.client])
    total = accuracy.sum()
    return float(np.abs(accuracy / total - shares).sum()) if total else float("nan")
