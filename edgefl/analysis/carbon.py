"""What a run emitted, in grams of CO2e: by what emitted it, until its end and until its target.

A stage's joules are spread evenly from its beginning to its end, and emit what the grid of the client's
region emits in the mean in that time; so does its traffic's network energy. So do those of a radio's tail,
from the end of the transfer that it follows until it is over, whichever job is charged with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edgefl.analysis.bills import TOTAL, Amount, Bill, BilledUntil, total
from edgefl.analysis.history import Reached
from edgefl.analysis.repricing import Taken, chunks
from edgefl.analysis.run import Run
from edgefl.analysis.sums import Usage
from edgefl.core import draws
from edgefl.core.arrays import Floats, Ints
from edgefl.core.corners import Interval, at_corners, has_interval
from edgefl.core.piecewise import Piecewise
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document
from edgefl.planning.carbon import Carbon

HOUR_S = 3600.0
J_PER_KWH = 3.6e6
_B_PER_GB = 1e9

WAITING = "waiting"
"""Clients at idle power while they wait for the server; no part of the total."""


def bill(run: Run, _: Usage | None, ended: BilledUntil, reached: Mapping[str, Reached]) -> Bill | None:
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
    region = dealt(carbon, len(run.clients.kind), run.reader.meta["seed"])
    times = [ended, *(one.until for one in reached.values())]
    until = [math.inf, *(one.t_s for one in reached.values())]
    sums = sums_of(run, [end.by_job(ended.t_s) for end in run.corners], region, grid, until)
    if has_interval(carbon) and not run.corners:
        sums = [each * 3 for each in sums]
    whole, *targets = (_emissions(run, carbon, grid, each, t) for each, t in zip(sums, times, strict=True))
    return Bill("CO2e", "g", whole, dict(zip(reached, targets, strict=True)), boundary(carbon))


def _emissions(
    run: Run, carbon: Carbon, grid: Intensities, sums: Sequence[Sums], until: BilledUntil
) -> dict[str, Amount]:
    """What was emitted, of sums: the run's, and where there are bounds, those at both corners."""
    records = (carbon, *at_corners(carbon))
    ends_s = (until.t_s, *until.corners)
    every = [
        _components(run, record, grid, own, until.t_s, end_s)
        for record, own, end_s in zip(records, sums, ends_s, strict=False)
    ]
    found = {name: _amount(*(each[name] for each in every)) for name in every[0]}
    waiting = _amount(sums[0].waiting_g[np.flatnonzero(sums[0].jobs)])
    return {TOTAL: total(list(found.values())), **found, WAITING: waiting}


def _components(
    run: Run, carbon: Carbon, grid: Intensities, sums: Sums, t_s: float, lasted_s: float
) -> dict[str, Floats]:
    """What each component emitted, by client, NaN for unknown; the server's is one number.

    The hours are those until ``t_s``, and the server and what is owned count for ``lasted_s``.
    """
    took_part = np.flatnonzero(sums.jobs)
    per_gb = _by_client(run, "link", carbon.kwh_per_gb)
    traffic = np.where(sums.traffic != 0, per_gb * sums.traffic, 0.0)
    found = {"devices": sums.devices_g[took_part], "network": traffic[took_part]}
    if carbon.server is not None:
        pue = carbon.server.pue.known if carbon.server.pue else 1.0
        joules = carbon.server.power.known * pue * np.array([lasted_s])
        region = np.array([grid.regions[carbon.server_region]])
        intensity = grid.mean(region, np.zeros(1), np.array([t_s]))
        found["server"] = joules * (intensity / J_PER_KWH)
    if carbon.embodied is not None:
        made = carbon.embodied.devices
        per_s = _by_client(run, "device", lambda name: made[name].grams_per_s)
        if carbon.embodied.hours == "busy":
            found["embodied"] = (per_s * sums.busy_s)[took_part]
        else:
            found["embodied"] = (per_s * lasted_s)[run.clients.admitted]
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


def dealt(carbon: Carbon, clients: int, root: int) -> Ints:
    """The place of each client's region, (clients,), drawn by the shares from a stream of their own."""
    largest = max(region.share for region in carbon.regions.values())
    shares = np.array([region.share / largest for region in carbon.regions.values()])
    uniform = draws.uniforms(draws.key(root, "region"), np.arange(clients), count=1)[0]
    ends = np.cumsum(shares)
    place: Ints = np.searchsorted(ends[:-1] / ends[-1], uniform, side="right").astype(np.int64)
    return place


