"""AdamW (Loshchilov and Hutter 2019): weight decay shrinks the weights directly."""

from pydantic import Field

from edgefl.core.optimizers import Each, State, Tensors, adam
from edgefl.core.params import NonNegative


class Params(adam.Params):
    weight_decay: NonNegative = Field(0.01, description="times lr, the share that each weight loses")

    def update(self, each: Each, values: Tensors, gradients: Tensors, state: State, lr: float) -> State:
        if self.weight_decay:
            each("mul_", values, 1 - lr * self.weight_decay)
        return self.step(each, values, gradients, state, lr)
