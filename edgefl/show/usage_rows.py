"""How busy clients were, who took part, and what was wasted, as rows of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds, show_share
from edgefl.show.averages import Compared, Figure, Row, Show, amount
from edgefl.show.intervals import counted, covered, of_clients
from edgefl.show.summary import Summary
from edgefl.show.table import MISSING, UNKNOWN

# What is more than this many times another amount is no percentage of it.
_MANY_TIMES = 10


def usage_rows(runs: Sequence[Summary]) -> Iterator[Row]:
    """How busy clients were, what of their work was wasted if any was, and what else stopped a run."""
    yield amount("utilisation", show_share, lambda run: run.utilisation, "share", "", key="utilisation")
    if any(run.fairness is not None and run.fairness < 1 for run in runs):
        yield _PARTICIPATION
    if any(run.wasted.jobs for run in runs):
        yield Row("jobs merged / late / lost / cut", _jobs)
        yield from _WASTED
    if any(map(stopped, runs)):
        yield Row("stopped by", lambda one: one.all(lambda run: stopped(run) or "rounds"))


def _participation(one: Compared) -> str:
    if one.first.fairness is None:
        return MISSING
    merged = counted([run.merged_clients for run in one.runs])
    admitted = counted([run.clients - run.refused for run in one.runs])
    return f"{merged} of {admitted}, {one.show('{:.2f}'.format, lambda run: run.fairness)}"


def _jobs(one: Compared) -> str:
    endings = zip(*(run.spent.values() for run in one.runs), strict=True)
    return " / ".join(f"{sum(part.jobs for part in parts) / len(parts):,.0f}" for parts in endings)


def _shared(
    one: Compared, show: Show, part: Figure, whole: Figure, sign: str = "", *, is_energy: bool = False
) -> str:
    """A quantity and its share of a whole, with a sign before the share if it is no part of it."""
    energies = [run.energy for run in one.runs]
    text = one.show(show, part, UNKNOWN if any(each.energy_clients for each in energies) else MISSING)
    some, all_ = (sum(figure(run) or 0.0 for run in one.runs) for figure in (part, whole))
    ratio = some / all_ if all_ else 0.0
    notes = [f"{sign}{show_share(ratio)}" if ratio < _MANY_TIMES else f"{ratio:,.0f}x"] if ratio else []
    if is_energy and some and any(each.energy_known < each.energy_clients for each in energies):
        notes.append(of_clients(*zip(*(each[1:] for each in energies), strict=True)))
    return f"{text} ({', '.join(notes)})" if notes else text


def part_of(
    label: str, show: Show, part: Figure, whole: Figure, unit: str, key: str, *, sign: str = ""
) -> Row:
    """A quantity with its share of a whole; less is better."""

    def figure(run: Summary) -> float | None:
        return None if unit == "J" and covered(run.energy, None).whole is None else part(run)

    cell = partial(_shared, show=show, part=part, whole=whole, sign=sign, is_energy=unit == "J")
    return Row(label, cell, figure, unit, "lower", key)


_PARTICIPATION = Row(
    "participation, fairness",
    _participation,
    figure=lambda run: run.fairness,
    unit="share",
    better="higher",
    key="fairness",
)
_WASTED = (
    part_of(
        "wasted bytes",
        show_bytes,
        lambda run: run.wasted.bytes,
        lambda run: run.down_bytes + run.up_bytes,
        "B",
        "wasted.down_bytes + wasted.up_bytes",
    ),
    part_of(
        "wasted work",
        show_flops,
        lambda run: run.wasted.flops,
        lambda run: run.flops,
        "FLOP",
        "wasted.flops",
    ),
    part_of(
        "wasted energy",
        show_joules,
        lambda run: run.wasted.joules,
        lambda run: run.energy.joules,
        "J",
        "wasted.joules",
    ),
    part_of(
        "wasted client time",
        show_seconds,
        lambda run: run.wasted.client_s,
        lambda run: run.client_s,
        "s",
        "wasted.client_s",
    ),
)


def stopped(run: Summary) -> str:
    """What stopped the run before its last round, if anything did."""
    return run.stopped if run.stopped and run.stopped != "rounds" else ""
