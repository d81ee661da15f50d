"""Neuron alignment: the share of a layer's neurons that stand for the same class in two models.

    a neuron's class = argmax_c sum_i o(x_{c,i})

with o(x) its activation and x_{c,1}, x_{c,2}, ... as many test samples of each class c (Lee et al. 2022,
FedNTD, section 5.1, Table 2 and Equation 19; they give the last two layers). The model that the clients of
the last merge received is compared with what each of them trained ("trained") and with what was merged of
it ("global"). A convolution's channel is one neuron, its activation summed over positions: the paper speaks
of layers without any. Of classes that are level, as for a neuron that is never active, the first one
counts.

Layers are those that the model names, the features that the head gets, and the logits. All layers together
are their mean.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from pydantic import Field

from edgefl.core.arrays import Ints
from edgefl.measures import Measure
from edgefl.measures._layers import activations, layer_names
from edgefl.measures._over_clients import over_clients
from edgefl.protocol import Net, Observation, Predictor, Row


class Params(Measure):
    NEEDS = ("global model", "participants")
    UNIT = "share"

    samples: int = Field(50, gt=0, description="Test samples of each class at most.")

    def measure(self, seen: Observation) -> Iterator[Row]:
        places = seen.balanced(self.samples)
        started: dict[int, dict[str, Ints]] = {}

        def classes(predictor: Predictor, net: Net = seen.net) -> dict[str, Ints]:
            return _classes(seen, net, predictor, places)

        each: dict[str, dict[int, float]] = {}
        for one in seen.participants:
            if id(one.start) not in started:
                started[id(one.start)] = classes(one.start, one.net)
            found = _alike(started[id(one.start)], classes(one.trained, one.net))
            for name, share in found.items():
                each.setdefault(name, {})[one.client] = share
        for name, shares in each.items():
            yield from over_clients(shares, model="trained", label=name)
        if seen.before is not None:
            before = started.get(id(seen.before)) or classes(seen.before)
            merged = _alike(before, classes(seen.model))
            yield from (Row(share, label=name) for name, share in merged.items())


def _classes(seen: Observation, net: Net, predictor: Predictor, places: Ints) -> dict[str, Ints]:
    """The class of each neuron (neurons,), by layer; none where the weights are not the net's."""
    if not predictor.has_layers(net):
        return {}
    labels = torch.from_numpy(seen.labels[places])
    found = {}
    for name in layer_names(net):
        active = activations(seen, net, predictor, name, places).to(torch.float64)
        active = active.flatten(2).sum(dim=-1) if active.dim() > 2 else active  # noqa: PLR2004 - (n, neurons, ...)
        sums = active.new_zeros(seen.classes, active.shape[1]).index_add_(0, labels, active)
        # A class without test samples is no neuron's.
        sums[torch.bincount(labels, minlength=seen.classes) == 0] = -torch.inf
        found[name] = sums.argmax(dim=0).numpy()
    return found


def _alike(one: Mapping[str, Ints], other: Mapping[str, Ints]) -> dict[str, float]:
    """The share of neurons of one class in both models, by layer, and under "" the mean over layers."""
    shares = {name: float((one[name] == other[name]).mean()) for name in one if name in other}
    return {**shares, "": float(np.mean(list(shares.values())))} if shares else {}
