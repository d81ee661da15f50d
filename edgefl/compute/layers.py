"""A model layer by layer, as counts: its forward pass, and what an exchange does in each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgefl.core.cost import Work


@dataclass(frozen=True)
class ForwardCounts:
    """Operations of a model's forward pass on one sample, in convolutions and matrix products.

    Attributes:
        model: its name.
        fvcore_flops, traced_flops: by either count, two a multiply-add.
    """

    model: str
    fvcore_flops: int
    traced_flops: int


@dataclass(frozen=True)
class LayerWork:
    """What one layer does, or work outside of all layers, in one client's share of an exchange.

    Attributes:
        name: the module's dotted name, such as "body.conv1"; in words for work outside of all layers.
        kind: the module's class; empty for work outside of all layers.
        work: its kernels in all steps, by their role.
        parameter_bytes: of its weights and running statistics.
        gradient_bytes: of the gradients that a step's backward pass leaves for its weights.
        activation_bytes: of its results that a step keeps until the backward pass, at the largest batch.
    """

    name: str
    kind: str
    work: Mapping[str, Work]
    parameter_bytes: int = 0
    gradient_bytes: int = 0
    activation_bytes: int = 0

    @property
    def memory_bytes(self) -> int:
        """Weights, gradients and kept results, in fp32."""
        return self.parameter_bytes + self.gradient_bytes + self.activation_bytes


@dataclass(frozen=True)
class ExchangeLayers:
    """One client's share of an exchange layer by layer; together, all kernels of the exchange.

    Attributes:
        layers: in the order in which they are first called.
        others: work outside of all layers.
    """

    layers: Sequence[LayerWork]
    others: Sequence[LayerWork]
