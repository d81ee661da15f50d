"""The pull towards the model that a client starts from."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from edgefl.protocol.nets import Carry, Net, Seen
from edgefl.protocol.trees import leaves


def proximal_term(net: Net, mu: float, parts: Sequence[str] | None = None) -> Callable[[Seen, Carry], Tensor]:
    """(mu / 2) * ||w - w_received||^2 (Li et al. 2020, Equation 2).

    It reads the carry's "anchor", which ``anchored`` fills.

    Args:
        parts: those that are pulled; None for all trained ones.
    """
    pulled = net.trained if parts is None else parts

    def loss(seen: Seen, carry: Carry) -> Tensor:
        pairs = [
            pair
            for part in pulled
            for pair in zip(leaves(seen.weights[part]), leaves(carry["anchor"][part]), strict=True)
        ]
        squares = torch.stack([(own - received).square().sum() for own, received in pairs])
        return (mu / 2) * squares.sum()

    return loss
