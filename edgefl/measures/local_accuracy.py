"""In-local and out-local accuracy: on the classes that a client has, and on those that it lacks.

    in_k = sum_c p_kc A_c        out_k = sum_c q_kc A_c        q_kc = (1 - p_kc) / (C - 1)

with p_kc = n_kc / n_k the share of class c in client k's training data and A_c the accuracy on the test
samples of class c (Lee et al. 2022, FedNTD, Definition 1). "trained" is what each client of the last merge
trained, before the merge, with the mean and the standard deviation (n) over them; "global" is the global
model, with p the shares of all those clients' data together. Classes without test samples count for
nothing, and the weights of the others are scaled to a sum of 1.
"""

from collections.abc import Iterator

from edgefl.measures import Measure
from edgefl.measures._distributions import in_and_out
from edgefl.measures._over_clients import over_clients
from edgefl.protocol import Observation, Row

_IN, _OUT = "in-local", "out-local"


class Params(Measure):
    NEEDS = ("participants",)
    UNIT = "share"

    def measure(self, seen: Observation) -> Iterator[Row]:
        found: dict[str, dict[int, float]] = {_IN: {}, _OUT: {}}
        for one in seen.participants:
            accuracy = seen.class_accuracies(one.trained)
            both = in_and_out(seen.class_shares([one.client]), accuracy)
            for figure, value in zip(found, both, strict=True):
                found[figure][one.client] = value
        for figure, values in found.items():
            yield from over_clients(values, figure, model="trained")
        if seen.global_model is not None:
            pooled = seen.class_shares([one.client for one in seen.participants])
            both = in_and_out(pooled, seen.class_accuracies(seen.global_model))
            yield from (Row(value, figure) for figure, value in zip(found, both, strict=True))
