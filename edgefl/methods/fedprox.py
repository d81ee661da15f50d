"""FedProx: FedAvg with a pull towards the received weights (Li et al. 2020, Equation 2).

A step minimises L(w) + (mu / 2) * ||w - w_received||^2 over all trained parts.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.params import Strict
from edgefl.protocol import (
    BUFFERS,
    Batch,
    Carry,
    Method,
    Site,
    Tree,
    anchored,
    averaging,
    leaves,
    local_training,
    plain_objective,
)


class Params(Strict):
    """FedProx's parameter."""

    mu: Annotated[float, Field(ge=0, description="strength of the pull; 0 is FedAvg")] = 0.01


def build(params: Params, site: Site) -> Method:
    """FedAvg whose objective has the proximal term."""
    net = site.net
    plain = plain_objective(net)

    def objective(weights: Tree, batch: Batch, carry: Carry) -> tuple[Tensor, Tree]:
        loss, buffers = plain(weights, batch, carry)
        live = leaves({part: weights[part] for part in net.trained})
        received = leaves(carry["anchor"])
        squares = torch.stack(
            [(own - other).square().sum() for own, other in zip(live, received, strict=True)]
        )
        return loss + (params.mu / 2) * squares.sum(), buffers

    train = local_training(site, objective if params.mu else plain)
    method = averaging(site, train, shared=(*net.trained, BUFFERS), neutral={"mu": 0.0})
    return anchored(method, net, net.trained) if params.mu else method
