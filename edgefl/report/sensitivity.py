"""What the figures of runs depend on, and whether their order holds over all that their numbers may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Group, RenderableType

from edgefl.core.corners import Interval
from edgefl.core.errors import UserError
from edgefl.core.repricing import Repriced
from edgefl.core.units import show_joules, show_seconds
from edgefl.planning.recorded import recorded
from edgefl.planning.repricing import Repricer
from edgefl.planning.sensitivity import (
    Effect,
    Records,
    Sensitivity,
    Side,
    Verdict,
    check_factor,
    numbers_of,
    strength,
    study,
)
from edgefl.report.averages import Compared, seeds_together
from edgefl.report.bounds import read_jobs
from edgefl.report.intervals import between, span
from edgefl.report.summary import Summary
from edgefl.report.tables import MISSING, Fitted, Line
from edgefl.store import read

_SHOWN = 8
"""Numbers in the table, and those that are named for each verdict."""
_VISIBLE = 0.005
"""Changes by less than half a percent are left out of the table."""
_SHOWS: Mapping[str, Callable[[float], str]] = {"energy": show_joules, "time": show_seconds}


def of_runs(runs: Sequence[Summary], factor: float) -> Sensitivity:
    """The sensitivity of runs' energies, and of their times where all are blind to time.

    Of runs that all reached their targets it is what they took to reach them. Runs that differ in nothing but
    their seeds are one side.

    Args:
        runs: read from their directories.
        factor: by which assumed numbers are changed; 1 for intervals alone.

    Raises:
        UserError: the factor is below 1, a run is damaged, two have devices or links of one name with other
            numbers, or there is no number to sweep.
    """
    check_factor(factor)
    compared = seeds_together(runs)
    model = _reached(runs)
    found = {id(run): _Run(run, model) for run in runs}
    records: dict[str, Any] = {}
    for run in found.values():
        for owner, record in run.records.items():
            if records.setdefault(owner, record) != record:
                raise UserError(
                    f"{run.name}: {owner} has other numbers than in the runs before",
                    where="--sensitivity",
                    hint="compare runs on the same devices and links, or run them again",
                )
    to = f" to the {model} target" if model else ""
    names = [f"energy{to}", *([f"time{to}"] if all(run.blind for run in found.values()) else [])]
    sides = [Side(_title(one), _mean([found[id(run)] for run in one.runs], names)) for one in compared]
    return study(sides, names, records, numbers_of(records, factor), factor)


def _title(one: Compared) -> str:
    return one.name.replace("\n", " ")


def _reached(runs: Sequence[Summary]) -> str:
    """The model that reached its target in all runs; empty for none."""
    targets = [run.target for run in runs]
    for model, name in (("global", "global_"), ("personal", "personal")):
        if all(target is not None and getattr(target, name) is not None for target in targets):
            return model
    return ""


def _mean(runs: Sequence[_Run], names: Sequence[str]) -> Callable[[Records], Mapping[str, float]]:
    def figures(records: Records) -> dict[str, float]:
        found = [run.figures(records) for run in runs]
        return {name: fmean(one[name.partition(" ")[0]] for one in found) for name in names}

    return figures


class _Run:
    """A run that can be priced again."""

    def __init__(self, run: Summary, model: str) -> None:
        """Reads it; ``model`` is the one whose target counts, empty for the whole run."""
        with read(Path(run.run_dir)) as reader:
            found = recorded(reader)
            if not all(prices.traces for prices in found.plan.prices):
                raise UserError(f"{run.name}: its traces are damaged", where=run.run_dir)
            self._jobs, self.blind = read_jobs(reader), bool(reader.meta.get("blind"))
            self._t_s, self._version = run.virtual_s, None
            if model and run.target:
                reached = run.target.global_ if model == "global" else run.target.personal
                sql = "SELECT MIN(version) AS version FROM evaluations WHERE model = ? AND accuracy >= ?"
                self._t_s = reached.t_s if reached else run.virtual_s
                self._version = reader.query(sql, model, run.target.accuracy)[0]["version"]
        self.name = run.name
        self._plan, self._repricer = found.plan, Repricer(found.plan)
        clients = found.plan.clients
        devices = {clients.devices[one] for one in clients.device[clients.admitted].tolist()}
        links = {clients.links[one] for one in clients.link[clients.admitted].tolist()}
        self._devices, self._links = found.devices, found.links
        self.records: Records = {
            **{name: found.devices[name] for name in sorted(devices)},
            **{f"link {name}": found.links[name] for name in sorted(links)},
        }

    def figures(self, records: Records) -> dict[str, float]:
        """The energy and the time on other numbers; NaN for unknown ones."""
        devices = {name: records.get(name, one) for name, one in self._devices.items()}
        links = {name: records.get(f"link {name}", one) for name, one in self._links.items()}
        there = self._repricer.prices(devices, links)
        found = Repriced(self._jobs, self._plan.prices, there, blind=self.blind)
        seconds = found.seconds(self._version)
        return {
            "energy": found.joules(self._t_s, self._version),
            "time": self._t_s if seconds is None else seconds,
        }


def sensitivity(found: Sensitivity) -> RenderableType:
    """Verdicts, then what changes the figures most."""
    return Group(*_verdicts(found), Line(), *_effects(found), Line(_about(found), "dim"))


def _verdicts(found: Sensitivity) -> Iterator[RenderableType]:
    if found.name:
        yield Line()
        yield Line(found.name, "bold")
    for verdict in found.verdicts:
        yield Line(_said(verdict), "" if verdict.robust else "yellow")
        for turn in verdict.turns[:_SHOWN]:
            way = "rises above" if turn.above else "falls below"
            yield Line(f"  turns where {turn.number} {way} {turn.value}")
        if len(verdict.turns) > _SHOWN:
            yield Line(f"  and where {len(verdict.turns) - _SHOWN} more numbers do; --json has all", "dim")
    for quantity, sides in found.figures.items():
        unknown = [name for name, figure in sides.items() if figure is None]
        if unknown:
            yield Line(f"{quantity} of {', '.join(unknown)} is unknown, so it is not compared", "yellow")


def _said(verdict: Verdict) -> str:
    has = f"{verdict.less} takes less {verdict.quantity} than {verdict.more}"
    if verdict.robust:
        if verdict.ratio is None or verdict.ratio.high is None:
            return f"{has} over all intervals"
        times = span(_times(verdict.ratio.low), _times(verdict.ratio.high))
        return f"{has} over all intervals: {verdict.more} takes {times} as much"
    share = f"{verdict.holds:.0%}" if verdict.holds in {0, 1} else f"{verdict.holds:.1%}"
    together = ", several together do" if verdict.together else ""
    alone = "" if verdict.turns else f"; no number alone turns it{together}"
    return f"{has} at the numbers' own values, and in {share} of {verdict.samples} samples{alone}"


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times"


def _effects(found: Sensitivity) -> Iterator[RenderableType]:
    for quantity, sides in found.figures.items():
        show = _SHOWS[quantity.partition(" ")[0]]
        columns: dict[str, Callable[[Effect], str]] = {
            quantity: lambda row: row.number,
            "range": lambda row: span(row.low, row.high),
        }
        for side in sides:
            columns[side] = _column(quantity, side, show)
        total = {side: between(show, value, found.between[quantity][side]) for side, value in sides.items()}
        strong = sorted(found.effects, key=lambda one, of=quantity: -strength(one, of))  # type: ignore[misc]
        strong = [one for one in strong if strength(one, quantity) > _VISIBLE][:_SHOWN]
        if strong:
            yield Fitted(strong, columns, wraps=("range",))
        yield Line("all together: " + "; ".join(f"{side} {text}" for side, text in total.items()))
        yield Line()


def _column(quantity: str, side: str, show: Callable[[float], str]) -> Callable[[Effect], str]:
    def cell(row: Effect) -> str:
        low, high = row.figures[quantity][side]
        return MISSING if math.isnan(low + high) else between(show, None, Interval(low, high))

    return cell


def _about(found: Sensitivity) -> str:
    swept_ = (
        "intervals from end to end"
        if found.factor == 1
        else f"intervals from end to end, assumed numbers by 1/{found.factor:g} and {found.factor:g} at least"
    )
    return (
        f"{swept_}: each alone while the others stay at their values, and all together in {found.samples} "
        f"Latin hypercube samples (seed {found.seed}); all sides on the same numbers"
    )
