"""Optimizers, one file each: settings, the state that is kept between steps, and the update.

An update is written in operations on lists of tensors: ``each(name, values, *operands)`` calls the tensor
method of that name on every tensor of ``values``. An operand is one number for all, or a list with a tensor
for each; a name that ends in ``_`` works in place. One update thus serves every engine and the cost model.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from pydantic import Field, SerializeAsAny

from edgefl.core.components import OfKind
from edgefl.core.params import Component, NonNegative, Positive
from edgefl.core.schedules import Schedule
from edgefl.core.schedules.constant import Params as Constant

Tensors: TypeAlias = Any
State: TypeAlias = dict[str, Any]
Each: TypeAlias = Callable[..., Tensors]


class Optimizer(Component):
    lr: Positive = Field(description="the learning rate at first; see schedule")
    weight_decay: NonNegative = Field(default=0.0, description="the pull of every weight towards 0")
    clip_norm: float | None = Field(default=None, gt=0, description="rescale gradients above this 2-norm")
    schedule: Annotated[SerializeAsAny[Schedule], OfKind("schedules")] = Field(
        default=Constant(), description="the rate, round by round"
    )

    @abstractmethod
    def state(self, zeros: Callable[[], Tensors]) -> State:
        """The state before the first step."""

    @abstractmethod
    def update(self, each: Each, values: Tensors, gradients: Tensors, state: State, lr: float) -> State:
        """Updates the weights ``values`` and the lists of the state in place, and returns the new state.

        Gradients are clipped already, and not to be written to; ``lr`` is this round's rate.
        """
