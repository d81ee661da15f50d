"""One table of several runs, by column: as data frames, and as files.

Before a table's own columns are ``run``, the run's name; ``seed``; and each setting in which the runs differ,
by its dotted key.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from edgefl.analysis.settings import differences
from edgefl.core.errors import UserError
from edgefl.core.files import replacing
from edgefl.show.formats import comma_separated
from edgefl.store import COLUMNS, check_table, read

_DTYPES = {"INTEGER": "Int64", "REAL": "float64"}


class Source(NamedTuple):
    """A run whose table is read.

    Attributes:
        folder: its directory.
        own: what stands before each of its rows, by column.
    """

    folder: Path
    own: Mapping[str, Any]


def sources(runs: Sequence[tuple[str, Path, Mapping[str, Any]]]) -> list[Source]:
    """The sources of some runs.

    Args:
        runs: each one's name, directory and settings by dotted key. Of those that share a name, each is told
            from the others by its directory, so that tables can be joined by ``run``.
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
        found.append(Source(folder, own))
    return found


def to_pandas(found: Sequence[Source], table: str) -> Any:
    """A pandas DataFrame; integers of which some are missing are ``Int64``, missing reals NaN.

    Raises:
        UserError: pandas is not installed, there is no such table, or a run cannot be read.
    """
    pandas, kinds = _installed("pandas", "frames", "frames"), _kinds(table)

    def part(piece: Sequence[Sequence[Any]]) -> Any:
        values = zip(kinds.items(), piece, strict=True)
        return pandas.DataFrame(
            {name: pandas.Series(each, dtype=_DTYPES.get(kind)) for (name, kind), each in values}
        )

    places: list[int] = []
    parts = []
    for place, piece in _pieces(found, table):
        places += [place] * len(piece[0])
        parts.append(part(piece))
    frame = pandas.concat(parts or [part([()] * len(kinds))], ignore_index=True)
    # Integers of which none is missing are NumPy's.
    whole = [name for name, kind in kinds.items() if kind == "INTEGER" and not frame[name].hasnans]
    own = pandas.DataFrame(_own(found)).iloc[places].reset_index(drop=True)
    return pandas.concat([own, frame.astype(dict.fromkeys(whole, "int64"))], axis="columns")


def to_arrow(found: Sequence[Source], table: str) -> Any:
    """A pyarrow Table; what is missing is null.

    Raises:
        UserError: pyarrow is not installed, there is no such table, or a run cannot be read.
    """
    pyarrow = _installed("pyarrow", "Arrow tables", "parquet")
    schema, batches = _arrow(pyarrow, found, table)
    return pyarrow.Table.from_batches(batches, schema)


def to_parquet(found: Sequence[Source], table: str, path: Path) -> None:
    """Writes a Parquet file, piece by piece.

    Raises:
        UserError: pyarrow is not installed, there is no such table, or a run cannot be read.
        RunError: the file cannot be written; an existing file is unchanged.
    """
    schema, batches = _arrow(_installed("pyarrow", "Parquet files", "parquet"), found, table)
    with (
        replacing(path) as temporary,
        import_module("pyarrow.parquet").ParquetWriter(temporary, schema) as to,
    ):
        for batch in batches:
            to.write_batch(batch)


def to_csv(found: Sequence[Source], table: str, stream: TextIO) -> None:
    """Writes comma-separated values, piece by piece; what is missing is empty.

    Raises:
        UserError: there is no such table, or a run cannot be read.
    """
    own, kinds = _own(found), _kinds(table)
    comma_separated.write(stream, [*own, *kinds], ())
    for place, piece in _pieces(found, table):
        before = [repeat(comma_separated.cell(values[place])) for values in own.values()]
        # Numbers need no look at each: what is missing is None.
        columns = [
            values if kind in _DTYPES else map(comma_separated.cell, values)
            for values, kind in zip(piece, kinds.values(), strict=True)
        ]
        comma_separated.add(stream, zip(*before, *columns, strict=False))


def _kinds(table: str) -> Mapping[str, str]:
    check_table(table)
    return COLUMNS[table]


def _own(found: Sequence[Source]) -> dict[str, list[Any]]:
    """The columns before a table's own, a value for each run."""
    names = found[0].own if found else ("run", "seed")
    return {name: [source.own[name] for source in found] for name in names}


def _pieces(found: Sequence[Source], table: str) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
    """The table's columns, some rows at a time, behind the place of their run."""
    for place, source in enumerate(found):
        with read(source.folder) as reader:
            for piece in reader.pieces(table):
                yield place, piece


def _arrow(pyarrow: Any, found: Sequence[Source], table: str) -> tuple[Any, Iterator[Any]]:
    """The schema, and the rows in batches."""
    types = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "TEXT": pyarrow.string()}
    after = {name: types[kind] for name, kind in _kinds(table).items()}
    own = {}
    for name, values in _own(found).items():
        try:
            own[name] = pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            # A column has one type: values of several are texts.
            texts = [one if one is None or isinstance(one, str) else json.dumps(one) for one in values]
            own[name] = pyarrow.array(texts)
    schema = pyarrow.schema([*((name, values.type) for name, values in own.items()), *after.items()])
    return schema, (
        pyarrow.record_batch(
            [
                *(pyarrow.repeat(values[place], len(piece[0])) for values in own.values()),
                *map(pyarrow.array, piece, after.values()),
            ],
            schema,
        )
        for place, piece in _pieces(found, table)
    )


def _installed(module: str, what: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"pip install 'edgefl-emulator[{extra}]'"
        raise UserError(f"{what} need {module}", hint=hint) from error
