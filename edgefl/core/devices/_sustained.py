"""What limits a device that works for long: its battery, and heat."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from edgefl.core import units
from edgefl.core.params import Strict
from edgefl.core.sourced import NEEDED, Costs, Sourced

Capacity = Annotated[units.Joules, Field(gt=0), Costs.LESS]
ChargePower = Annotated[units.Watts, Field(gt=0), Costs.LESS]
Level = Annotated[float, Field(ge=0, lt=1), Costs.MORE]
Efficiency = Annotated[float, Field(gt=0, le=1), Costs.LESS]
Load = Annotated[units.Seconds, Field(ge=0), Costs.LESS]
# Shorter falls and recoveries would be walked through for ever.
Fall = Annotated[units.Seconds, Field(ge=1), Costs.LESS]
Recovery = Annotated[units.Seconds, Field(ge=1), Costs.MORE]
Slowest = Annotated[float, Field(ge=0.001, le=1), Costs.LESS]


class Battery(Strict):
    """A device's battery. A number alone is read as its capacity: ``battery: {value: 17.8 Wh, ...}``.

    Attributes:
        capacity: energy of a full battery.
        charge_power: what the charger delivers.
        charge_efficiency: share of it that is stored; all of it by default.
        cut_off: level below which the device takes no work.
    """

    capacity: Sourced[Capacity]
    charge_power: Sourced[ChargePower] | None = None
    charge_efficiency: Sourced[Efficiency] | None = None
    cut_off: Sourced[Level] | None = None

    @model_validator(mode="before")
    @classmethod
    def _capacity_alone(cls, data: Any) -> Any:
        if isinstance(data, dict) and data and data.keys() <= Sourced.model_fields.keys():
            return {"capacity": data}
        return data

    @property
    def fill_w(self) -> float | None:
        """The power that fills it, after losses; None if the charger's power is unknown."""
        power, kept = self.charge_power, self.charge_efficiency
        if power is None or power.value is None:
            return None
        return power.value * (1.0 if kept is None or kept.value is None else kept.value)


class Throttling(Strict):
    """How a device slows down under sustained load, and recovers.

    Attributes:
        after: sustained load at full speed.
        over: further load over which the speed falls linearly.
        to: the share of the full speed that remains.
        recovery: rest from there until the device is cold again.
    """

    after: Annotated[Sourced[Load], NEEDED]
    over: Annotated[Sourced[Fall], NEEDED]
    to: Annotated[Sourced[Slowest], NEEDED]
    recovery: Annotated[Sourced[Recovery], NEEDED]

    @property
    def numbers(self) -> tuple[float, ...]:
        """The four, in seconds and as a share."""
        return self.after.known, self.over.known, self.to.known, self.recovery.known
