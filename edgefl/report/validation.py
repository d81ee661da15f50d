"""Predictions beside measurements as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType

from edgefl.core.units import show_joules, show_seconds, show_share
from edgefl.planning.validation import Compared, Comparison, Score, Total, Validation
from edgefl.report.tables import MISSING, UNKNOWN, Fitted, Line, figures


def validation(found: Validation) -> RenderableType:
    """A table for each file and quantity, and one of their scores."""
    tables = (block for comparison in found.comparisons for block in _comparison(comparison))
    return Group(*tables, scores(found.comparisons, found.totals))


def _comparison(found: Comparison) -> Iterator[RenderableType]:
    yield Line(f"{found.name}: {found.title}", "bold")
    yield Line(f"{found.board}; {found.measures}; {found.runtime}", "dim")
    show = show_seconds if found.quantity == "time" else show_joules
    columns = {
        "network": lambda row: row.network,
        "batch": lambda row: str(row.batch),
        "measured": lambda row: show(row.measured),
        "predicted": lambda row: UNKNOWN if row.predicted is None else show(row.predicted),
        "error": _error,
    }
    if any(row.remark for row in found.rows):
        columns["remark"] = lambda row: row.remark
    yield Fitted(found.rows, columns, wraps=("remark",))
    yield Line()


def _error(row: Compared) -> str:
    return MISSING if row.error is None else f"{row.error:+.0%}"


def scores(comparisons: Sequence[Comparison], totals: Sequence[Total]) -> RenderableType:
    """A row for each comparison, and one for each total."""
    heads = ("", "", "rows", "median error", "Spearman", "Kendall")
    rows = [(one.name, _what(one), *_score(one.score)) for one in comparisons]
    for total in totals:
        boards = "1 board" if total.boards == 1 else f"{total.boards} boards"
        rows.append((f"all: {total.networks} networks on {boards}", _what(total), *_score(total.score)))
    return figures(heads, rows, left=2)


def _what(found: Comparison | Total) -> str:
    return found.measures if found.quantity == "time" else f"{found.measures}: {found.quantity}"


def _score(found: Score) -> Iterator[str]:
    left_out = f" (of {found.rows + found.left_out})" if found.left_out else ""
    yield f"{found.rows}{left_out}"
    yield MISSING if found.median_error is None else show_share(found.median_error)
    for rank in (found.spearman, found.kendall):
        yield MISSING if rank is None else f"{rank:.2f}"
