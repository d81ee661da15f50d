"""The base of every validated, frozen record, and of every component's parameters."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Strict(BaseModel):
    """Frozen; an unknown key is an error; so is a number given as text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)


class Component(BaseModel):
    """A named, parametrised thing of a scenario: a method, a model, a partition, a policy, a codec.

    Written as ``{name: dirichlet, alpha: 0.5}``, or as the bare name. What stands beside ``name``
    is checked later, by the component's own ``Params``.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    @model_validator(mode="before")
    @classmethod
    def _bare_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @property
    def params(self) -> dict[str, Any]:
        """What stands beside the name."""
        return dict(self.model_extra or {})
