"""Prices by kind of client from traces, on any numbers; neither data nor a method's code is needed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgefl.core.cost import Cost
from edgefl.core.devices import Board
from edgefl.core.link import Link
from edgefl.core.plan import COLUMNS, Clients, Plan, Prices
from edgefl.core.price import Demand, PowerDraw, peak_bytes
from edgefl.core.pricer import Pricer
from edgefl.core.traces import Steps


class Pricers:
    """One pricer per device and number type, made on first use."""

    def __init__(
        self, devices: Mapping[str, Board], made: dict[tuple[str, str], Pricer] | None = None
    ) -> None:
        self._devices = devices
        self._made = {} if made is None else made

    def of(self, device: str, dtype: str) -> Pricer:
        """A device's pricer.

        Raises:
            UserError: a number that it needs is unknown.
        """
        key = device, dtype
        if key not in self._made:
            self._made[key] = Pricer(device, self._devices[device], dtype)
        return self._made[key]


class Repricer:
    """Prices a plan's exchanges on other numbers; neither data nor the method's code is needed.

    What has no price, of refused clients, stays without.
    """

    def __init__(self, plan: Plan) -> None:
        """Takes a plan with its traces."""
        self._prices, self._kinds = plan.prices, plan.clients.one_of_each_kind()
        self._costs = [_costs(prices, self._kinds) for prices in plan.prices]
        self._left_out = [set(np.flatnonzero(np.isnan(prices.work_s)).tolist()) for prices in plan.prices]
        self._made: dict[tuple[str, str], Pricer] = {}

    def prices(self, devices: Mapping[str, Board], links: Mapping[str, Link]) -> tuple[Prices, ...]:
        """The prices on these devices and links, by name.

        Raises:
            UserError: a number that pricing needs is unknown for a device.
        """
        # The times of a device that is the same record as before are known.
        same = {key: made for key, made in self._made.items() if made.device is devices[key[0]]}
        pricers = Pricers(devices, same)
        table = []
        for prices, costs, without in zip(self._prices, self._costs, self._left_out, strict=True):
            here, *ends = quantities(self._kinds, prices.taken, costs, links, pricers, without)
            table.append(cornered(replace(prices, corners=None, **here), ends))
        self._made = same
        return tuple(table)


def _costs(prices: Prices, kinds: Clients) -> list[Cost]:
    """What an exchange costs each kind of client, from its traces."""
    known: dict[str, Cost] = {}
    found = []
    for model, steps in zip(kinds.model.tolist(), prices.taken, strict=True):
        key = repr((model, steps))
        if key not in known:
            known[key] = prices.traces[model].cost(steps)
        found.append(known[key])
    return found


def quantities(
    kinds: Clients,
    steps: Sequence[Steps],
    costs: Sequence[Cost],
    links: Mapping[str, Link],
    pricers: Pricers,
    left_out: Container[int],
) -> list[dict[str, Any]]:
    """The columns of an exchange's ``Prices``; where some kind's corners differ, theirs too.

    Args:
        kinds: a client of each kind.
        steps: of each.
        costs: of each.
        links: by name.
        pricers: of the devices.
        left_out: kinds that have no price.

    Raises:
        UserError: a number that pricing needs is unknown for a device.
    """
    places, peaks = [], []
    for kind, ((device, link, dtype), taken, cost) in enumerate(
        zip(rows_of(kinds), steps, costs, strict=True)
    ):
        count, route = sum(map(Counter.total, taken)), links[link]
        if kind in left_out:
            places.append([Demand.of(cost, math.nan, _NO_DRAW, route, count)])
        else:
            places.append(pricers.of(device, dtype).demands(cost, route, count))
        peaks.append(peak_bytes(cost, dtype))
    # A kind without corners is at its only price there.
    ends = range(max(map(len, places), default=1))
    return [_columns([demands[end % len(demands)] for demands in places], peaks) for end in ends]


def cornered(here: Prices, ends: Sequence[dict[str, Any]]) -> Prices:
    """Prices with their corners, where there are any."""
    if not ends:
        return here
    bare = replace(here, traces=(), taken=())
    cheap, costly = (replace(bare, **end) for end in ends)
    return replace(here, corners=(cheap, costly))


def _columns(demands: Sequence[Demand], peaks: Sequence[int]) -> dict[str, Any]:
    """The columns of ``Prices``."""
    found: dict[str, Any] = {
        name: [getattr(demand, name) for demand in demands] for name in Demand._fields[:-1]
    }
    draws = zip(*(demand.draw for demand in demands), strict=True)
    found |= dict(zip(PowerDraw._fields, map(list, draws), strict=True))
    found["peak_bytes"] = peaks
    return {name: column(found[name]) for name, column in COLUMNS.items()}


_NO_DRAW = PowerDraw(*[math.nan] * len(PowerDraw._fields))


def rows_of(kinds: Clients) -> Iterator[tuple[str, str, str]]:
    """The names of each one's device, link and dtype."""
    columns = (kinds.device, kinds.link, kinds.dtype)
    for device, link, dtype in zip(*(column.tolist() for column in columns), strict=True):
        yield kinds.devices[device], kinds.links[link], kinds.dtypes[dtype]
