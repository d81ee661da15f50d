"""How a client's steps add up."""

from typing import Any

import torch
from torch import Tensor

from edgefl.core.optimizers.sgd import Params as Sgd


def effective_steps(optimizer: Sgd, steps: Any) -> Any:
    """How often each of K gradients counts in the move, in units of the learning rate, summed over all K.

    With momentum r, the gradient of step s is in the updates of s and of all later ones, and the sum is
    (K - r * (1 - r^K) / (1 - r)) / (1 - r); with Nesterov's it is K + r times that. Without, it is K.
    (Wang et al. 2020, Section 4: the 1-norm of a_i.)

    ``steps`` is K, a number or a scalar tensor; of a tensor, the result is one of float64.
    """
    if isinstance(steps, Tensor):
        steps = steps.to(torch.float64)
    share = optimizer.momentum
    if not share:
        return steps
    total = (steps - share * (1 - share**steps) / (1 - share)) / (1 - share)
    return steps + share * total if optimizer.nesterov else total
