"""Local training's settings: optimizer, learning-rate schedule, length and batch size."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, field_validator, model_validator

from edgefl.core.params import Strict
from edgefl.core.steps import Passes

Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, lt=1)]


class Constant(Strict):
    """The same rate in every round."""

    name: Literal["constant"] = "constant"

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002 - every schedule is asked the same way
        """What the base rate is multiplied by in ``round_`` (from 0) of ``rounds``."""
        return 1.0


class Step(Strict):
    """Times ``gamma`` every ``every`` rounds."""

    name: Literal["step"]
    every: Annotated[int, Field(gt=0)]
    gamma: Positive = 0.1

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002
        """What the base rate is multiplied by in ``round_`` (from 0) of ``rounds``."""
        return self.gamma ** (round_ // self.every)


class MultiStep(Strict):
    """Times ``gamma`` at each milestone round."""

    name: Literal["multi-step"]
    milestones: tuple[int, ...]
    gamma: Positive = 0.1

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002
        """What the base rate is multiplied by in ``round_`` (from 0) of ``rounds``."""
        return float(self.gamma ** sum(round_ >= milestone for milestone in self.milestones))


class Cosine(Strict):
    """Half a cosine from 1 down to ``floor`` over all rounds, one step a round."""

    name: Literal["cosine"]
    floor: Share = 0.0

    def factor(self, round_: int, rounds: int) -> float:
        """What the base rate is multiplied by in ``round_`` (from 0) of ``rounds``."""
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * round_ / rounds)) / 2


class Exponential(Strict):
    """Times ``gamma`` every round."""

    name: Literal["exponential"]
    gamma: Positive

    def factor(self, round_: int, rounds: int) -> float:  # noqa: ARG002
        """What the base rate is multiplied by in ``round_`` (from 0) of ``rounds``."""
        return float(self.gamma**round_)


Schedule = Annotated[Constant | Step | MultiStep | Cosine | Exponential, Field(discriminator="name")]


class _Optimizer(Strict):
    lr: Positive
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    clip_norm: Annotated[
        float | None, Field(gt=0, description="rescale the gradient to at most this 2-norm")
    ] = None
    schedule: Schedule = Constant()


class Sgd(_Optimizer):
    """Stochastic gradient descent; weight decay is added to the gradient."""

    name: Literal["sgd"] = "sgd"
    momentum: Share = 0.0
    nesterov: bool = False

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> Sgd:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")
        return self


class Adam(_Optimizer):
    """Adam (Kingma and Ba 2015); weight decay is added to the gradient."""

    name: Literal["adam"]
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Positive = 1e-8


class AdamW(_Optimizer):
    """AdamW (Loshchilov and Hutter 2019): weight decay shrinks the weights directly."""

    name: Literal["adamw"]
    betas: tuple[Share, Share] = (0.9, 0.999)
    eps: Positive = 1e-8
    weight_decay: Annotated[float, Field(ge=0)] = 0.01


Optimizer = Annotated[Sgd | Adam | AdamW, Field(discriminator="name")]


def _batch_size(value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
    if not whole and value != "fit":
        raise ValueError(f"a batch size is a whole number above 0, or fit; given: {value!r}")
    return value


BatchSize = Annotated[
    int | Literal["fit"],
    PlainValidator(_batch_size),
    WithJsonSchema({"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"const": "fit"}]}),
]


class Local(Strict):
    """What a client does with its data in one round: ``epochs``, or ``steps`` instead.

    A batch size of "fit" is the largest that the fleet's devices can hold; planning puts the number there.
    """

    epochs: Annotated[int, Field(gt=0)] | None = None
    steps: Annotated[int, Field(gt=0)] | None = None
    batch_size: BatchSize = 32
    optimizer: Optimizer = Sgd(lr=0.01)

    @field_validator("optimizer", mode="before")
    @classmethod
    def _sgd_by_default(cls, value: Any) -> Any:
        return {"name": "sgd", **value} if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _one_length(self) -> Local:
        if self.epochs is not None and self.steps is not None:
            raise ValueError("give epochs or steps, not both")
        return self

    @property
    def size(self) -> int:
        """The batch size as a number.

        Raises:
            TypeError: planning has not put one in the place of "fit".
        """
        if isinstance(self.batch_size, str):
            raise TypeError("the batch size is not planned yet")
        return self.batch_size

    @property
    def passes(self) -> Passes:
        """The length as the protocol's phases take it; one epoch where nothing is said."""
        return Passes(steps=self.steps) if self.steps is not None else Passes(epochs=self.epochs or 1)
