"""Oracle head: the global body's accuracy with a head that is trained on all clients' real features.

The features of all clients' training samples under the global model are pooled, and its head is fine-tuned on
them by cross-entropy: what a calibration that sees no features can hope for (Dong et al. 2022, SphereFed,
Table 4, "Sanity check", the best of several rates and of cross-entropy and squared error). Beside it there is
what is gained over the model's own head.

Ours, where the paper is silent: SGD with momentum 0.9, from the model's own head; images are not augmented.
"""

from collections.abc import Iterator
from typing import Any

import torch
from pydantic import Field

from edgefl.core.params import Positive
from edgefl.measures import Measure
from edgefl.protocol import Observation, Predictor, Row
from edgefl.protocol.heads import tuned_head
from edgefl.protocol.observation import CHUNK


class Params(Measure):
    NEEDS = ("global model",)
    UNIT = "share"

    epochs: int = Field(10, gt=0, description="Of fine-tuning.")
    lr: Positive = Field(0.01, description="The rate; features of unit length take a higher one.")
    batch_size: int = Field(64, gt=0, description="Of fine-tuning.")
    seed: int = Field(0, ge=0, description="Of the samples' order.")

    def measure(self, seen: Observation) -> Iterator[Row]:
        model = seen.model
        if not model.has_layers(seen.net):
            return
        net = model.net or seen.net
        features, labels = [], []
        for client in range(len(seen.class_counts)):
            x, y = seen.training(client, None)
            labels.append(y)
            pieces = (x[start : start + CHUNK] for start in range(0, len(y), CHUNK))
            features += [net.features(model.weights, some, False)[0].to(torch.float64) for some in pieces]
        x, y = torch.cat(features), torch.cat(labels)
        how: Any = {key: value for key, value in self if key != "name"}
        head = tuned_head(net, model.weights["head"], x, y, **how)
        right = seen.correct(Predictor({**model.weights, "head": head}, net.logits))
        yield Row(float(right.mean()))
        yield Row(float(right.mean() - seen.correct(model).mean()), "gain")
