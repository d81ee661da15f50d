"""The command that writes one table of runs to a file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, TextIO

import typer

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_note, stdout
from edgefl.cli.options import RunFolders
from edgefl.cli.streams import results
from edgefl.core.files import replacing
from edgefl.core.outputs import check_out

FEATURES = "features"
_SUFFIXES = (".csv", ".parquet")


@app.command(
    epilog=examples(
        "table runs/first jobs > jobs.csv",
        "table runs/first runs/second merges --out merges.parquet",
        "table runs/first features --out features.csv",
    )
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
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Write one table of runs as CSV or Parquet.

    Before its own columns are the run's name, its seed, and the settings in which the runs differ.

    The table `features`, as CSV alone, has what the heads of the runs' last models get of test samples.

    Parquet needs pyarrow, which the extra `parquet` brings along.
    """
    from edgefl.core.units import show_bytes
    from edgefl.show.frames import sources, to_csv, to_parquet
    from edgefl.show.settings import settings_of
    from edgefl.show.summary import each_run
    from edgefl.store import check_table

    if name != FEATURES:
        check_table(name, "TABLE", [FEATURES])
    if out is not None:
        check_out(out, f"{name}.csv", force=force, suffixes=_SUFFIXES[: 1 if name == FEATURES else 2])
    if name == FEATURES:
        from edgefl.export.features import write_features

        write: Callable[[TextIO], None] = partial(write_features, runs)
    else:
        named = each_run(
            runs,
            lambda reader, _: (reader.meta["name"], reader.folder, settings_of(reader)[0]),
            note=print_note,
        )
        found = sources(named)
        write = partial(to_csv, found, name)
    if out is None:
        write(results())
        return
    if out.suffix.lower() == ".parquet":
        to_parquet(found, name, out)
    else:
        with replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
            write(stream)
    stdout().print(f"saved {out} ({show_bytes(out.stat().st_size)})", soft_wrap=True)
