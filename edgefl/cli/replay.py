"""The command that costs what runs have learned on other fleets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_error, print_json, print_note, stderr, stdout
from edgefl.cli.options import AsJson, FleetLink, RunFolders, Settings, TargetAccuracy, overrides
from edgefl.core.errors import UserError

if TYPE_CHECKING:
    from edgefl.core.overrides import Override
    from edgefl.report.replays import NotReplayed
    from edgefl.runs.replaying import Replay, Replayer


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
    from edgefl.core.overrides import Override
    from edgefl.report.summary import check_target
    from edgefl.runs.group import as_overrides
    from edgefl.runs.replaying import Replayer, each_fleet
    from edgefl.store import runs_in

    check_target(target, "--target")
    given = as_overrides(overrides(settings, link=link))
    folders = list({run.resolve(): run for each in runs for run in runs_in(each)}.values())
    names = dict.fromkeys(fleet or ())
    fleets = each_fleet([Override.of("fleet", name, f"--fleet {name}") for name in names], given)
    with Replayer(out) as replayer:
        refused = _replayed(replayer, folders, fleets, given)
        if not replayer.done and as_json:
            _print_refused(refused)
        elif replayer.done:
            result = replayer.result()
            for note in result.notes:
                print_note(note)
            if as_json:
                _print_json(result, refused, target)
            else:
                _print(result, folders, given, target)
    if refused:
        raise typer.Exit(UserError.exit_status)


def _replayed(
    replayer: Replayer, folders: Sequence[Path], fleets: Sequence[Override | None], given: Sequence[Override]
) -> list[NotReplayed]:
    """Replays every run on every fleet; returns what was refused.

    Raises:
        UserError: the only one was refused.
    """
    from edgefl.report.replays import NotReplayed

    refused: list[NotReplayed] = []
    pairs = [(folder, fleet) for fleet in fleets for folder in folders]
    with stderr().status("") as progress:
        for number, (folder, fleet) in enumerate(pairs, start=1):
            where = f" on {fleet.node.plain}" if fleet else ""
            progress.update(Text(f"replaying {folder}{where}, {number} of {len(pairs)}"))
            try:
                replayer.add(folder, fleet, given)
            except UserError as error:
                if len(pairs) == 1:
                    raise
                print_error(error)
                refused.append(NotReplayed(str(folder), fleet.node.plain if fleet else None, error.what))
    return refused


def _print_refused(refused: Sequence[NotReplayed]) -> None:
    from edgefl.report.comparison import Comparison
    from edgefl.report.replays import Replays

    print_json(Replays(None, Comparison([]), [], refused))


def _print_json(result: Replay, refused: Sequence[NotReplayed], target: float | None) -> None:
    from edgefl.report.comparison import Comparison
    from edgefl.report.replays import Replayed, Replays
    from edgefl.report.summary import summaries

    found = summaries([run.folder for run in result.runs], target)
    if not result.saved:
        found = [replace(run, run_dir="") for run in found]
    pairs = zip(result.runs, found, strict=True)
    runs = [Replayed(run.fleet, run.source, each) for run, each in pairs]
    group_dir = str(result.folder) if result.saved else None
    print_json(Replays(group_dir, Comparison(found), runs, refused))


def _print(result: Replay, folders: Sequence[Path], given: Sequence[Override], target: float | None) -> None:
    """Prints one replay beside its run, or a row for each of several."""
    from edgefl.core.drafts import setting_words
    from edgefl.report.comparison import comparison
    from edgefl.report.replays import Replayed, replays_table
    from edgefl.report.summary import summaries

    console, made = stdout(), [run.folder for run in result.runs]
    if len(made) == 1:
        found = summaries([*folders, *made], target)
        was, now = found if len(folders) == 1 else (None, found[-1])
        # On its own fleet it is the same run.
        beside = was is not None and was.event_hash != now.event_hash
        console.print(comparison(found if beside else [now], reasons=False))
        console.print()
        console.print(f"event hash {now.event_hash}")
    else:
        found = summaries(made, target)
        pairs = zip(result.runs, found, strict=True)
        words = [setting_words(one.key, one.node.plain) for one in given]
        console.print(replays_table([Replayed(run.fleet, run.source, each) for run, each in pairs], words))
    if result.saved:
        console.print(f"saved in {result.folder}", soft_wrap=True)
