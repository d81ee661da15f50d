"""What the figures of runs depend on, and whether their order holds over all that their numbers may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from rich.console import Group, RenderableType

from edgefl.analysis.bounds import depends, read_jobs
from edgefl.analysis.reached import Reached, Target
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
from edgefl.show.averages import Compared, seeds_together
from edgefl.show.intervals import between, span
from edgefl.show.rows import MODELS
from edgefl.show.summary import Summary
from edgefl.show.table import MISSING, Column, Line, Table
from edgefl.store import read

_SHOWN = 8
"""Numbers in the table, and those that are named for each verdict."""
_VISIBLE = 0.005
"""Changes by less than half a percent are left out of the table."""
_SHOWS: Mapping[str, Callable[[float], str]] = {"energy": show_joules, "time": show_seconds}


def of_runs(runs: Sequence[Summary], factor: float) -> Sensitivity:
    """The sensitivity of runs, see ``of_groups``; those that differ in nothing but their seeds are one."""
    return of_groups(seeds_together(runs), factor)


def of_groups(compared: Sequence[Compared], factor: float, *, whole: bool = False) -> Sensitivity:
    """The sensitivity of groups' energies, and of their times where all runs are blind to time.

    Of runs that all reached their targets it is what they took to reach them.

    Args:
        compared: a side each; the runs are read from their directories.
        factor: by which assumed numbers are changed; 1 for intervals alone.
        whole: whether it is that of the whole runs too, and of what those took to reach their targets that
            did, where not all have.

    Raises:
        UserError: the factor is below 1, a run is damaged, two have devices or links of one name with other
            numbers, or there is no number to sweep.
    """
    check_factor(factor)
    runs = [run for one in compared for run in one.runs]
    model = _reached(runs, any if whole else all)
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
    ends = [*([f" to the {model} target"] if model else []), *([""] if whole or not model else [])]
    kinds = ["energy", *(["time"] if all(run.blind for run in found.values()) else [])]
    names = [kind + end for end in ends for kind in kinds]
    sides = [Side(title(one), _mean([found[id(run)] for run in one.runs], names)) for one in compared]
    return study(sides, names, records, numbers_of(records, factor), factor)


def quantity(key: str) -> str:
    """What a ``Row``'s figure is called here; empty for one that is not studied."""
    model = next((model for model in MODELS if key.startswith(f"target.{model}.")), "")
    kind = _KINDS.get(key.removeprefix(f"target.{model}."), "")
    return f"{kind} to the {model} target" if kind and model else kind


_KINDS = {"joules": "energy", "virtual_s": "time", "t_s": "time"}


def title(one: Compared) -> str:
    """What a group is called as a side."""
    return one.name.replace("\n", " ")


def _reached(runs: Sequence[Summary], which: Callable[[Iterable[bool]], bool]) -> str:
    """The model that reached its target in all runs, else in ``which`` of them; empty for none."""
    found = {
        model: [run.target is not None and _of(run.target, model) is not None for run in runs]
        for model in MODELS
    }
    return next((model for test in (all, which) for model in MODELS if test(found[model])), "")


def _of(target: Target, model: str) -> Reached | None:
    return target.global_ if model == "global" else target.personal


def _mean(runs: Sequence[_Run], names: Sequence[str]) -> Callable[[Records], Mapping[str, float]]:
    def figures(records: Records) -> dict[str, float]:
        found = [run.figures(records) for run in runs]
        return {name: fmean(one.get(name, math.nan) for one in found) for name in names}

    return figures


