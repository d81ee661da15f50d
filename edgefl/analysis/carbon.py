"""What a run emitted, in grams of CO2e: by what emitted it, until its end and until its target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from edgefl.analysis.carbon_sums import Sums, Whom, sums_of
from edgefl.analysis.run import Run
from edgefl.core.carbon import Carbon, intensities
from edgefl.core.corners import Corner, Interval, at_corner, has_interval, together
from edgefl.core.documents import OPTIONAL
from edgefl.core.draws import Floats
from edgefl.core.intensity import Intensities, grams
from edgefl.core.units import RESOLVED
from edgefl.core.validation import validate
from edgefl.core.yamls import Document

COMPONENTS = ("devices", "network", "server", "embodied")


@dataclass(frozen=True)
class Amount:
    """A mass, and how many clients it covers.

    Attributes:
        grams: of the clients of which all numbers are known; None where there are none.
        known: how many clients those are.
        clients: how many there are; of the server it is 1, itself.
        between: bounds of the sum over all clients; None where no number is an interval.
    """

    grams: float | None
    known: int
    clients: int
    between: Interval | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Emissions:
    """What was emitted, by what emitted it.

    Attributes:
        devices: the energy of clients' jobs.
        network: the traffic.
        server: its energy; None where it is not counted.
        embodied: the share of devices' making; None where it is not counted.
        total: the sum.
        waiting: clients at idle power while they wait for the server; no part of the sum.
    """

    devices: Amount
    network: Amount
    server: Amount | None = field(metadata=OPTIONAL)
    embodied: Amount | None = field(metadata=OPTIONAL)
    total: Amount
    waiting: Amount


@dataclass(frozen=True)
class Footprint:
    """A run's carbon emissions.

    Attributes:
        emitted: in the whole run.
        to_target: until each model, "global" and "personal", reached the target; those that did.
        regions: how many clients each region has.
        boundary: what is counted, and what is not.
    """

    emitted: Emissions
    to_target: Mapping[str, Emissions]
    regions: Mapping[str, int]
    boundary: str


class Until(NamedTuple):
    """A virtual time, with its bounds where it has any."""

    t_s: float
    between: Interval | None = None

    @property
    def corners(self) -> tuple[float, float]:
        """The least and the most that it can be; NaN for no bound."""
        if self.between is None:
            return self.t_s, self.t_s
        return self.between.low, math.nan if self.between.high is None else self.between.high


def footprint(run: Run, ended: Until, reached: Mapping[str, Until]) -> Footprint | None:
    """A run's emissions; None where its fleet does not ask for them.

    Args:
        run: the run.
        ended: its length.
        reached: when each model reached the target.

    Raises:
        UserError: what it says of carbon is damaged.
    """
    found = run.reader.meta.get("carbon")
    if found is None:
        return None
    document = Document(run.reader.where, {"carbon": found}, context=RESOLVED)
    carbon = validate(Carbon, found, document, ["carbon"])
    whom, grid = Whom.read(run, carbon), intensities(carbon)
    times = [ended, *reached.values()]
    until = [math.inf, *(each.t_s for each in reached.values())]
    sums = sums_of(run, run.bounds.by_job(ended.t_s) if run.bounds else (), whom, grid, until)
    if has_interval(carbon) and run.bounds is None:
        sums = [each * 3 for each in sums]
    whole, *targets = (_emissions(carbon, whom, grid, each, t) for each, t in zip(sums, times, strict=True))
    counts = np.bincount(whom.region, minlength=len(carbon.regions)).tolist()
    dealt_to = {name: count for name, count in zip(carbon.regions, counts, strict=True) if count}
    return Footprint(whole, dict(zip(reached, targets, strict=True)), dealt_to, boundary(carbon))


def _emissions(
    carbon: Carbon, whom: Whom, grid: Intensities, sums: Sequence[Sums], until: Until
) -> Emissions:
    """What was emitted, of sums: the run's, and where there are bounds, those at both corners."""
    records = (carbon, at_corner(carbon, Corner.CHEAP), at_corner(carbon, Corner.COSTLY))
    ends_s = (until.t_s, *until.corners)
    every = [
        _components(record, whom, grid, own, until.t_s, end_s)
        for record, own, end_s in zip(records, sums, ends_s, strict=False)
    ]
    found = {name: _amount(*(each[name] for each in every)) for name in every[0]}
    return Emissions(
        **{name: found.get(name) for name in COMPONENTS},  # type: ignore[arg-type]  # two are always there
        total=_sum(list(found.values())),
        waiting=_amount(sums[0].waiting_g[np.flatnonzero(sums[0].jobs)]),
    )


def _components(
    carbon: Carbon, whom: Whom, grid: Intensities, sums: Sums, t_s: float, lasted_s: float
) -> dict[str, Floats]:
    """What each component emitted, by client, NaN for unknown; the server's is one number.

    The hours are those until ``t_s``, and the server and what is owned count for ``lasted_s``.
    """
    took_part = np.flatnonzero(sums.jobs)
    per_gb = _floats([carbon.kwh_per_gb(name) for name in whom.links])[whom.link]
    traffic = np.where(sums.traffic != 0, per_gb * sums.traffic, 0.0)
    found = {"devices": sums.devices_g[took_part], "network": traffic[took_part]}
    if carbon.server is not None:
        joules = carbon.server.site_w * np.array([lasted_s])
        region = np.array([grid.regions[carbon.server_region]])
        intensity = grid.mean(region, np.zeros(1), np.array([t_s]))
        found["server"] = grams(joules, intensity)
    if carbon.embodied is not None:
        per_s = _floats([carbon.embodied.devices[name].grams_per_s for name in whom.devices])[whom.device]
        if carbon.embodied.hours == "busy":
            found["embodied"] = (per_s * sums.busy_s)[took_part]
        else:
            found["embodied"] = (per_s * lasted_s)[np.flatnonzero(whom.admitted)]
    return found


def _floats(values: Sequence[float | None]) -> Floats:
    return np.array([math.nan if value is None else value for value in values])


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


def _sum(amounts: Sequence[Amount]) -> Amount:
    """The sum of components; unknown where one is. It covers the clients of the one that lacks most."""
    worst = max(amounts, key=lambda each: each.clients - each.known)
    between = None
    if any(each.between for each in amounts):
        between = together(each.between or Interval.of(each.grams, each.grams) for each in amounts)
    terms = [each.grams for each in amounts if each.grams is not None]
    whole = math.fsum(terms) if len(terms) == len(amounts) else None
    return Amount(whole, worst.known, worst.clients, between)


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
