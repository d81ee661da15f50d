"""Measures over rounds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, Switch
from edgefl.show.page.records import Read, Section, Told

# Of values over clients, by column: in words, and the share of the clients that are below.
_QUANTILES = {
    "value": ("median", 0.5),
    "least": ("least", 0.0),
    "value_low": ("lowest tenth", 0.1),
    "value_high": ("highest tenth", 0.9),
    "largest": ("largest", 1.0),
}
# Of one value there is nothing to tell.
_ALONE = {"value": ("", 1.0)}

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

# How figures of pairs of clients begin, each a row of one client whose label is the other.
_PAIRS = "pairs"

_Columns = Mapping[str, NDArray[Any]]


_LINES = {
    "what": FrameColumn("measure", told=False),
    "unit": FrameColumn("unit", told=False),
    "version": FrameColumn("version"),
    "round": FrameColumn("round"),
    "value": FrameColumn("@what", "@unit"),
    "value_low": FrameColumn("lowest tenth over clients", "@unit", told=False),
    "value_high": FrameColumn("highest tenth over clients", "@unit", told=False),
    "least": FrameColumn("least", "@unit"),
    "largest": FrameColumn("largest", "@unit"),
}
_MAPS = {
    "what": FrameColumn("measure", told=False),
    "unit": FrameColumn("unit", told=False),
    "round": FrameColumn("@along"),
    "label": FrameColumn("@kind"),
    "value": FrameColumn("@what", "@unit"),
}


def section(told: Told, read: Sequence[Sequence[Block]]) -> Section:
    """Measures over rounds, as lines, and of each class or layer, as maps."""
    found = [one for each in read for one in each]
    evaluated = any(one.summary.accuracy for one in told.runs)
    nothing = "the scenarios ask for no measures." if evaluated else "nothing was evaluated."
    plots = [
        Plot(
            "measures",
            "Measures",
            "The measures that the scenarios ask for, of each version that was evaluated. Of those that"
            " clients have, lines are medians and bands reach from the lowest to the highest tenth.",
            "no measure has one value for all." if found else nothing,
            "lines",
            Frame(_LINES, [one for one in found if "label" not in one]),
            x=["round"],
            y=["value"],
            by=[Switch("what", "Measure", "select")],
            runs="all",
            missing="they have no such measure",
        ),
        Plot(
            "parts",
            "Measures by part",
            "What is measured of each class, layer or pair of clients.",
            "no measure is taken of parts.",
            "heat",
            Frame(_MAPS, [one for one in found if "label" in one]),
            x=["round"],
            y=["label"],
            z="value",
            by=[Switch("what", "Measure", "select")],
            runs="one",
        ),
    ]
    return Section("measures", "Measures", plots)


def read(one: Read) -> list[Block]:
    """The figures of a run's measures over the versions that were evaluated, in the order of its scenario.

    Of values of clients there are quantiles. Of pairs of clients there is the matrix of the last version.
    """
    reader = one.run.reader
    units: Mapping[str, str] = reader.meta["measures"]
    if not units:
        return []
    names = {row["place"]: row["label"] for row in reader.query(_LABELS)}
    columns = reader.arrays(_VALUES, **_DTYPES)
    order = list(units)
    classes = frozenset(map(str, reader.meta["classes"]))
    found: list[Block] = []
    for row in sorted(reader.query(_SERIES), key=lambda row: order.index(row["measure"])):
        own = _where(columns, columns["series"] == row["series"])
        what = ", ".join(filter(None, (row["measure"], row["figure"], row["model"])))
        head = {"run": one.place, "what": what, "unit": units[row["measure"]]}
        blocks = _measure_blocks(own, names, classes, what, pairs=row["figure"].startswith(_PAIRS))
        found += [{**head, **block} for block in blocks]
    return found


def _where(columns: _Columns, rows: NDArray[np.bool_]) -> _Columns:
    return {name: column[rows] for name, column in columns.items()}


def _measure_blocks(
    columns: _Columns, names: Mapping[int, str], classes: frozenset[str], what: str, *, pairs: bool
) -> Iterator[Block]:
    """The blocks of the values of all clients together, then those of quantiles over clients, or a matrix."""
    if pairs:
        last = _where(columns, columns["version"] == columns["version"].max())
        along = f"client, in round {int(last['round'][0])}"
        columns = {**last, "version": last["client"], "round": last["client"]}
        yield from _table(columns, names, classes, what, along, _ALONE)
        return
    together = columns["client"] < 0
    if together.any():
        yield from _table(_where(columns, together), names, classes, what, "round", _ALONE)
    if not together.all():
        yield from _table(_where(columns, ~together), names, classes, what, "round", _QUANTILES)


def _table(
    columns: _Columns,
    names: Mapping[int, str],
    classes: frozenset[str],
    what: str,
    along: str,
    figures: Mapping[str, tuple[str, float]],
) -> Iterator[Block]:
    """Figures by version: a line of what is of no part, and a map of each figure by part."""
    versions, first, row = np.unique(columns["version"], return_index=True, return_inverse=True)
    present, inverse = np.unique(columns["label"], return_inverse=True)
    labels = [label for label in names if label in present]
    cell = row * len(labels) + np.array([labels.index(label) for label in present])[inverse]
    order = np.argsort(cell, kind="stable")
    cells, start = np.unique(cell[order], return_index=True)
    values = np.full((len(figures), len(versions) * len(labels)), np.nan)
    parts, shares = np.split(columns["value"][order], start[1:]), [share for _, share in figures.values()]
    # One value alone is each of its quantiles; of several of all clients together the last counts.
    values[:, cells] = np.transpose(
        [part[-1:] if figures is _ALONE else np.quantile(part, shares) for part in parts]
    )
    cube = values.reshape(len(figures), len(versions), len(labels))
    over = "" if figures is _ALONE else ", over clients"
    rounds, named = columns["round"][first].tolist(), [names[label] for label in labels]
    # The label of what is of no part is empty, and the first.
    apart = int("" in named)
    if apart:
        lines = {name: own[:, 0].tolist() for name, own in zip(figures, cube, strict=True)}
        yield {"what": f"{what}{over}", "version": versions.tolist(), "round": rounds, **lines}
    kind = "class" if classes.issuperset(named[apart:]) else "part"
    for (words, _), own in zip(figures.values(), cube, strict=True) if named[apart:] else ():
        yield {
            "what": f"{what}, by {kind}" + (f", {words} over clients" if words else ""),
            "along": along,
            "kind": kind,
            "round": rounds,
            "label": named[apart:],
            "value": own[:, apart:].T.tolist(),
        }
