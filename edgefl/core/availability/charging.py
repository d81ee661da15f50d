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

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.availability import DAY_S, HOUR_S, Availability, Spell, Start, Timetable, Zones, zones_of
from edgefl.core.clients import Clients
from edgefl.core.devices import Battery
from edgefl.core.draws import key, normals, uniforms
from edgefl.core.params import NonNegative, Share
from edgefl.core.units import Joules, Watts

Level = Annotated[float, Field(ge=0, le=1)]

# Of a battery of which neither the device nor the fleet says it.
_CAPACITY_J, _FILL_W, _MINIMUM = 17.8 * HOUR_S, 10.0, 0.2
# Intervals of two days stay this far apart.
_APART_S = 60.0


class Params(Availability):
    """A day of a phone."""

    plug_in: Annotated[
        float, Field(ge=0, lt=24, description="local hour at which clients are plugged in")
    ] = 22.5
    hours: Annotated[float, Field(ge=0.1, lt=24, description="how long they charge")] = 8.0
    spread: Annotated[NonNegative, Field(description="standard deviation of both, in hours")] = 1.5
    days: Annotated[
        float, Field(ge=0.01, le=1, description="share of days on which a client is plugged in")
    ] = 0.9
    capacity: Annotated[
        Annotated[Joules, Field(gt=0)] | None, Field(description="of all batteries; null: the devices'")
    ] = None
    charger: Annotated[
        Annotated[Watts, Field(gt=0)] | None,
        Field(description="power that fills the batteries; null: the devices'"),
    ] = None
    drain: Annotated[Watts, Field(description="mean power while unplugged")] = 0.6
    minimum: Annotated[
        Share | None, Field(description="level from which a client is available; null: the devices' cut-off")
    ] = None
    initial: Annotated[tuple[Level, Level], Field(description="range of levels at the start")] = (0.3, 1.0)
    zones: Zones = (0.0,)
    start: Start = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.initial[0] > self.initial[1]:
            raise ValueError("the lower level of 'initial' must not be above the upper one")
        return self

    def start_h(self) -> float:
        """See ``Availability``."""
        return self.start

    def timetable(self, clients: Clients, root: int) -> Charging:
        """See ``Availability.timetable``."""
        return Charging(self, clients, root)

    def assumptions(self, clients: Clients) -> tuple[str, ...]:
        """See ``Availability.assumptions``."""
        mains = [
            name
            for name, own in zip(clients.devices, self.batteries(clients).own.tolist(), strict=True)
            if not own
        ]
        return (f"charging: no battery, so always available: {', '.join(mains)}",) if mains else ()

    def batteries(self, clients: Clients) -> Batteries:
        """The battery of each device."""
        return Batteries(
            own=np.array([self.capacity is not None or one is not None for one in clients.batteries]),
            capacity_j=self._numbers(self.capacity, clients, lambda one: one.capacity.value, _CAPACITY_J),
            fill_w=self._numbers(self.charger, clients, lambda one: one.fill_w, _FILL_W),
            minimum=self._numbers(
                self.minimum, clients, lambda one: one.cut_off.value if one.cut_off else None, _MINIMUM
            ),
        )

    @staticmethod
    def _numbers(
        given: float | None, clients: Clients, number: Callable[[Battery], float | None], default: float
    ) -> Floats:
        """One number by device: what is given for all, or the device's own, or the default."""
        own = [None if one is None else number(one) for one in clients.batteries]
        return np.array([given if given is not None else default if each is None else each for each in own])


class Batteries(NamedTuple):
    """Batteries by device; the numbers of those that have none of their ``own`` mean nothing.

    ``fill_w`` is the power that fills it, ``minimum`` the level from which a client is available.
    """

    own: Bools
    capacity_j: Floats
    fill_w: Floats
    minimum: Floats


