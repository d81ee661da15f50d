"""Stochastic gradient descent; weight decay is added to the gradient."""

from collections.abc import Callable
from typing import Annotated

from pydantic import Field, model_validator

from edgefl.core.optimizers import Each, Optimizer, State, Tensors
from edgefl.core.params import Share


class Params(Optimizer):
    momentum: Annotated[Share, Field(description="the share of the last update that is kept")] = 0.0
    nesterov: Annotated[bool, Field(description="whether the gradient looks one update ahead")] = False

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> "Params":
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")
        return self

    def state(self, zeros: Callable[[], Tensors]) -> State:
        return {"momentum": zeros()} if self.momentum else {}

    def update(self, each: Each, values: Tensors, gradients: Tensors, state: State, lr: float) -> State:
        if self.weight_decay:
            gradients = each("add", gradients, values, alpha=self.weight_decay)
        if self.momentum:
            momentum = state["momentum"]
            each("mul_", momentum, self.momentum)
            each("add_", momentum, gradients)
            gradients = each("add", gradients, momentum, alpha=self.momentum) if self.nesterov else momentum
        each("add_", values, gradients, alpha=-lr)
        return state
