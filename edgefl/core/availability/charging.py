"""Clients are available while they charge, unless the battery is nearly empty.

What production systems ask of a phone (Bonawitz et al. 2019, Section 3: idle, on a charger, on an unmetered
network). On a share of the days a client is plugged in at about the same local hour and for about as long;
both are normally distributed and independent from day to day. Unplugged, the battery drains at a constant
power; plugged in, it is filled at a constant power until it is full; the energy of a job is taken out when
the job ends, and the level is looked at then. Voltage and ageing are left out.

The battery is that of the client's device. A device without one runs on mains, and its clients are always
available. ``capacity``, ``charger`` and ``minimum`` replace the devices' numbers for all clients; with a
``capacity``, all clients have a battery. Numbers that neither gives are a Pixel 6's capacity, 17.8 Wh (4614
mAh, AOSP's power profile of the phone, at 3.85 V), a charger of 10 W (USB, 5 V and 2 A, assumed) and a
minimum of 0.2 (assumed).

Assumed are also the drain (between 0.15 W with the screen off, the same power profile, and about 1 W in use),
the hours, and the levels at the start.
"""

from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability import DAY_S, HOUR_S, Availability, Spell, Start, Timetable, Zones, zones_of
from edgefl.core.clients import Clients
from edgefl.core.devices import Battery, Capacity, ChargePower
from edgefl.core.draws import derive, normals, uniforms
from edgefl.core.params import NonNegative, Share
from edgefl.core.units import Watts

Level = Annotated[float, Field(ge=0, le=1)]

# Of a battery of which neither the device nor the fleet says it.
_CAPACITY_J, _FILL_W, _MINIMUM = 17.8 * HOUR_S, 10.0, 0.2
# Intervals of two days stay this far apart.
_APART_S = 60.0


class Params(Availability):
    plug_in: float = Field(22.5, ge=0, lt=24, description="local hour at which clients are plugged in")
    hours: float = Field(8.0, ge=0.1, lt=24, description="how long they charge")
    spread: NonNegative = Field(1.5, description="standard deviation of both, in hours")
    days: float = Field(0.9, ge=0.01, le=1, description="share of days on which a client is plugged in")
    capacity: Capacity | None = Field(None, description="of all batteries; null: the devices'")
    charger: ChargePower | None = Field(None, description="what fills the batteries; null: the devices'")
    drain: Watts = Field(0.6, description="mean power while unplugged")
    minimum: Share | None = Field(None, description="lowest level of an available client; null: the devices'")
    initial: tuple[Level, Level] = Field((0.3, 1.0), description="range of levels at the start")
    zones: Zones = (0.0,)
    start: Start = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.initial[0] > self.initial[1]:
            raise ValueError("the lower level of 'initial' must not be above the upper one")
        return self

    def start_h(self) -> float:
        return self.start

    def timetable(self, clients: Clients, root: int) -> "Charging":
        return Charging(self, clients, root)

    def assumptions(self, clients: Clients) -> tuple[str, ...]:
        pairs = zip(clients.devices, clients.batteries, strict=True)
        mains = [name for name, battery in pairs if self.battery(battery) is None]
        return (f"charging: no battery, so always available: {', '.join(mains)}",) if mains else ()

    def battery(self, own: Battery | None) -> list[float] | None:
        """Of a device: joules when full, the power that fills it, and the minimum; None on mains."""
        given = self.capacity, self.charger, self.minimum
        numbers: tuple[float | None, ...] = (None,) * len(given)
        if own is not None:
            numbers = own.capacity.value, own.fill_w, own.cut_off.value if own.cut_off else None
        elif self.capacity is None:
            return None
        known = zip(given, numbers, (_CAPACITY_J, _FILL_W, _MINIMUM), strict=True)
        return [next(one for one in each if one is not None) for each in known]