class Charging(Timetable):
    """Batteries, and the hours at which they are filled.

    Each client's time is cut into days that begin in the middle of the hours in which it is usually
    unplugged, so that an interval lies in one of them. The battery of a client without one is never read.
    A battery is known from its client's last job on: times must not be before it, and ``until_s`` holds if
    the client does no job before it.
    """

    def __init__(self, params: Params, clients: Clients, root: int) -> None:
        """Batteries at their initial levels, at time 0."""
        self._params = params
        self._key = key(root, "charging")
        count = len(clients)
        zone = zones_of(params.zones, root, count)
        noon = params.plug_in + params.hours / 2 - 12
        self._origin_s = ((noon - params.start - zone) % 24 - 24) * HOUR_S
        low, high = params.initial
        uniform = uniforms(key(root, "battery"), np.arange(count), count=1)[0]
        self._device = clients.device
        self._of_device = params.batteries(clients)
        self._since_s = np.zeros(count)
        self._joules = self._of_device.capacity_j[clients.device] * (low + (high - low) * uniform)
        # After charging for so long a battery is full, whatever it held.
        self._fills_s = 1.000001 * self._of_device.capacity_j / self._of_device.fill_w

    def batteries(self, clients: Ints) -> Floats:
        """Each battery's joules, and when it had so many, (n, 2); later spending does not change them."""
        return np.stack([self._joules[clients], self._since_s[clients]], axis=1)

    def at(self, clients: Ints, t_s: Floats, batteries: Floats | None = None) -> Spell:
        """See ``Timetable.at``; with the batteries as they were known before, or as they are now."""
        own = self._own(clients)
        if own.all():
            return self._while_plugged(clients, t_s, batteries)
        available, until = np.ones(len(clients), dtype=bool), np.full(len(clients), np.inf)
        known = None if batteries is None else batteries[own]
        available[own], until[own] = self._while_plugged(clients[own], t_s[own], known)
        return Spell(available, until)

    def spend(self, clients: Ints, t_s: Floats, joules: Floats) -> None:
        """Takes what jobs of different clients drew, (n,); NaN, an unknown energy, takes nothing."""
        left = self._stored(clients, t_s, self.batteries(clients)) - np.nan_to_num(joules)
        self._joules[clients] = np.maximum(left, 0.0)
        self._since_s[clients] = t_s

    def level(self, clients: Ints, t_s: Floats) -> Floats:
        """The share of each client's battery that is left, (n,); 1 on mains."""
        level, own = np.ones(len(clients)), self._own(clients)
        clients, t_s = clients[own], t_s[own]
        level[own] = self._stored(clients, t_s, self.batteries(clients)) / self._of(clients).capacity_j
        return level

    def _own(self, clients: Ints) -> Bools:
        """Whether each client has a battery."""
        own: Bools = self._of_device.own[self._device[clients]]
        return own

    def _of(self, clients: Ints) -> Batteries:
        """The battery of each client."""
        device = self._device[clients]
        return Batteries._make(column[device] for column in self._of_device)

    def _while_plugged(self, clients: Ints, t_s: Floats, batteries: Floats | None) -> Spell:
        """As ``at``, of clients with batteries."""
        start, end = self._interval(clients, self._day(clients, t_s))
        plugged = (start <= t_s) & (t_s < end)
        available, until = np.zeros(len(clients), dtype=bool), np.empty(len(clients))
        until[~plugged] = self._next_start(clients[~plugged], t_s[~plugged])
        whom, until[plugged] = clients[plugged], end[plugged]
        known = self.batteries(whom) if batteries is None else batteries[plugged]
        since, of = np.maximum(start[plugged], known[:, 1]), self._of(whom)
        missing = np.maximum(of.minimum * of.capacity_j - self._stored(whom, since, known), 0.0)
        reached = since + missing / of.fill_w
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
        """Joules in each client's battery."""
        joules: Floats = batteries[:, 0].copy()
        since = np.minimum(batteries[:, 1], t_s)
        device = self._device[clients]
        last, day = self._day(clients, t_s), self._day(clients, since)
        # Back to the last day whose interval has surely filled the battery, or to the last job.
        back, left = last.copy(), np.flatnonzero(day < last)
        while len(left):
            back[left] -= 1
            start, end = self._interval(clients[left], back[left])
            full = end - np.maximum(start, since[left]) >= self._fills_s[device[left]]
            filled = left[full]
            joules[filled], since[filled] = self._of_device.capacity_j[device[filled]], end[full]
            left = left[~full & (back[left] > day[left])]
        left = np.arange(len(clients))
        while len(left):
            whom = clients[left]
            stop = np.minimum(self._origin_s[whom] + (back[left] + 1) * DAY_S, t_s[left])
            interval = self._interval(whom, back[left])
            joules[left] = self._after(self._of(whom), joules[left], since[left], stop, *interval)
            since[left] = stop
            left = left[back[left] < last[left]]
            back[left] += 1
        return joules

    def _after(
        self, of: Batteries, joules: Floats, since: Floats, stop: Floats, start: Floats, end: Floats
    ) -> Floats:
        """Joules at ``stop``, of those stored at ``since``, with one interval on the charger in between."""
        drain_w = self._params.drain
        before = np.maximum(np.minimum(start, stop) - since, 0.0)
        plugged = np.maximum(np.minimum(end, stop) - np.maximum(start, since), 0.0)
        after = np.maximum(stop - np.maximum(end, since), 0.0)
        joules = np.maximum(joules - drain_w * before, 0.0)
        joules = np.minimum(joules + of.fill_w * plugged, of.capacity_j)
        return np.maximum(joules - drain_w * after, 0.0)
