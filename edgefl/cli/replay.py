"""The command that costs what runs have learned on other fleets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgefl.cli.answering import command
from edgefl.cli.options import FleetLink, Overridden, SomeRuns, TargetAccuracy
from edgefl.core.errors import UserError
from edgefl.show.answers import Steps, quiet, several, unless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgefl.runs.replaying import Fleets, Replay

SomeFleets = Annotated[
    "Fleets | Sequence[Fleets] | None",
    typer.Option(
        metavar="PROFILE",
        help="Fleet from `edgefl list profiles`, given once or several times; each run's own by default.",
    ),
    list[str] | None,
]


@command(
    "replay runs/first --fleet city-phones",
    "replay runs/first --fleet home-lab --fleet city-phones --target 0.9",
    "replay runs/first --link 4g --set wire.up=int8 --out runs/first-over-4g",
)
def replay(
    runs: SomeRuns,
    *,
    fleet: SomeFleets = None,
    overrides: Overridden = (),
    link: FleetLink = None,
    target: TargetAccuracy = None,
    out: Annotated[
        str | Path | None,
        typer.Option(help="Directory to create for the replays; none is written by default."),
        Path | None,
    ] = None,
    steps: Steps = quiet,
) -> Replay:
    """Cost what runs have learned on other fleets, without data and without training.

    Accuracies are those of the runs; times, bytes and energies are those of the same learning elsewhere.

    `--set` changes settings of fleet, server and wire.

    Where another run would be learned it is refused, and the first merge that would differ is named.
    """
    from edgefl.analysis.summary import target_of
    from edgefl.core.overrides import Override
    from edgefl.runs.group import as_overrides
    from edgefl.runs.replaying import Replayer, each_fleet, fleet_name
    from edgefl.runs.results import folders_of
    from edgefl.show.replays import NotReplayed
    from edgefl.store import runs_in

    given = as_overrides(overrides, link=link)
    folders = list({run.resolve(): run for each in folders_of(runs) for run in runs_in(each)}.values())
    accuracy = target_of(target, folders)
    named = [
        Override.of("fleet", one, f"--fleet {one}" if isinstance(one, str) else "fleet")
        for one in several(fleet)
    ]
    fleets = each_fleet(list({str(one.node.plain): one for one in named}.values()), given)
    pairs = [(folder, each) for each in fleets for folder in folders]
    refused: list[NotReplayed] = []
    mistakes: list[UserError] = []
    with Replayer(None if out is None else Path(out)) as replayer:
        for number, (folder, each) in enumerate(pairs):
            steps(
                f"replaying {folder}{f' on {fleet_name(each.node.plain)}' if each else ''}",
                number,
                len(pairs),
            )
            try:
                replayer.add(folder, each, given)
            except UserError as error:
                if len(pairs) == 1:
                    raise
                mistakes.append(error)
                name = fleet_name(each.node.plain) if each else None
                refused.append(NotReplayed(str(folder), name, error.what))
        made = replayer.result()
    found = replace(made, refused=refused, target=accuracy, _sources=folders, _given=given)
    return unless(mistakes, found)