class _Run:
    """A run that can be priced again."""

    def __init__(self, run: Summary, model: str) -> None:
        """Reads it; ``model`` is the one whose target counts, empty for the whole run."""
        with read(Path(run.run_dir)) as reader:
            found = recorded(reader)
            self._jobs, (self.blind, self._shared) = read_jobs(reader), depends(reader)
            # Until when, and at which version of the server, by what the names of figures end with.
            self._ends: dict[str, tuple[float, int | None]] = {"": (run.virtual_s, None)}
            if model and run.target:
                reached = _of(run.target, model)
                sql = "SELECT MIN(version) AS version FROM evaluations WHERE model = ? AND accuracy >= ?"
                if reached:
                    version = reader.query(sql, model, run.target.accuracy)[0]["version"]
                    self._ends[f" to the {model} target"] = reached.t_s, version
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
        """The energies and the times on other numbers, by quantity; NaN for unknown ones."""
        devices = {name: records.get(name, one) for name, one in self._devices.items()}
        links = {name: records.get(f"link {name}", one) for name, one in self._links.items()}
        there = self._repricer.prices(devices, links)
        found = Repriced(self._jobs, self._plan.prices, there, blind=self.blind, shared=self._shared)
        figures = {}
        for end, (t_s, version) in self._ends.items():
            seconds = found.seconds(version)
            figures[f"energy{end}"] = found.joules(t_s, version)
            figures[f"time{end}"] = t_s if seconds is None else seconds
        return figures


def sensitivity(found: Sensitivity) -> RenderableType:
    """Verdicts, then what changes the figures most."""
    return Group(*_verdicts(found), Line(), *_effects(found), Line(about(found), "dim"))


def _verdicts(found: Sensitivity) -> Iterator[RenderableType]:
    if found.name:
        yield Line()
        yield Line(found.name, "bold")
    for verdict in found.verdicts:
        first, *turns = said(verdict)
        yield Line(first, "" if verdict.robust else "yellow")
        yield from map(Line, turns[:_SHOWN])
        if len(turns) > _SHOWN:
            yield Line(f"  and where {len(turns) - _SHOWN} more numbers do; --json has all", "dim")
    for quantity, sides in found.figures.items():
        unknown = [name for name, figure in sides.items() if figure is None]
        if unknown:
            yield Line(f"{quantity} of {', '.join(unknown)} is unknown, so it is not compared", "yellow")


def said(verdict: Verdict) -> list[str]:
    """A verdict in words, then a line for each number that turns it alone."""
    ways = ((turn, "rises above" if turn.above else "falls below") for turn in verdict.turns)
    return [_said(verdict), *(f"  turns where {turn.number} {way} {turn.value}" for turn, way in ways)]


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
    for table in effects(found):
        if table.numbers:
            columns = [Column(head, of, left=head == "range") for head, of in table.columns.items()]
            yield Table(columns, table.numbers)
        totals = "; ".join(f"{side} {text}" for side, text in table.together.items())
        yield Line(f"all together: {totals}")
        yield Line()


class Effects(NamedTuple):
    """What changes a quantity most.

    Attributes:
        quantity: its name.
        numbers: those that change it most, first.
        columns: their texts: the number, its range, and each side's figure at both ends.
        together: each side's figure, and between what it is with all numbers at once.
    """

    quantity: str
    numbers: Sequence[Effect]
    columns: Mapping[str, Callable[[Effect], str]]
    together: Mapping[str, str]


def effects(found: Sensitivity) -> Iterator[Effects]:
    """What changes each quantity most."""
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
        yield Effects(quantity, strong, columns, total)


def _column(quantity: str, side: str, show: Callable[[float], str]) -> Callable[[Effect], str]:
    def cell(row: Effect) -> str:
        low, high = row.figures[quantity][side]
        return MISSING if math.isnan(low + high) else between(show, None, Interval(low, high))

    return cell


def about(found: Sensitivity) -> str:
    """How the numbers were swept."""
    swept_ = (
        "intervals from end to end"
        if found.factor == 1
        else f"intervals from end to end, assumed numbers by 1/{found.factor:g} and {found.factor:g} at least"
    )
    return (
        f"{swept_}: each alone while the others stay at their values, and all together in {found.samples} "
        f"Latin hypercube samples (seed {found.seed}); all sides on the same numbers"
    )
