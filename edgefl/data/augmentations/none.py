"""None: images as they are."""

from __future__ import annotations

import torch
from torch import Tensor

from edgefl.core.params import Component


class Params(Component):
    """No parameters."""


def augment(params: Params, x: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG001 - the signature
    """``x`` itself; nothing is drawn."""
    return x
