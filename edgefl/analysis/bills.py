"""What a run costs beside time, bytes and energy: what follows from its jobs, such as CO2e and money.

A stage's joules are spread evenly from its beginning to its end, and emit what the grid of the client's
region emits in the mean in that time; so does its traffic's network energy. So do those of a radio's tail,
from the end of the transfer that it follows until it is over, whichever job is charged with it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from edgefl.analysis.history import Reached
from edgefl.analysis.run import Run
from edgefl.analysis.sums import DeviceUse, Usage, sums
from edgefl.core import draws
from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability import HOUR_S
from edgefl.core.corners import Interval, at_corners, has_interval, together
from edgefl.core.documents import OPTIONAL
from edgefl.core.event import EnergyTotal
from edgefl.core.piecewise import Piecewise
from edgefl.core.scenario import Tariffs
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document
from edgefl.planning.carbon import Carbon

TOTAL = "total"
J_PER_KWH = 3.6e6
_B_PER_GB = 1e9

WAITING = "waiting"
"""Clients at idle power while they wait for the server; no part of the total."""
Until: TypeAlias = tuple[float, Interval | None]
"""A virtual time, with its bounds where it has any."""


@dataclass(frozen=True)
class Amount:
    """An amount, and how many clients it covers.

    Attributes:
        amount: of the clients of which all numbers are known; None where there are none.
        known: how many clients those are.
        clients: how many there are; of the server it is 1, itself.
        between: bounds of the sum over all clients; None where no number is an interval.
    """

    amount: float | None
    known: int
    clients: int
    between: Interval | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Bill:
    """What a run cost.

    Attributes:
        label: what it is, such as "CO2e".
        whole: of the whole run, by component; "total" is the sum of those that count.
        to_target: the same until each model, "global" and "personal", reached the target; those that did.
        devices: of the clients of each device, as far as that is told.
        about: what is counted, and what is not.
    """

    label: str
    unit: str
    whole: Mapping[str, Amount]
    to_target: Mapping[str, Mapping[str, Amount]]
    about: str
    devices: Mapping[str, Amount] = field(default_factory=dict)


def total(amounts: Sequence[Amount]) -> Amount:
    """The sum of components; unknown where one is. It covers the clients of the one that lacks most."""
    worst = max(amounts, key=lambda each: each.clients - each.known)
    between = None
    if any(each.between for each in amounts):
        between = together(each.between or Interval.of(each.amount, each.amount) for each in amounts)
    terms = [each.amount for each in amounts if each.amount is not None]
    whole = math.fsum(terms) if len(terms) == len(amounts) else None
    return Amount(whole, worst.known, worst.clients, between)


def in_money(run: Run, used: Usage, until: Until, reached: Mapping[str, Reached]) -> Bill | None:
    """What energy, traffic and a server as long as the run lasts cost; None where nobody asked for it."""
    asked = run.reader.meta.get("costs")
    if asked is None:
        return None
    costs = Tariffs.model_validate(asked)
    rates, between_j = costs.rates(), run.between_j(until[0])
    targets = {
        model: _paid(rates, one.energy, one.joules_between, one.bytes, (one.t_s, one.t_s_between))
        for model, one in reached.items()
    }
    words = "; ".join(f"{name} at {getattr(costs, name)}" for name in rates)
    return Bill(
        "cost",
        costs.currency,
        _paid(rates, used.energy, between_j, used.bytes, until),
        targets,
        f"money: {words}; not counted: devices, storage and people",
        _by_device(run, rates, used.devices),
    )


def _paid(
    rates: Mapping[str, float],
    energy: EnergyTotal,
    between_j: Interval | None,
    moved: int,
    until: Until,
) -> dict[str, Amount]:
    all_: dict[str, Any] = {
        "energy": (*energy, between_j),
        "traffic": (moved, 1, 1, None),
        "server": (until[0], 1, 1, until[1]),
    }
    found = {}
    for name, rate in rates.items():
        amount, known, clients, between = all_[name]
        ends = between and Interval(rate * between.low, None if between.high is None else rate * between.high)
        found[name] = Amount(None if amount is None else rate * amount, known, clients, ends)
    return {TOTAL: total(list(found.values())), **found}


def _by_device(run: Run, rates: Mapping[str, float], devices: Mapping[str, DeviceUse]) -> dict[str, Amount]:
    """The energy and the traffic of each device's clients."""
    spent = sums(run, run.clients.device[run.jobs.client], len(run.device_names))
    moved = {name: one.bytes for name, one in zip(run.device_names, spent, strict=True)}
    found = {}
    for name, use in devices.items():
        known = use.joules is not None or "energy" not in rates
        energy = rates.get("energy", 0.0) * (use.joules or 0.0)
        amount = energy + rates.get("traffic", 0.0) * moved[name]
        found[name] = Amount(amount if known else None, use.clients * known, use.clients)
    return found


