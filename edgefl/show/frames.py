"""Runs in rows of columns: one table of several runs, as data frames and files, and all their figures.

Before a table's own columns are ``run``, the run's name; ``seed``; and each setting in which the runs differ,
by its dotted key.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from edgefl.analysis.groups import SeedGroup, seeds_together, spreads
from edgefl.analysis.published import RATIO, beside_runs
from edgefl.analysis.settings import differences
from edgefl.analysis.summary import Summary
from edgefl.core.files import replacing
from edgefl.core.host import needs
from edgefl.show.formats import csv_cell, write_csv
from edgefl.store.reader import check_table, read
from edgefl.store.schema import COLUMNS

_DTYPES = {"INTEGER": "Int64", "REAL": "float64"}
_ARROW = {"INTEGER": "int64", "REAL": "double", "TEXT": "string"}


class TableSource(NamedTuple):
    """The directory of a run whose table is read, and what stands before each of its rows, by column."""

    folder: Path
    own: Mapping[str, Any]


def sources(runs: Sequence[tuple[str, Path, Mapping[str, Any]]]) -> list[TableSource]:
    """The sources of runs: of each its name, its directory and its settings by dotted key.

    Those that share a name are told apart by their directories, so that tables can be joined by ``run``.
    """
    settings = [
        {key: json.dumps(value) if isinstance(value, list) else value for key, value in each.items()}
        for _, _, each in runs
    ]
    differing = [key for key in differences(settings) if key != "seed"]
    names = Counter(name for name, _, _ in runs)
    found = []
    for (name, folder, _), each in zip(runs, settings, strict=True):
        run = name if names[name] == 1 else f"{name}, {folder}"
        own = {"run": run, "seed": each["seed"], **{key: each.get(key) for key in differing}}
        found.append(TableSource(folder, own))
    return found


def to_pandas(found: Sequence[TableSource], table: str) -> Any:
    """A pandas DataFrame; integers of which some are missing are ``Int64``, missing reals NaN.

    Raises:
        UserError: pandas is not installed, there is no such table, or a run cannot be read.
    """
    needs("pandas", "frames need", "frames")
    pandas, kinds = import_module("pandas"), _kinds(table)
    own = pandas.DataFrame({name: pandas.Series(values) for name, values in _own(found).items()}).dtypes
    dtypes = {**own, **{name: _DTYPES.get(kind) for name, kind in kinds.items()}}

    def part(piece: Sequence[Sequence[Any]]) -> Any:
        columns = zip(dtypes.items(), piece, strict=True)
        return pandas.DataFrame({name: pandas.Series(values, dtype=of) for (name, of), values in columns})

    parts = list(map(part, _pieces(found, table))) or [part([()] * len(dtypes))]
    frame = pandas.concat(parts, ignore_index=True)
    # Integers of which none is missing are NumPy's.
    whole = [name for name, kind in kinds.items() if kind == "INTEGER" and not frame[name].hasnans]
    return frame.astype(dict.fromkeys(whole, "int64"))


def to_arrow(found: Sequence[TableSource], table: str) -> Any:
    """A pyarrow Table; what is missing is null.

    Raises:
        UserError: pyarrow is not installed, there is no such table, or a run cannot be read.
    """
    schema, batches = _arrow(found, table)
    return import_module("pyarrow").Table.from_batches(batches, schema)


def to_parquet(found: Sequence[TableSource], table: str, path: Path) -> None:
    """Writes a Parquet file, piece by piece.

    Raises:
        UserError: pyarrow is not installed, there is no such table, or a run cannot be read.
        RunError: the file cannot be written; an existing file is unchanged.
    """
    schema, batches = _arrow(found, table)
    writer = import_module("pyarrow.parquet").ParquetWriter
    with replacing(path) as temporary, writer(temporary, schema) as to:
        for batch in batches:
            to.write_batch(batch)


def to_csv(found: Sequence[TableSource], table: str, stream: TextIO) -> None:
    """Writes comma-separated values, piece by piece; what is missing is empty.

    Raises:
        UserError: there is no such table, or a run cannot be read.
    """
    kinds = {**dict.fromkeys(_own(found), ""), **_kinds(table)}
    write_csv(stream, list(kinds), ())
    writer = csv.writer(stream, lineterminator="\r\n")
    for piece in _pieces(found, table):
        # Numbers need no look at each: what is missing is None.
        columns = zip(kinds.values(), piece, strict=True)
        cells = (values if kind in _DTYPES else map(csv_cell, values) for kind, values in columns)
        writer.writerows(zip(*cells, strict=True))


def _kinds(table: str) -> Mapping[str, str]:
    check_table(table)
    return COLUMNS[table]


def _own(found: Sequence[TableSource]) -> dict[str, list[Any]]:
    """The columns before a table's own, a value for each run."""
    names = found[0].own if found else ("run", "seed")
    return {name: [source.own[name] for source in found] for name in names}


