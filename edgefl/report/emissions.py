"""Emissions of runs, as rows of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from edgefl.report.averages import Compared, Row
from edgefl.report.carbon import Amount
from edgefl.report.intervals import Covered, covered_rows
from edgefl.report.summary import Summary
from edgefl.report.tables import MISSING, NOT_REACHED


def emission_rows(label: str, component: str, runs: Sequence[Summary]) -> Iterator[Row]:
    """The rows of what a component emitted, or "total"."""
    yield from _rows(label, f"emitted.{component}", runs)


def emission_to_rows(label: str, model: str, runs: Sequence[Summary]) -> Iterator[Row]:
    """The rows of what was emitted until a model reached the target."""
    yield from _rows(label, f"to_target.{model}.total", runs)


def _rows(label: str, place: str, runs: Sequence[Summary]) -> Iterator[Row]:
    """Those of an amount of ``Summary.carbon``."""
    model = place.split(".")[1]

    def amount(run: Summary) -> Covered | None:
        found = _amount_at(run, place.split("."))
        return Covered(found.grams, found.known, found.clients, found.between) if found else None

    def nothing(one: Compared) -> str:
        asked = place.startswith("to_") and one.first.target
        return NOT_REACHED if asked and any(r.carbon and model in r.accuracy for r in one.runs) else MISSING

    row = Row(label, nothing, unit="g", better="lower", key=f"carbon.{place}.grams")
    yield from covered_rows(row, runs, amount, nothing)


def _amount_at(run: Summary, place: Sequence[str]) -> Amount | None:
    found: Any = run.carbon
    for name in place:
        found = found.get(name) if isinstance(found, Mapping) else getattr(found, name, None)
    return cast("Amount | None", found)
