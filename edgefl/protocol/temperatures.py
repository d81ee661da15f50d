"""Temperatures that differ between jobs or samples: FLex&Chill's Section 5.

The paper proposes them and specifies none; every formula here is our choice.
"""

import math
from abc import abstractmethod
from typing import Annotated, Literal, TypeAlias

import torch
from pydantic import Field, model_validator
from torch import Tensor

from edgefl.core.components import NameOf
from edgefl.core.params import NonNegative, Positive, Strict
from edgefl.protocol.values import Assignment

_EACH = Field(description="the temperature of each name")
_OTHERS = Field(description="the temperature of all others")


class OfJob(Strict):
    """A temperature that the server sets for each job."""

    @abstractmethod
    def of(self, job: Assignment) -> float:
        """The job's temperature."""


class ByDevice(OfJob):
    """By the client's device."""

    values: Annotated[dict[Annotated[str, NameOf("devices")], Positive], _EACH]
    default: Annotated[Positive, _OTHERS] = 1.0
    by: Literal["device"]

    def of(self, job: Assignment) -> float:
        return self.values.get(job.device, self.default)


class ByModel(Strict):
    """By the client's model."""

    values: Annotated[dict[Annotated[str, NameOf("models")], Positive], _EACH]
    default: Annotated[Positive, _OTHERS] = 1.0
    by: Literal["model"]

    def of(self, model: str) -> float:
        """That of a net of this name, which is its file's."""
        return self.values.get(model.replace("_", "-"), self.default)


class ByRound(OfJob):
    """From ``start`` in the first round to ``end`` in the last; ``step`` changes half-way."""

    by: Literal["round"]
    start: Annotated[Positive, Field(description="the temperature of the first round")]
    end: Annotated[Positive, Field(description="the temperature of the last round")]
    shape: Literal["linear", "cosine", "step"] = "linear"

    def of(self, job: Assignment) -> float:
        share = job.progress
        if self.shape == "cosine":
            share = (1 - math.cos(math.pi * share)) / 2
        elif self.shape == "step":
            share = float(share >= 0.5)  # noqa: PLR2004 - half of the rounds
        return self.start + (self.end - self.start) * share


class ByWork(OfJob):
    """T = max(least, full * work^power): colder for clients that do a smaller share of the full work.

    A chilled gradient has the factor 1 / T, so that with power 1 half of the steps have twice the factor.
    """

    by: Literal["work"]
    full: Annotated[Positive, Field(description="the temperature of a job that does all of its work")] = 1.0
    power: Annotated[NonNegative, Field(description="0 is the same temperature for all")] = 1.0
    # The paper trains at no temperature below 0.05.
    least: Annotated[Positive, Field(description="the lowest temperature")] = 0.05

    @model_validator(mode="after")
    def _ordered(self) -> "ByWork":
        if self.least > self.full:
            raise ValueError(f"'least' must not be above 'full', {self.full:g}; it is {self.least:g}")
        return self

    def of(self, job: Assignment) -> float:
        return max(self.least, self.full * float(job.ctx.work**self.power))


class BySample(Strict):
    """T_i = hard + (easy - hard) * p_i with p_i = exp(-CE(z_i, y_i)), the probability of the label at T = 1.

    So T_i lies between the two, and is lower for samples of higher loss. It is a constant in the gradient.
    """

    by: Literal["sample"]
    easy: Annotated[Positive, Field(description="the temperature at loss 0")] = 1.0
    hard: Annotated[Positive, Field(description="the temperature at infinite loss")] = 0.25

    def of(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Each sample's temperature, (B, 1); logits (B, C), labels (B,)."""
        right = torch.softmax(logits, dim=-1).gather(-1, labels.unsqueeze(-1))
        return self.hard + (self.easy - self.hard) * right


Temperature: TypeAlias = (
    Positive | Annotated[ByDevice | ByModel | ByRound | ByWork | BySample, Field(discriminator="by")]
)