def in_grams(run: Run, _: Usage | None, until: Until, reached: Mapping[str, Reached]) -> Bill | None:
    """A run's emissions; None where its fleet does not ask for them.

    What its jobs cost is not needed, as it does not say when. A ``UserError`` if what it says of carbon is
    damaged.
    """
    found = run.reader.meta.get("carbon")
    if found is None:
        return None
    document = Document(run.reader.where, {"carbon": found}, context=RESOLVED)
    carbon = validate(Carbon, found, document, ["carbon"])
    hours = {name: region.g_per_kwh or "" for name, region in carbon.regions.items()}
    grid = Intensities(hours, carbon.start or 0.0)
    region = regions_of(carbon, len(run.clients.kind), run.reader.meta["seed"])
    emitted = Emitted(run, carbon, grid, region, until[0])
    targets = {model: emitted.until(one.t_s, (one.t_s, one.t_s_between)) for model, one in reached.items()}
    return Bill("CO2e", "g", emitted.until(math.inf, until), targets, boundary(carbon))


class Emitted:
    """What a run and its clients emitted, as far as it was over by some time.

    Hours are those of the run everywhere, at which its jobs began and ended, at the corners of the devices'
    and links' numbers too.
    """

    def __init__(self, run: Run, carbon: Carbon, grid: "Intensities", region: Ints, end_s: float) -> None:
        """Takes each client's region, (clients,), and when the run ended on its own clock."""
        self._run, self._grid = run, grid
        self._carbon = carbon, *at_corners(carbon)
        jobs, (spans, joules) = run.repriced, _charged(run)
        self._ends_s = [to_s for _, to_s in spans]
        self._g_per_kwh = [grid.mean(region[jobs.client], *span) for span in spans]
        self._g_per_j = [intensity / J_PER_KWH for intensity in self._g_per_kwh]
        self._waiting_g = joules[-1] * self._g_per_j[-1]
        # Joules as of the spans, and seconds of the stages: the run's own, then those at each corner.
        own = joules[:-1], (jobs.receive_s, jobs.work_s, jobs.transmit_s)
        corners = (end.taken(end_s) for end in run.corners)
        self._ways = [own, *(((*at.stage_j, *at.tail_j), at.busy_s) for at in corners)]
        if has_interval(carbon) and not run.corners:
            self._ways *= 3

    def until(self, over_s: float, end: Until) -> dict[str, Amount]:
        """By component, of what was over by a time; the server, and what is owned, count until the end."""
        jobs, (t_s, between) = self._run.repriced, end
        low_s, high_s = between or (t_s, t_s)
        lasted_s = (t_s, low_s, math.nan if high_s is None else high_s)
        count = self._over(over_s, [np.ones(len(jobs))], [jobs.dispatched_s])
        took_part = np.flatnonzero(count)
        sizes = ((jobs.down_bytes, 0), (jobs.up_bytes, 2))
        moved = (size / _B_PER_GB * self._g_per_kwh[at] for size, at in sizes)
        traffic = self._over(over_s, moved, [self._ends_s[at] for _, at in sizes])
        every = []
        for carbon, (_, busy_s), grams, until_s in zip(
            self._carbon, self._ways, self.devices_g(over_s), lasted_s, strict=False
        ):
            per_gb = _by_client(self._run, "link", carbon.kwh_per_gb)
            network = np.where(traffic != 0, per_gb * traffic, 0.0)
            found = {"devices": grams[took_part], "network": network[took_part]}
            if carbon.server is not None:
                pue = carbon.server.pue.known if carbon.server.pue else 1.0
                joules = carbon.server.power.known * pue * np.array([until_s])
                region = np.array([self._grid.regions[carbon.server_region]])
                intensity = self._grid.mean(region, np.zeros(1), np.array([t_s]))
                found["server"] = joules * (intensity / J_PER_KWH)
            if carbon.embodied is not None:
                rates = {name: one.grams_per_s for name, one in carbon.embodied.devices.items()}
                per_s = _by_client(self._run, "device", rates.__getitem__)
                if carbon.embodied.hours == "busy":
                    found["embodied"] = (per_s * self._over(over_s, busy_s))[took_part]
                else:
                    found["embodied"] = (per_s * until_s)[self._run.clients.admitted]
            every.append(found)
        amounts = {name: _amount(*(each[name] for each in every)) for name in every[0]}
        waiting_g = self._over(over_s, [self._waiting_g], [self._ends_s[-1]])
        return {TOTAL: total(list(amounts.values())), **amounts, WAITING: _amount(waiting_g[took_part])}

    def devices_g(self, over_s: float) -> list[Floats]:
        """Of the energy of each client's jobs, NaN where one is unknown: the run's own, and at corners."""
        return [self._over(over_s, map(np.multiply, joules, self._g_per_j)) for joules, _ in self._ways]

    def _over(self, t_s: float, amounts: Iterable[Floats], when: Sequence[Floats] = ()) -> Floats:
        """Of amounts of each job, in the spans' order, the sums by client of what was over by then."""
        client, count = self._run.repriced.client, len(self._run.clients.kind)
        found = np.zeros(count)
        for values, end_s in zip(amounts, when or self._ends_s, strict=False):
            mine = end_s <= t_s
            found += np.bincount(client[mine], weights=values[mine], minlength=count)
        return found


