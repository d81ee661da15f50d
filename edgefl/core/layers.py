"""A model layer by layer, as counts: its forward pass, and what an exchange does in each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgefl.core.cost import Work


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