class Sums(NamedTuple):
    """Sums over each client's jobs, (clients,).

    Attributes:
        jobs: how many.
        devices_g: of their energy; NaN where one is unknown.
        traffic: gigabytes times g/kWh.
        busy_s: receiving, working and sending.
        waiting_g: of their energy while they wait for the server; NaN where one is unknown.
    """

    jobs: Floats
    devices_g: Floats
    traffic: Floats
    busy_s: Floats
    waiting_g: Floats


def sums_of(
    run: Run,
    corners: Sequence[Iterator[tuple[slice, Taken]]],
    region: Ints,
    grid: Intensities,
    until: Sequence[float],
) -> list[list[Sums]]:
    """The sums over what was over at given times, by time: the run's own, then one at each corner.

    Hours are those of the run everywhere, at which its jobs began and ended.

    Args:
        corners: what they took at corners of the devices' and links' numbers; see ``Repriced.by_job``.
        region: each client's, (clients,).
    """
    clients = len(region)
    own = [Sums(*(np.zeros(clients) for _ in Sums._fields)) for _ in until]
    sums = [
        [one, *(one._replace(devices_g=np.zeros(clients), busy_s=np.zeros(clients)) for _ in corners)]
        for one in own
    ]
    for (places, spans, joules), *ends in zip(_charged(run), *corners, strict=True):
        some = run.repriced[places]
        ends_s = [end_s for _, end_s in spans]
        per_kwh = [grid.mean(region[some.client], *span) for span in spans]
        per_j = [intensity / J_PER_KWH for intensity in per_kwh]
        gigabytes = (moved / _B_PER_GB for moved in (some.down_bytes, 0 * some.down_bytes, some.up_bytes))
        busy_s = some.receive_s, some.work_s, some.transmit_s
        ways = [(joules[:-1], busy_s), *(((*at.stage_j, *at.tail_j), at.busy_s) for _, at in ends)]
        # Of which sums, of which way, how much, and when it was over.
        amounts: list[tuple[str, int, Floats, Floats]] = [
            ("jobs", 0, np.ones(len(some.client)), some.dispatched_s),
            ("waiting_g", 0, joules[-1] * per_j[-1], ends_s[-1]),
            *(("traffic", 0, one * per_kwh[place], ends_s[place]) for place, one in enumerate(gigabytes)),
        ]
        for way, (drawn_j, lasted_s) in enumerate(ways):
            amounts += [
                ("devices_g", way, one * per_j[place], ends_s[place]) for place, one in enumerate(drawn_j)
            ]
            amounts += [("busy_s", way, one, ends_s[place]) for place, one in enumerate(lasted_s)]
        for t_s, each in zip(until, sums, strict=True):
            for name, way, values, end_s in amounts:
                over, total = end_s <= t_s, getattr(each[way], name)
                total += np.bincount(some.client[over], weights=values[over], minlength=clients)
    return sums


def _charged(run: Run) -> Iterator[tuple[slice, list[tuple[Floats, Floats]], list[Floats]]]:
    """When a run's jobs drew energy, from and to, and how much; some jobs at a time.

    Of the stages; of the tails before the first transfer, between the two and open in the end; and of
    waiting.
    """
    rows, jobs = run.jobs, run.repriced
    settled_s, settled_j = np.full(len(rows), np.nan), np.zeros(len(rows))
    last = np.searchsorted(rows.job, run.tails.job)
    settled_s[last], settled_j[last] = run.tails.t_s, run.tails.joules
    joules = [
        rows.receive_j + rows.receive_idle_j,
        rows.work_j + rows.work_idle_j,
        rows.transmit_j + rows.transmit_idle_j,
        rows.earlier_tail_j,
        rows.work_tail_j,
        settled_j,
        rows.waiting_j,
    ]
    received_s, worked_s, arrived_s = map(run.over_s, ("received_s", "worked_s", "arrived_s"))
    moved_s = np.where(jobs.transmit_s > 0, arrived_s, received_s)
    first_s = np.where(jobs.receive_s > 0, jobs.dispatched_s, worked_s)
    # A client's radio is the same in every exchange.
    tail_s = run.prices[0].tail_s[jobs.kind]

    def tail(since_s: Floats, until_s: Floats) -> tuple[Floats, Floats]:
        # NaN cuts none short.
        return since_s, np.fmin(since_s + tail_s, until_s)

    spans = [
        (jobs.dispatched_s, received_s),
        (received_s, worked_s),
        (worked_s, arrived_s),
        tail(np.where(jobs.earlier < 0, first_s, moved_s[jobs.earlier]), first_s),
        tail(received_s, worked_s),
        tail(moved_s, settled_s),
        (arrived_s, jobs.ended_s),
    ]
    for places in chunks(jobs):
        yield (
            places,
            [(start_s[places], end_s[places]) for start_s, end_s in spans],
            [one[places] for one in joules],
        )


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