def _pieces(found: Sequence[TableSource], table: str) -> Iterator[list[Sequence[Any]]]:
    """All columns, some rows of a run at a time."""
    for source in found:
        with read(source.folder) as reader:
            for piece in reader.pieces(table):
                yield [*([value] * len(piece[0]) for value in source.own.values()), *piece]


def _arrow(found: Sequence[TableSource], table: str) -> tuple[Any, Iterator[Any]]:
    """The schema, and the rows in batches."""
    needs("pyarrow", "Arrow tables need", "parquet")
    pyarrow, kinds = import_module("pyarrow"), _kinds(table)
    own, types = _own(found), []
    for name, values in own.items():
        try:
            types.append((name, pyarrow.array(values).type))
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            # A column has one type: values of several are texts.
            own[name] = [one if isinstance(one, str | None) else json.dumps(one) for one in values]
            types.append((name, pyarrow.string()))
    schema = pyarrow.schema([*types, *((name, _ARROW[kind]) for name, kind in kinds.items())])
    rows = zip(*own.values(), strict=True) if found else ()
    told = [
        source._replace(own=dict(zip(own, row, strict=True))) for source, row in zip(found, rows, strict=True)
    ]
    pieces = (list(map(pyarrow.array, piece, schema.types)) for piece in _pieces(told, table))
    return schema, (pyarrow.record_batch(piece, schema) for piece in pieces)


_WORDS = ("method", "dataset", "engine", "status", "stopped", "run_id", "run_dir")
# Of a number's columns: its mean, then what is known of it over seeds.
_ENDS = ("", "_sd", "_low95", "_high95")


def records(runs: Sequence[Summary]) -> tuple[list[str], list[list[Any]]]:
    """The columns' heads, and a row for each run, or for runs that differ in nothing but their seeds.

    The columns are ``name``; ``runs``, their number; ``seed``; the words of a run's record, of several runs
    each once; ``settings.KEY`` for each setting in which the rows differ; ``published.KEY`` for what a paper
    reports of such a run; and each number by its dotted key, in base units. Of several runs a number is the
    mean of those that have it; beside it ``KEY_sd`` is the standard deviation over seeds, of a sample
    (n - 1), and ``KEY_low95`` and ``KEY_high95`` are the ends of the mean's 95% interval. Those columns are
    left out where no row is of several.
    """
    groups = seeds_together(runs)
    settings = differences([one.settings for one in groups])
    settings.pop("seed", None)
    averaged = any(len(one.runs) > 1 for one in groups)
    figures = [_row_figures(one, averaged=averaged) for one in groups]
    keys = list(dict.fromkeys(key for each in figures for key in each))
    others = {f"settings.{key}": dict(enumerate(values)) for key, values in settings.items()}
    for figure in (each for paper in beside_runs(groups) for each in paper.figures):
        if figure.group is not None and figure.unit != RATIO:
            others.setdefault(f"published.{figure.figure}", {})[figure.group] = figure.published
    found = []
    for place, one in enumerate(groups):
        seeds = one.first.seed if len(one.runs) == 1 else "; ".join(str(run.seed) for run in one.runs)
        told = (dict.fromkeys(getattr(run, word) or "" for run in one.runs) for word in _WORDS)
        words = ("; ".join(filter(None, each)) for each in told)
        more = (values.get(place) for values in others.values())
        found.append([one.line, len(one.runs), seeds, *words, *more, *map(figures[place].get, keys)])
    return ["name", "runs", "seed", *_WORDS, *others, *keys], found


def _row_figures(one: SeedGroup, *, averaged: bool) -> dict[str, float | None]:
    """The numbers, each before its deviation and its interval if some row has any."""
    if len(one.runs) == 1:
        alone = one.first.numbers
        ends = _ENDS if averaged else _ENDS[:1]
        return {f"{key}{end}": None if end else value for key, value in alone.items() for end in ends}
    figures: dict[str, float | None] = {}
    for key, found in spreads(one.runs).items():
        low, high = found.interval_95 or (None, None)
        values = found.mean, found.deviation_over_seeds, low, high
        figures |= {f"{key}{end}": value for end, value in zip(_ENDS, values, strict=True)}
    return figures
