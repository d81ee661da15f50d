"""Classifier consistency: how alike the heads of the clients of a merge are, class by class.

    cosine = mean over classes c and pairs k != k' of <w_c^k, w_c^k'> / (||w_c^k|| ||w_c^k'||)
    norm difference = mean over the same of | ||w_c^k|| - ||w_c^k'|| |

with w_c^k the row of class c in the head's weights as client k trained them, before the merge (Dong et al.
2022, SphereFed, Equations 2 and 3). A merge of one client has no pairs.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import torch

from edgefl.measures import Measure
from edgefl.protocol import Observation, Row


class Params(Measure):
    NEEDS = ("participants",)

    def measure(self, seen: Observation) -> Iterator[Row]:
        heads = [one.trained.weights.get("head", {}).get("weight") for one in seen.participants]
        rows = [head.to("cpu", torch.float64).numpy() for head in heads if head is not None]
        pairs = [(one, other) for one, other in combinations(rows, 2) if one.shape == other.shape]
        if not pairs:
            return
        norms = [(np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)) for one, other in pairs]
        with np.errstate(invalid="ignore"):
            cosines = np.mean(
                [
                    (one * other).sum(axis=1) / (n * m)
                    for (one, other), (n, m) in zip(pairs, norms, strict=True)
                ],
                axis=0,
            )
        for label, value in enumerate(cosines.tolist()):
            yield Row(value, "cosine", "trained", label=str(label))
        yield Row(float(np.mean(cosines)), "cosine", "trained")
        yield Row(float(np.mean([np.abs(n - m).mean() for n, m in norms])), "norm difference", "trained")
