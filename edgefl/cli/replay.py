"""The command that costs what runs have learned on other fleets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import answered
from edgefl.cli.app import app, examples
from edgefl.cli.options import AsJson, FleetLink, RunFolders, Settings, TargetAccuracy


@app.command(
    epilog=examples(
        "replay runs/first --fleet city-phones",
        "replay runs/first --fleet home-lab --fleet city-phones --target 0.9",
        "replay runs/first --link 4g --set wire.up=int8 --out runs/first-over-4g",
    )
)
def replay(
    runs: RunFolders,
    fleet: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROFILE",
            help="Fleet from `edgefl list profiles`, given once or several times; each run's own by default.",
        ),
    ] = None,
    settings: Settings = None,
    link: FleetLink = None,
    target: TargetAccuracy = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory to create for the replays; none is written by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Cost what runs have learned on other fleets, without data and without training.

    Accuracies are those of the runs; times, bytes and energies are those of the same learning elsewhere.

    `--set` changes settings of fleet, server and wire.

    Where another run would be learned it is refused, and the first merge that would differ is named.
    """
    from edgefl.runs.replaying import replay as ask

    given = {"fleet": fleet, "overrides": settings or (), "link": link, "target": target, "out": out}
    answered(ask, runs=runs, **given, as_json=as_json)
