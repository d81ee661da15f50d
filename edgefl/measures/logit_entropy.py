"""Entropy of the global model's predictions, in nats.

    H = mean_i -sum_c p_ic ln p_ic,        p_i = softmax(z_i) at temperature 1

over the test samples (Lee et al. 2024, FLex&Chill, section 2, on what a temperature does to it). ln C is a
guess, 0 is certainty.
"""

from collections.abc import Iterator

from edgefl.measures import Measure
from edgefl.protocol import Observation, Row


class Params(Measure):
    NEEDS = ("global model",)
    UNIT = "nat"

    def measure(self, seen: Observation) -> Iterator[Row]:
        """The mean, and that of the samples that are classified correctly and of the others."""
        logs = seen.global_logits.log_softmax(dim=-1)
        entropy = -(logs.exp() * logs).sum(dim=-1).numpy()
        correct = seen.correct(seen.model)
        yield Row(float(entropy.mean()))
        for figure, chosen in (("correct", entropy[correct]), ("wrong", entropy[~correct])):
            if len(chosen):
                yield Row(float(chosen.mean()), figure)