def _by_client(run: Run, key: str, of: Callable[[str], float | None]) -> Floats:
    """A number of each client's device or link, NaN for unknown, (clients,)."""
    found: Floats = np.array([of(row[key]) for row in run.kinds], dtype=np.float64)[run.clients.kind]
    return found


def _amount(values: Floats, *corners: Floats) -> Amount:
    """The sum of what is known, with bounds of the sum of all where they differ from it."""
    known = values[~np.isnan(values)]
    whole = math.fsum(known.tolist()) if len(known) or not len(values) else None
    between = None
    if corners:
        least, most = math.fsum(np.nan_to_num(corners[0]).tolist()), math.fsum(corners[1].tolist())
        if not least == whole == most:
            between = Interval.of(least, most)
    return Amount(whole, len(known), len(values), between)


def boundary(carbon: Carbon) -> str:
    """What is counted and what is not, in a line."""
    hours = carbon.embodied.hours if carbon.embodied else ""
    parts = {
        "the server": carbon.server is not None,
        f"{hours} hours of devices' making" if hours else "making of devices": bool(hours),
    }
    counted = ["energy of jobs", "network", *(name for name, is_in in parts.items() if is_in)]
    left_out = [name for name, is_in in parts.items() if not is_in]
    return (
        f"CO2e at the grid's average intensity, not the marginal one; counted: {', '.join(counted)}; "
        f"not counted: {', '.join(['waiting and idle time between jobs', 'home routers', *left_out])}"
    )


def regions_of(carbon: Carbon, clients: int, root: int) -> Ints:
    """The place of each client's region, (clients,), drawn by the shares from a stream of their own."""
    largest = max(region.share for region in carbon.regions.values())
    shares = np.array([region.share / largest for region in carbon.regions.values()])
    uniform = draws.uniforms(draws.derive(root, "region"), np.arange(clients), count=1)[0]
    ends = np.cumsum(shares)
    place: Ints = np.searchsorted(ends[:-1] / ends[-1], uniform, side="right").astype(np.int64)
    return place


def _charged(run: Run) -> tuple[list[tuple[Floats, Floats]], list[Floats]]:
    """When a run's jobs drew energy, from and to, and how much.

    Of the stages; of the tails before the first transfer, between the two and open in the end; and of
    waiting.
    """
    jobs = run.repriced
    settled_s, settled_j = np.full(len(jobs), np.nan), np.zeros(len(jobs))
    last = np.searchsorted(jobs.job, run.tails.job)
    settled_s[last], settled_j[last] = run.tails.t_s, run.tails.joules
    received_s, worked_s, arrived_s = map(run.over_s, ("received_s", "worked_s", "arrived_s"))
    moved_s = np.where(jobs.transmit_s > 0, arrived_s, received_s)
    first_s = np.where(jobs.receive_s > 0, jobs.dispatched_s, worked_s)
    # A client's radio is the same in every exchange.
    tail_s = run.prices[0].demand.tail_s[jobs.kind]

    def tail(since_s: Floats, until_s: Floats) -> tuple[Floats, Floats]:
        # NaN cuts none short.
        return since_s, np.fmin(since_s + tail_s, until_s)

    charges = [
        (jobs.receive_j + jobs.receive_idle_j, (jobs.dispatched_s, received_s)),
        (jobs.work_j + jobs.work_idle_j, (received_s, worked_s)),
        (jobs.transmit_j + jobs.transmit_idle_j, (worked_s, arrived_s)),
        (jobs.earlier_tail_j, tail(np.where(jobs.earlier < 0, first_s, moved_s[jobs.earlier]), first_s)),
        (jobs.work_tail_j, tail(received_s, worked_s)),
        (settled_j, tail(moved_s, settled_s)),
        (jobs.waiting_j, (arrived_s, jobs.ended_s)),
    ]
    return [span for _, span in charges], [joules for joules, _ in charges]


class Intensities:
    """Intensities of several regions, which repeat when their last hour is over.

    They are given by hour as a ``Region`` has them; the clock begins at ``start_h``. ``regions`` are their
    places, by name.
    """

    def __init__(self, hours: Mapping[str, str], start_h: float) -> None:
        self.regions = {name: place for place, name in enumerate(hours)}
        self._start_h = start_h
        values = [np.array(text.split(), dtype=np.float64) for text in hours.values()]
        self._by_hour = [
            Piecewise(np.arange(len(each), dtype=np.float64), each, len(each)) for each in values
        ]

    def mean(self, region: Ints, start_s: Floats, end_s: Floats) -> Floats:
        """The mean intensity of regions (n,) from one virtual second to another, (n,) each, in g/kWh.

        An interval that ends where it begins has the intensity of that time.
        """
        start, end = start_s / HOUR_S + self._start_h, end_s / HOUR_S + self._start_h
        found = np.zeros(len(region))
        for place in np.unique(region).tolist():
            mine = np.flatnonzero(region == place)
            found[mine] = self._by_hour[place].mean(start[mine], end[mine])
        return found
