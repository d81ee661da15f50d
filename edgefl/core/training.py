"""Local training's settings: optimizer, length and batch size."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, SerializeAsAny, WithJsonSchema, model_validator

from edgefl.core.named import ByName
from edgefl.core.optimizers import Optimizer
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import Strict
from edgefl.core.steps import Passes


def _batch_size(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not whole and value != "fit":
        raise ValueError(f"a batch size must be a positive integer or 'fit', not {value!r}")
    return value


BatchSize = Annotated[
    int | Literal["fit"],
    PlainValidator(_batch_size),
    WithJsonSchema({"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"const": "fit"}]}),
]


class Local(Strict):
    """A client's training in one round: its length in ``epochs`` or ``steps``, and how it steps.

    A batch size of "fit" means the largest that the fleet's devices can hold; planning replaces it by a
    number.
    """

    epochs: Annotated[int, Field(gt=0)] | None = None
    steps: Annotated[int, Field(gt=0)] | None = None
    batch_size: BatchSize = 32
    optimizer: Annotated[SerializeAsAny[Optimizer], ByName("optimizers", "sgd")] = Sgd(lr=0.01)

    @model_validator(mode="after")
    def _one_length(self) -> Local:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("give either epochs or steps, not both")
        return self

    @property
    def size(self) -> int:
        """The batch size as a number.

        Raises:
            TypeError: it is still "fit": planning has not replaced it.
        """
        if isinstance(self.batch_size, str):
            raise TypeError("the batch size is not planned yet")
        return self.batch_size

    @property
    def passes(self) -> Passes:
        """The length in the protocol's terms; one epoch by default."""
        return Passes(steps=self.steps) if self.steps is not None else Passes(epochs=self.epochs or 1)
