"""Thermal throttling: full speed at first, slower under sustained load, faster again after a rest.

The state is heat in seconds of load: it grows by a second a second while the client works, up to ``onset`` +
``fall``, and falls from there to 0 in ``recovery`` while it rests. Below ``onset`` the speed is full; above
it falls linearly to ``floor``, in steps whose integral is the line's. The power above idle falls with it, in
proportion (assumed): work takes longer and, above idle, no more energy. The clock of a Raspberry Pi 3 that
is too hot is low for a share of the time; where voltage falls too, power falls faster.

The curve is that of the client's device (``throttling`` in its file); a device without one does not slow
down. Each of ``onset``, ``fall``, ``floor`` and ``recovery`` that is given holds for all clients; if any of
them is, all devices slow down, and what neither gives is 180 s, 60 s, 0.7 and 240 s.

These four are assumed, between published observations of phones with all cores loaded: a Pixel 9 Pro XL
falls after 3 minutes and is at 0.43 of its speed after 4, a Pixel 7 Pro settles at 0.82, a Nexus 5 throttles
within 200 s (Sahin and Coskun, ESTIMedia 2016).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from edgefl.core.clients import Clients
from edgefl.core.devices import Fall, Load, Recovery, Slowest, Throttling
from edgefl.core.speed import Pace, Speed, SpeedCurve

# Onset, fall, floor and recovery of a device that does not say.
_DEFAULTS = (180.0, 60.0, 0.7, 240.0)
# Heat this close below a step has reached it: times are sums of rounded numbers.
_ROUNDING_S = 1e-6


class Params(Speed):
    onset: Load | None = Field(None, description="load at full speed; null: the devices'")
    fall: Fall | None = Field(None, description="further load until the floor; null: the devices'")
    floor: Slowest | None = Field(None, description="share of the speed that remains; null: the devices'")
    recovery: Recovery | None = Field(None, description="rest from the floor until cold; null: the devices'")
    steps: int = Field(6, ge=1, le=1000, description="steps of the fall")

    def curve(self, clients: Clients, root: int) -> "Thermal":  # noqa: ARG002
        heating = [self._of(device) for device in clients.throttling]
        return Thermal(heating, clients.device.tolist(), self.steps)

    def assumptions(self, clients: Clients) -> tuple[str, ...]:
        pairs = zip(clients.devices, clients.throttling, strict=True)
        names = [name for name, device in pairs if self._of(device) is None]
        return (f"thermal: no throttling known of {', '.join(names)}",) if names else ()

    def _of(self, device: Throttling | None) -> tuple[float, ...] | None:
        """Onset, fall, floor and recovery of a device; None for one that does not slow down."""
        given = self.onset, self.fall, self.floor, self.recovery
        if device is None and given == (None,) * 4:
            return None
        own = _DEFAULTS
        if device is not None:
            own = device.after.known, device.over.known, device.to.known, device.recovery.known
        return tuple(mine if one is None else one for one, mine in zip(given, own, strict=True))


@dataclass
class Thermal(SpeedCurve):
    """By device, and each client's device; a client's state is its heat."""

    heating: Sequence[tuple[float, ...] | None]
    device: Sequence[int]
    steps: int

    def at(self, client: int, t_s: float, state: float) -> Pace:
        of, steps = self.heating[self.device[client]], self.steps
        if of is None:
            return Pace(1.0, math.inf)
        onset, fall, floor, _ = of
        # Of the bounds onset + fall x k / steps, as many as the heat has reached.
        place = min(max(math.floor((state + _ROUNDING_S - onset) * (steps / fall)) + 1, 0), steps + 1)
        if place > steps:
            return Pace(floor, math.inf, floor)
        factor = 1 - (1 - floor) * (place - 0.5) / steps if place else 1.0
        return Pace(factor, t_s + (onset + fall * place / steps - state), factor)

    def after(self, client: int, state: float, from_s: float, to_s: float, *, working: bool) -> float:
        of, passed_s = self.heating[self.device[client]], to_s - from_s
        if of is None:
            return 0.0
        onset, fall, _, recovery = of
        cooled = (onset + fall) / recovery * passed_s
        return min(state + passed_s, onset + fall) if working else max(state - cooled, 0.0)
