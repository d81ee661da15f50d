"""The command that writes one table of runs to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from edgefl.cli.answering import command
from edgefl.cli.options import Force, RunFolders
from edgefl.show.answers import Answer

_FEATURES = "features"


@command(
    "table runs/first jobs > jobs.csv",
    "table runs/first runs/second merges --out merges.parquet",
    "table runs/first features --out features.csv",
    as_json=False,
)
def table(
    runs: RunFolders,
    name: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="Such as jobs, merges, evaluations, client_evaluations, measures, clients or features.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A .csv or .parquet file; CSV on standard output by default.")
    ] = None,
    force: Force = False,
) -> Answer:
    """Write one table of runs as CSV or Parquet.

    Before its own columns are the run's name, its seed, and the settings in which the runs differ.

    The table `features`, as CSV alone, has what the heads of the runs' last models get of test samples.

    Parquet needs pyarrow, which the extra `parquet` brings along.
    """
    from edgefl.analysis.settings import settings_of
    from edgefl.analysis.summary import each_run
    from edgefl.core.files import replacing
    from edgefl.core.outputs import check_out
    from edgefl.core.units import show_bytes
    from edgefl.show.frames import sources, to_csv, to_parquet
    from edgefl.store import Reader, check_table

    def named(reader: Reader, _: Any) -> tuple[str, Path, Mapping[str, Any]]:
        return reader.meta["name"], reader.folder, settings_of(reader)[0]

    notes: list[str] = []
    if name != _FEATURES:
        check_table(name, "TABLE", [_FEATURES])
    if out is not None:
        suffixes = (".csv",) if name == _FEATURES else (".csv", ".parquet")
        check_out(out, f"{name}.csv", force=force, suffixes=suffixes)
    if name == _FEATURES:
        from edgefl.export.features import write_features

        write: Callable[[TextIO], object] = partial(write_features, runs)
    else:
        found = sources(each_run(runs, named, note=notes.append))
        write = partial(to_csv, found, name)
    if out is None:
        return Answer(f"table {name}", {}, notes=notes, plain=write)
    if out.suffix.lower() == ".parquet":
        to_parquet(found, name, out)
    else:
        with replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
            write(stream)
    lines = [f"saved {out} ({show_bytes(out.stat().st_size)})"]
    return Answer(f"table {name} in {out}", {"file": out}, lines=lines, notes=notes)
