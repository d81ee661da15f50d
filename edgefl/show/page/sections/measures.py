"""Measures over rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.core.draws import Floats
from edgefl.store import Reader

QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)
"""Of values over clients: the least, the lowest tenth's end, the median, the highest tenth's, the largest."""

_SERIES = "SELECT measure, figure, model, MIN(rowid) AS series FROM measures GROUP BY 1, 2, 3 ORDER BY series"
_LABELS = "SELECT label, MIN(rowid) AS place FROM measures GROUP BY label ORDER BY label != '', place"
_VALUES = f"""
WITH series AS MATERIALIZED ({_SERIES}), labels AS MATERIALIZED ({_LABELS})
SELECT series, place, version, round, IFNULL(client, -1), value
FROM measures JOIN series USING (measure, figure, model) JOIN labels USING (label) ORDER BY measures.rowid
"""  # noqa: S608 - our own names
_DTYPES: Mapping[str, type[np.generic]] = {
    **dict.fromkeys(("series", "label", "version", "round", "client"), np.int64),
    "value": np.float64,
}

PAIRS = "pairs"
"""How figures of pairs of clients begin, each a row of one client whose label is the other."""

_Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class MeasureSeries:
    """One figure of one measure of one run, over the versions that were evaluated.

    Attributes:
        run: its place.
        measure: its name.
        figure: which of its figures; empty for the one that it is named after.
        model: of which model: "global", "trained" (by a participant, before the merge) or "personal".
        quantile: None for the values of all clients together; else those are quantiles over the clients that
            have a value of their own, and this is which: one of ``QUANTILES``.
        unit: "share", another, or empty.
        version: the versions, ascending.
        round: the round after which each was evaluated, from 0.
        labels: classes, layers or others, in the measure's order; empty for all together, which is first.
        values: (versions, labels); None where there is none.
        along: what ``round`` counts: rounds, or, in the last version's matrix of pairs, clients.
    """

    run: int
    measure: str
    figure: str
    model: str
    quantile: float | None
    unit: str
    version: Sequence[int]
    round: Sequence[int]
    labels: Sequence[str]
    values: Sequence[Sequence[float | None]]
    along: str = "round"


def measures(reader: Reader, run: int) -> list[MeasureSeries]:
    """Those of a run, whose place is ``run``, in the order in which its measures were listed."""
    units: Mapping[str, str] = reader.meta["measures"]
    if not units:
        return []
    names = {row["place"]: row["label"] for row in reader.query(_LABELS)}
    columns = reader.arrays(_VALUES, **_DTYPES)
    order = list(units)
    rows = sorted(reader.query(_SERIES), key=lambda row: order.index(row["measure"]))
    return [
        MeasureSeries(
            run=run,
            measure=row["measure"],
            figure=row["figure"],
            model=row["model"],
            unit=units[row["measure"]],
            **one,
        )
        for row in rows
        for one in _series(
            _where(columns, columns["series"] == row["series"]), names, pairs=row["figure"].startswith(PAIRS)
        )
    ]


def _where(columns: _Columns, rows: NDArray[np.bool_]) -> _Columns:
    return {name: column[rows] for name, column in columns.items()}


def _series(columns: _Columns, names: Mapping[int, str], *, pairs: bool) -> Iterator[dict[str, Any]]:
    """The fields of the values of all clients together, then those of quantiles over clients, or a matrix."""
    if pairs:
        last = _where(columns, columns["version"] == columns["version"].max())
        at, across = int(last["round"][0]), {**last, "version": last["client"], "round": last["client"]}
        for one in _fields(across, names, [None], lambda values: values[-1:]):
            yield {**one, "along": f"client, in round {at}"}
        return
    together = columns["client"] < 0
    if together.any():
        yield from _fields(_where(columns, together), names, [None], lambda values: values[-1:])
    if not together.all():
        own = _where(columns, ~together)
        yield from _fields(own, names, QUANTILES, lambda values: np.quantile(values, QUANTILES))


def _fields(
    columns: _Columns,
    names: Mapping[int, str],
    quantiles: Sequence[float | None],
    reduce: Callable[[Floats], Floats],
) -> Iterator[dict[str, Any]]:
    """The fields of one series for each of the quantiles, which ``reduce`` makes of a cell's values (n,)."""
    versions, first, row = np.unique(columns["version"], return_index=True, return_inverse=True)
    present, inverse = np.unique(columns["label"], return_inverse=True)
    labels = [label for label in names if label in present]
    cell = row * len(labels) + np.array([labels.index(label) for label in present])[inverse]
    order = np.argsort(cell, kind="stable")
    cells, start = np.unique(cell[order], return_index=True)
    values = np.full((len(versions) * len(labels), len(quantiles)), np.nan)
    values[cells] = [reduce(part) for part in np.split(columns["value"][order], start[1:])]
    for place, quantile in enumerate(quantiles):
        rows = values[:, place].reshape(len(versions), len(labels)).tolist()
        yield {
            "quantile": quantile,
            "version": versions.tolist(),
            "round": columns["round"][first].tolist(),
            "labels": [names[label] for label in labels],
            "values": [[None if math.isnan(value) else value for value in each] for each in rows],
        }
