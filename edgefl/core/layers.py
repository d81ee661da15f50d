"""A model's forward pass module by module, as counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """One module's forward pass on one sample.

    Attributes:
        module: its dotted name.
        kind: its class's name.
        parameters: how many values it holds.
        fvcore_flops: of its convolutions and matrix products by fvcore, two a multiply-add.
        flops: the same by our own tracer.
        kernels: how many operators it starts.
        bytes: what they move.
    """

    module: str
    kind: str
    parameters: int
    fvcore_flops: int
    flops: int
    kernels: int
    bytes: int


@dataclass(frozen=True)
class ModelLayers:
    """A model's forward pass on one sample.

    Attributes:
        model: its name.
        modules: those that do any work.
        fvcore_flops, traced_flops: of the whole model, by either count.
    """

    model: str
    modules: Sequence[Layer]
    fvcore_flops: int
    traced_flops: int
