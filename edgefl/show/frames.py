"""One table of several runs, by column: as data frames, and as files.

Before a table's own columns are ``run``, the run's name; ``seed``; and each setting in which the runs differ,
by its dotted key.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain, repeat
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

    def pieces(self, table: str) -> Iterator[list[tuple[Any, ...]]]:
        """As ``Reader.pieces``."""
        with read(self.folder) as reader:
            yield from reader.pieces(table)


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
    pandas = _installed("pandas", "frames need pandas", "frames")
    check_table(table)
    columns = COLUMNS[table]
    counts: list[int] = []
    own = _own(found)
    parts: dict[str, list[Any]] = {name: [] for name in columns}
    for source in found:
        counts.append(0)
        for piece in source.pieces(table):
            counts[-1] += len(piece[0])
            for (name, kind), values in zip(columns.items(), piece, strict=True):
                parts[name].append(pandas.Series(values, dtype=_DTYPES.get(kind)))
    before = {name: chain.from_iterable(map(repeat, values, counts)) for name, values in own.items()}
    # Each column's parts go when the column is made.
    after = {name: _series(pandas, parts.pop(name), kind) for name, kind in columns.items()}
    return pandas.DataFrame({**{name: list(values) for name, values in before.items()}, **after})


def _series(pandas: Any, parts: Sequence[Any], kind: str) -> Any:
    """A column; integers of which none is missing are NumPy's."""
    values = (
        pandas.concat(parts, ignore_index=True)
        if parts
        else pandas.Series([], dtype=_DTYPES.get(kind, object))
    )
    return values if kind != "INTEGER" or values.hasnans else values.astype("int64")


def to_arrow(found: Sequence[Source], table: str) -> Any:
    """A pyarrow Table; what is missing is null.

    Raises:
        UserError: pyarrow is not installed, there is no such table, or a run cannot be read.
    """
    pyarrow = _installed("pyarrow", "Arrow tables need pyarrow", "parquet")
    check_table(table)
    own = _arrow_own(pyarrow, found)
    schema = _schema(pyarrow, own, table)
    return pyarrow.Table.from_batches(_batches(pyarrow, schema, own, found, table), schema)


def to_parquet(found: Sequence[Source], table: str, path: Path) -> None:
    """Writes a Parquet file, piece by piece.

    Raises:
        UserError: pyarrow is not installed, there is no such table, or a run cannot be read.
        RunError: the file cannot be written; an existing file is unchanged.
    """
    pyarrow = _installed("pyarrow.parquet", "Parquet files need pyarrow", "parquet")
    check_table(table)
    own = _arrow_own(pyarrow, found)
    schema = _schema(pyarrow, own, table)
    with replacing(path) as temporary, pyarrow.parquet.ParquetWriter(temporary, schema) as writer:
        for batch in _batches(pyarrow, schema, own, found, table):
            writer.write_batch(batch)


def to_csv(found: Sequence[Source], table: str, stream: TextIO) -> None:
    """Writes comma-separated values, piece by piece; what is missing is empty.

    Raises:
        UserError: there is no such table, or a run cannot be read.
    """
    check_table(table)
    own, kinds = _own(found), COLUMNS[table].values()
    comma_separated.write(stream, [*own, *COLUMNS[table]], ())
    for place, source in enumerate(found):
        before = [comma_separated.cell(values[place]) for values in own.values()]
        for piece in source.pieces(table):
            # Numbers need no look at each: what is missing is None.
            columns = [
                values if kind in _DTYPES else map(comma_separated.cell, values)
                for values, kind in zip(piece, kinds, strict=True)
            ]
            comma_separated.add(stream, zip(*map(repeat, before), *columns, strict=False))


def _own(found: Sequence[Source]) -> dict[str, list[Any]]:
    """The columns before a table's own, a value for each run."""
    names = found[0].own if found else ("run", "seed")
    return {name: [source.own[name] for source in found] for name in names}


def _arrow_own(pyarrow: Any, found: Sequence[Source]) -> dict[str, Any]:
    """These columns as Arrow arrays; of values of several types, as text."""
    columns = {}
    for name, values in _own(found).items():
        try:
            columns[name] = pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            columns[name] = pyarrow.array(list(map(_text, values)))
    return columns


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _schema(pyarrow: Any, own: Mapping[str, Any], table: str) -> Any:
    types = {"INTEGER": pyarrow.int64(), "REAL": pyarrow.float64(), "TEXT": pyarrow.string()}
    return pyarrow.schema(
        [
            *((name, values.type) for name, values in own.items()),
            *((name, types[kind]) for name, kind in COLUMNS[table].items()),
        ]
    )


def _batches(
    pyarrow: Any, schema: Any, own: Mapping[str, Any], found: Sequence[Source], table: str
) -> Iterator[Any]:
    for place, source in enumerate(found):
        for piece in source.pieces(table):
            before = [pyarrow.repeat(values[place], len(piece[0])) for values in own.values()]
            types = schema.types[len(own) :]
            after = [pyarrow.array(values, of) for values, of in zip(piece, types, strict=True)]
            yield pyarrow.record_batch([*before, *after], schema)


def _installed(module: str, what: str, extra: str) -> Any:
    """A library, or the message that says what to install.

    Raises:
        UserError: it is not installed.
    """
    try:
        import_module(module)
        return import_module(module.partition(".")[0])
    except ImportError as error:
        raise UserError(what, hint=f"pip install 'edgefl-emulator[{extra}]'") from error
