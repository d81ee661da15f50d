"""Adam (Kingma and Ba 2015); weight decay is added to the gradient."""

from collections.abc import Callable

from pydantic import Field

from edgefl.core.optimizers import Each, Optimizer, State, Tensors
from edgefl.core.params import Positive, Share


class Params(Optimizer):
    betas: tuple[Share, Share] = Field((0.9, 0.999), description="decay of both moments")
    eps: Positive = Field(1e-8, description="added to the root of the second moment")

    def state(self, zeros: Callable[[], Tensors]) -> State:
        return {"mean": zeros(), "square": zeros(), "steps": 0}

    def update(self, each: Each, values: Tensors, gradients: Tensors, state: State, lr: float) -> State:
        if self.weight_decay:
            gradients = each("add", gradients, values, alpha=self.weight_decay)
        return self.step(each, values, gradients, state, lr)

    def step(self, each: Each, values: Tensors, gradients: Tensors, state: State, lr: float) -> State:
        """The update without weight decay."""
        steps = state["steps"] + 1
        first, second = self.betas
        each("mul_", state["mean"], first)
        each("add_", state["mean"], gradients, alpha=1 - first)
        each("mul_", state["square"], second)
        each("addcmul_", state["square"], gradients, gradients, value=1 - second)
        root = each("sqrt", state["square"])
        each("div_", root, (1 - second**steps) ** 0.5)
        each("add_", root, self.eps)
        each("addcdiv_", values, state["mean"], root, value=-lr / (1 - first**steps))
        return {**state, "steps": steps}
