"""Gradient diversity: how unlike the gradients of clients' losses at the global model are.

    Lambda = mean_k ||grad f_k||^2 / ||mean_k grad f_k||^2 >= 1

with f_k the cross-entropy, at temperature 1, of the new global model on client k's training data, over the
clients of the last merge, each of equal weight (Lee et al. 2022, FedNTD, Definition 2). Gradients are those
of the parts that clients send, in evaluation mode, over images that are not augmented.
"""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from edgefl.measures import Measure
from edgefl.protocol import Batch, Observation, Predictor, Row, leaves, rebuild
from edgefl.protocol.observation import CHUNK


class Params(Measure):
    NEEDS = ("global model", "participants")

    samples: int | None = Field(None, gt=0, description="Training samples of each client at most; null: all.")

    def measure(self, seen: Observation) -> Iterator[Row]:
        """Lambda, and each client's gradient norm."""
        # A buffer may hold two uploads of a client, whose gradient is one.
        sending = {one.client: one for one in seen.participants if one.sent}
        if not sending:
            return
        total, squares = torch.zeros((), dtype=torch.float64), 0.0
        for one in sending.values():
            gradient = _gradient(seen.model, one.sent, seen.training(one.client, self.samples))
            square = float(gradient.square().sum())
            yield Row(square**0.5, "norm", client=one.client)
            total = total.to(gradient.device) + gradient
            squares += square
        mean = float((total / len(sending)).square().sum())
        yield Row(squares / len(sending) / mean if mean else float("nan"))


def _gradient(predictor: Predictor, parts: tuple[str, ...], batch: Batch) -> Tensor:
    """The gradient of the mean loss of a client's samples, float64, as one vector."""
    chosen = {part: predictor.weights[part] for part in parts}
    live = [leaf.detach().requires_grad_() for leaf in leaves(chosen)]
    weights = {**predictor.weights, **rebuild(chosen, live)}
    total = torch.zeros((), dtype=torch.float64, device=batch.x.device)
    with torch.enable_grad():
        for start in range(0, len(batch.y), CHUNK):
            x, y = (values[start : start + CHUNK] for values in batch)
            loss = F.cross_entropy(predictor.logits(weights, x), y, reduction="sum")
            each = torch.autograd.grad(loss, live, allow_unused=True, materialize_grads=True)
            flat = torch.cat([one.flatten() for one in each]).to(torch.float64)
            total = total + flat
    return total / len(batch.y)
