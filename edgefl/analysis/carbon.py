"""What a run emitted, in grams of CO2e: by what emitted it, until its end and until its target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from edgefl.analysis.bills import TOTAL, Amount, Bill, Until, total
from edgefl.analysis.carbon_sums import Sums, Whom, sums_of
from edgefl.analysis.run import Run
from edgefl.core.carbon import Carbon, intensities
from edgefl.core.corners import Corner, Interval, at_corner, has_interval
from edgefl.core.draws import Floats
from edgefl.core.intensity import Intensities, grams
from edgefl.core.units import RESOLVED
from edgefl.core.validation import validate
from edgefl.core.yamls import Document

WAITING = "waiting"
"""Clients at idle power while they wait for the server; no part of the total."""


def footprint(run: Run, ended: Until, reached: Mapping[str, Until]) -> Bill | None:
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
    return Bill("CO2e", "g", whole, dict(zip(reached, targets, strict=True)), boundary(carbon))


def _emissions(
    carbon: Carbon, whom: Whom, grid: Intensities, sums: Sequence[Sums], until: Until
) -> dict[str, Amount]:
    """What was emitted, of sums: the run's, and where there are bounds, those at both corners."""
    records = (carbon, at_corner(carbon, Corner.CHEAP), at_corner(carbon, Corner.COSTLY))
    ends_s = (until.t_s, *until.corners)
    every = [
        _components(record, whom, grid, own, until.t_s, end_s)
        for record, own, end_s in zip(records, sums, ends_s, strict=False)
    ]
    found = {name: _amount(*(each[name] for each in every)) for name in every[0]}
    waiting = _amount(sums[0].waiting_g[np.flatnonzero(sums[0].jobs)])
    return {TOTAL: total(list(found.values())), **found, WAITING: waiting}


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