class Charging(Timetable):
    """Batteries, and the hours at which they are filled.

    Each client's time is cut into days that begin in the middle of the hours in which it is usually
    unplugged, so that an interval lies in one of them. A battery is known from its client's last job on:
    times must not be before it, and ``until_s`` holds if the client does no job before it.
    """

    def __init__(self, params: Params, clients: Clients, root: int) -> None:
        self._params = params
        self._key = derive(root, "charging")
        count = len(clients)
        zone = zones_of(params.zones, root, count)
        noon = params.plug_in + params.hours / 2 - 12
        self._origin_s = ((noon - params.start - zone) % 24 - 24) * HOUR_S
        low, high = params.initial
        uniform = uniforms(derive(root, "battery"), np.arange(count), count=1)[0]
        of_devices = [params.battery(one) for one in clients.batteries]
        self._has = np.array([one is not None for one in of_devices])[clients.device]
        numbers = np.array([one or [np.nan] * 3 for one in of_devices])[clients.device].T
        self._full_j, self._fill_w, minimum = numbers
        self._least_j = minimum * self._full_j
        self._since_s = np.zeros(count)
        self._joules = self._full_j * (low + (high - low) * uniform)
        # After charging for so long a battery is full, whatever it held.
        self._fills_s = 1.000001 * self._full_j / self._fill_w

    def batteries(self, clients: Ints) -> Floats:
        """Each battery's joules, and when it had so many, (n, 2); later spending does not change them."""
        return np.stack([self._joules[clients], self._since_s[clients]], axis=1)

    def at(self, clients: Ints, t_s: Floats, batteries: Floats | None = None) -> Spell:
        available, until = np.ones(len(clients), dtype=bool), np.full(len(clients), np.inf)
        has = self._has[clients]
        known = self.batteries(clients) if batteries is None else batteries
        available[has], until[has] = self._while_plugged(clients[has], t_s[has], known[has])
        return Spell(available, until)

    def spend(self, clients: Ints, t_s: Floats, joules: Floats) -> None:
        """Takes what jobs of different clients drew, (n,); NaN, an unknown energy, takes nothing."""
        has = self._has[clients]
        clients, t_s, joules = clients[has], t_s[has], joules[has]
        left = self._stored(clients, t_s, self.batteries(clients)) - np.nan_to_num(joules)
        self._joules[clients] = np.maximum(left, 0.0)
        self._since_s[clients] = t_s

    def level(self, clients: Ints, t_s: Floats) -> Floats:
        """The share of each client's battery that is left, (n,); 1 on mains."""
        level, has = np.ones(len(clients)), self._has[clients]
        clients, t_s = clients[has], t_s[has]
        level[has] = self._stored(clients, t_s, self.batteries(clients)) / self._full_j[clients]
        return level

    def _while_plugged(self, clients: Ints, t_s: Floats, batteries: Floats) -> Spell:
        start, end = self._interval(clients, self._day(clients, t_s))
        plugged = (start <= t_s) & (t_s < end)
        available, until = np.zeros(len(clients), dtype=bool), np.empty(len(clients))
        until[~plugged] = self._next_start(clients[~plugged], t_s[~plugged])
        whom, known, until[plugged] = clients[plugged], batteries[plugged], end[plugged]
        since = np.maximum(start[plugged], known[:, 1])
        missing = np.maximum(self._least_j[whom] - self._stored(whom, since, known), 0.0)
        reached = since + missing / self._fill_w[whom]
        available[plugged] = enough = t_s[plugged] >= reached
        until[plugged] = np.where(enough, until[plugged], np.minimum(reached, until[plugged]))
        return Spell(available, until)

    def _day(self, clients: Ints, t_s: Floats) -> Ints:
        return np.floor((t_s - self._origin_s[clients]) / DAY_S).astype(np.int64)

    def _interval(self, clients: Ints, day: Ints) -> tuple[Floats, Floats]:
        """When each client is plugged in and out on one of its days; both are the day's end if it is not."""
        params = self._params
        begins = self._origin_s[clients] + day * DAY_S
        uniform = uniforms(self._key, clients, day, count=5)
        spread_s = params.spread * HOUR_S
        unplugged_s = (24 - params.hours) * HOUR_S / 2
        start = begins + np.clip(unplugged_s + spread_s * normals(uniform[:2]), _APART_S, DAY_S - _APART_S)
        lasts = np.maximum(params.hours * HOUR_S + spread_s * normals(uniform[2:4]), 0.0)
        end = np.minimum(start + lasts, begins + DAY_S - _APART_S)
        none = uniform[4] >= params.days
        return np.where(none, begins + DAY_S, start), np.where(none, begins + DAY_S, end)

    def _next_start(self, clients: Ints, t_s: Floats) -> Floats:
        """The first time after a given one at which each client is plugged in."""
        found, left, day = np.empty(len(clients)), np.arange(len(clients)), self._day(clients, t_s)
        while len(left):
            start, end = self._interval(clients[left], day[left])
            done = (start > t_s[left]) & (start < end)
            found[left[done]] = start[done]
            left = left[~done]
            day[left] += 1
        return found

    def _stored(self, clients: Ints, t_s: Floats, batteries: Floats) -> Floats:
        joules = batteries[:, 0].copy()
        since = np.minimum(batteries[:, 1], t_s)
        last, day = self._day(clients, t_s), self._day(clients, since)
        # Back to the last day whose interval has surely filled the battery, or to the last job.
        back, left = last.copy(), np.flatnonzero(day < last)
        while len(left):
            back[left] -= 1
            start, end = self._interval(clients[left], back[left])
            full = end - np.maximum(start, since[left]) >= self._fills_s[clients[left]]
            filled = left[full]
            joules[filled], since[filled] = self._full_j[clients[filled]], end[full]
            left = left[~full & (back[left] > day[left])]
        left, drain_w = np.arange(len(clients)), self._params.drain
        while len(left):
            whom, begun = clients[left], since[left]
            stop = np.minimum(self._origin_s[whom] + (back[left] + 1) * DAY_S, t_s[left])
            start, end = self._interval(whom, back[left])
            before = np.maximum(np.minimum(start, stop) - begun, 0.0)
            plugged = np.maximum(np.minimum(end, stop) - np.maximum(start, begun), 0.0)
            after = np.maximum(stop - np.maximum(end, begun), 0.0)
            held = np.maximum(joules[left] - drain_w * before, 0.0)
            held = np.minimum(held + self._fill_w[whom] * plugged, self._full_j[whom])
            joules[left], since[left] = np.maximum(held - drain_w * after, 0.0), stop
            left = left[back[left] < last[left]]
            back[left] += 1
        return joules
