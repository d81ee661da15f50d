"""The proximal term: a pull towards the model that a client starts from."""

from __future__ import annotations

import torch
from torch import Tensor

from edgefl.protocol.nets import Carry, Net, Seen, Term
from edgefl.protocol.trees import leaves, matched


def proximal_term(net: Net, mu: float) -> Term:
    """(mu / 2) * ||w - w_start||^2 over the trained parts (Li et al. 2020, Equation 2).

    The carry's "anchor" must hold these parts; see ``edgefl.protocol.anchored``.
    """

    def loss(seen: Seen, carry: Carry) -> Tensor:
        live = {part: seen.weights[part] for part in net.trained}
        start = matched(live, {part: carry["anchor"][part] for part in net.trained})
        squares = [(own - other).square().sum() for own, other in zip(leaves(live), start, strict=True)]
        return (mu / 2) * torch.stack(squares).sum()

    return Term(loss)
