"""Commands about saved runs: list and remove them, replay them elsewhere, and show them in each way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from rich.console import Group
from typer import Argument, Exit, Option

from edgefl.cli.answering import (
    FleetLink,
    Force,
    Overridden,
    RunFolders,
    Sensitivity,
    SomeRuns,
    TargetAccuracy,
    command,
    stderr,
)
from edgefl.core.errors import UserError
from edgefl.core.host import needs
from edgefl.show.answers import Answer, Steps, quiet, several, unless
from edgefl.show.table import cut

if TYPE_CHECKING:
    from edgefl.runs.replaying import Fleets, Replay
    from edgefl.store.folders import Removal
    from edgefl.store.reader import Reader

# Of files that stay, and of runs that go, so many are named.
_NAMED = 10
_FEATURES = "features"
_FOLDER = Argument(metavar="FOLDER", help="A folder of groups, a group, or a run.")
SomeFleets = Annotated[
    "Fleets | Sequence[Fleets] | None",
    Option(
        metavar="PROFILE",
        help="Fleet from `edgefl list profiles`, given once or several times; each run's own by default.",
    ),
    list[str] | None,
]


@command("runs", "runs runs/sweep --status killed", "runs --all --json")
def runs(
    folder: Annotated[Path, _FOLDER] = Path("runs"),
    status: Annotated[
        list[str] | None,
        Option(
            metavar="STATUS",
            help="Only these: planned, running, killed, interrupted, failed, done, damaged, other-format.",
        ),
    ] = None,
    every: Annotated[bool, Option("--all", help="A line for each run of a group.")] = False,
) -> Answer:
    """List the runs in a folder, those written last at the end, and which can be resumed.

    Runs are not verified: a run that is damaged where nothing was read is listed as it stands.
    """
    from edgefl.show.listing import listing, listing_table, to_resume

    found = listing(folder, status or ())
    view = listing_table(found, every=every, only=status or ())
    return Answer(f"runs in {folder}", found, view, list(to_resume(found.resumable)))


@command("rm runs/first", "rm runs/sweep/02-fedprox --yes")
def rm(paths: RunFolders, yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False) -> Answer:
    """Remove runs, groups of runs, or all runs in a folder of groups.

    What is in progress is never removed, and files that edgefl did not write stay.
    """
    from edgefl.core.units import show_bytes, show_count
    from edgefl.store.folders import removals, remove

    found = removals(paths)
    if not yes:
        _ask(found)
    freed = sum(remove(one) for one in found)
    removed = [run for one in found for run in one.runs.values()]
    lines = [f"removed {show_count(len(removed), 'run')}, freed {show_bytes(freed)}"]
    return Answer("removal", {"removed": removed, "freed_bytes": freed}, lines=lines)


def _ask(found: Sequence[Removal]) -> None:
    """Says what is to go and asks whether to; a ``UserError`` if there is nobody to ask, ``Exit`` for no."""
    from edgefl.core.units import show_bytes, show_count
    from edgefl.store.folders import size_of

    count = sum(len(one.runs) for one in found)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        hint = "confirm with --yes where there is no terminal to ask on"
        raise UserError(f"{show_count(count, 'run')} would be removed; nothing was", where="RUN", hint=hint)
    each = ((one.folder, show_count(len(one.runs), "run"), show_bytes(size_of(one.folder))) for one in found)
    for text in cut([f"{folder}: {runs}, {size}" for folder, runs, size in each], _NAMED):
        stderr().print(text, soft_wrap=True)
    stderr().print(f"Remove {show_count(count, 'run')}? [y/N]", end=" ")
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        stderr().print("nothing was removed")
        raise Exit(1)


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
        Option(help="Directory to create for the replays; none is written by default."),
        Path | None,
    ] = None,
    steps: Steps = quiet,
) -> "Replay":  # noqa: UP037 - the module is not loaded where annotations are read
    """Cost what runs have learned on other fleets, without data and without training.

    Accuracies are those of the runs; times, bytes and energies are those of the same learning elsewhere.

    `--set` changes settings of fleet, server and wire.

    Where another run would be learned it is refused, and the first merge that would differ is named.
    """
    from edgefl.analysis.summary import target_of
    from edgefl.core.overrides import Override
    from edgefl.core.yamls import Document
    from edgefl.runs.group import as_overrides
    from edgefl.runs.replaying import Replayer, each_fleet, fleet_name
    from edgefl.runs.results import folders_of
    from edgefl.show.compare import NotReplayed
    from edgefl.store.folders import runs_in

    given = as_overrides(overrides, link=link)
    folders = list({run.resolve(): run for each in folders_of(runs) for run in runs_in(each)}.values())
    accuracy = target_of(target, folders)
    named: dict[str, Override] = {}
    for one in several(fleet):
        override = Override("fleet", Document.of(one, f"--fleet {one}" if isinstance(one, str) else "fleet"))
        named[str(override.value.data)] = override
    fleets = each_fleet(list(named.values()), given)
    pairs = [(folder, each) for each in fleets for folder in folders]
    refused: list[NotReplayed] = []
    mistakes: list[UserError] = []
    with Replayer(None if out is None else Path(out), alone=len(pairs) == 1) as replayer:
        for number, (folder, each) in enumerate(pairs):
            name = fleet_name(each.value.data) if each else None
            steps(f"replaying {folder}{f' on {name}' if name else ''}", number, len(pairs))
            try:
                replayer.add(folder, each, given)
            except UserError as error:
                if len(pairs) == 1:
                    raise
                mistakes.append(error)
                refused.append(NotReplayed(str(folder), name, error.what))
        made = replayer.result()
    found = replace(made, refused=refused, target=accuracy, _sources=folders, _given=given)
    return unless(mistakes, found)


@command("report runs/first", "report runs/first runs/second --target 0.9 --out comparison.html")
def report(
    runs: SomeRuns,
    *,
    out: Annotated[
        str | Path | None,
        Option(metavar="FILE.html", help="File to write; named after the first RUN by default."),
        Path | None,
    ] = None,
    target: TargetAccuracy = None,
    sensitivity: Sensitivity = None,
    force: Force = False,
    steps: Steps = quiet,
) -> Answer:
    """Make one HTML page of runs: figures, tables and plots; it opens from disk and needs no network.

    Runs that differ in nothing but their seeds are averaged.
    """
    from edgefl.core.files import check_out
    from edgefl.core.units import show_bytes
    from edgefl.runs.results import folders_of
    from edgefl.show.page.build import page
    from edgefl.show.page.html import SUFFIXES, page_name, write_page

    folders = folders_of(runs)
    name = page_name(folders)
    path = Path(name if out is None else out)
    check_out(path, name, force=force, suffixes=SUFFIXES)
    notes: list[str] = []
    steps("reading runs", 0, 1)
    size = write_page(path, page(folders, target, note=notes.append, sensitivity=sensitivity))
    lines = [f"saved {path} ({show_bytes(size)})"]
    return Answer(f"report in {path}", {"file": str(path), "bytes": size}, lines=lines, notes=notes)


@command("explain runs/first", "explain runs/first --round 12", "explain runs/first --json")
def explain(
    runs: RunFolders,
    round_: Annotated[
        int | None, Option("--round", metavar="N", help="One round, counted from 0; all together by default.")
    ] = None,
    steps: Steps = quiet,
) -> Answer:
    """Say why rounds took as long as they did: their critical paths, and what faster clients would save.

    The critical path leads from a round's last merge back to its start: who was waited for, and for what.

    Savings are other runs of the clock, left out of very long runs and where more than times would change.
    """
    from edgefl.analysis.explain.explain import explain as explained
    from edgefl.analysis.summary import each_run
    from edgefl.show.explanation import shown
    from edgefl.show.table import Line

    notes: list[str] = []
    found = each_run(runs, lambda reader, _: explained(reader, round_, steps), note=notes.append)
    parts = [part for one in found for part in (Line(), shown(one))]
    return Answer("explanation", {"runs": found}, Group(*parts[1:]), notes=notes)


@command("timeline runs/first", "timeline runs/first --clients 0,3,7-12 --rounds 2-5 --out few.pftrace")
def timeline(
    run: Annotated[Path, Argument(metavar="RUN", help="A run, or a group of one run.")],
    out: Annotated[
        Path | None, Option(metavar="FILE.pftrace", help="File to write; named after RUN by default.")
    ] = None,
    clients: Annotated[
        str | None,
        Option(metavar="LIST", help="Clients to show, such as 0,3,7-12; by default all that had jobs."),
    ] = None,
    rounds: Annotated[
        str | None, Option(metavar="RANGE", help="Rounds to show, such as 2-5; the first one is 0.")
    ] = None,
    force: Force = False,
    steps: Steps = quiet,
) -> Answer:
    """Write what happened in a run as a trace that Perfetto (https://ui.perfetto.dev) opens.

    A track per client shows its jobs; others the server, active clients, traffic, energy and accuracy.
    """
    from edgefl.core.files import check_out
    from edgefl.core.units import show_bytes, show_count

    needs("perfetto", "timelines need", "timeline")
    from edgefl.show.perfetto.build import write_timeline
    from edgefl.show.perfetto.choice import SUFFIXES, TimelineChoice, run_of, timeline_name
    from edgefl.store.reader import read

    folder = run_of(run)
    name = timeline_name(folder)
    path = out or Path(name)
    check_out(path, name, force=force, suffixes=SUFFIXES)
    choice, notes = TimelineChoice.parse(clients, rounds), list[str]()
    with read(folder) as reader:
        written = write_timeline(reader, path, choice, note=notes.append, progress=steps)
    shown = f"{show_count(written.jobs, 'job')} of {show_count(written.clients, 'client')}"
    size = f"{show_bytes(written.bytes)}; {shown}, {show_count(written.events, 'event')}"
    lines = [f"saved {path} ({size})", "open it at https://ui.perfetto.dev"]
    return Answer(f"timeline in {path}", written, lines=lines, notes=notes)


@command(
    "plot runs/first --out accuracy.pdf",
    "plot runs/first runs/second --x bytes --target 0.9 --out traffic.svg",
    "plot runs/first --y target --x time,bytes --target 0.9 --out to.pdf",
    as_json=False,
)
def plot(
    runs: RunFolders,
    out: Annotated[Path, Option(metavar="FILE", help="FILE.pdf, FILE.svg or FILE.png.")],
    x: Annotated[
        str,
        Option("--x", help="time, round, epochs, bytes, joules or client-seconds; several as time,bytes."),
    ] = "time",
    y: Annotated[str, Option("--y", help="accuracy, loss, or target: x until it was reached.")] = "accuracy",
    model: Annotated[
        str | None, Option(help="global or personal; by default global, unless no run has evaluated one.")
    ] = None,
    columns: Annotated[
        int | None,
        Option(
            metavar="1|2", help="Width: one column of a paper (3.5 in) or two (7.16 in); 2 for several x."
        ),
    ] = None,
    log_x: Annotated[bool, Option("--log-x", help="Draw x on a logarithmic scale.")] = False,
    target: Annotated[
        list[float] | None,
        Option(help="An accuracy such as 0.9, for a line or --y target; each run's own by default there."),
    ] = None,
    force: Force = False,
) -> Answer:
    """Draw accuracy or loss of runs against cost, or what a target cost them, for a paper.

    Runs that differ in nothing but their seeds are one, their mean, in its 95% interval.
    """
    from edgefl.core.files import check_out
    from edgefl.show.charts import SUFFIXES, PlotChoice, charts

    choice = PlotChoice(x, y, model, columns, log_x, target)
    check_out(out, "figure.pdf", force=force, suffixes=SUFFIXES)
    needs("matplotlib", "figures need", "plot")
    from edgefl.show.drawing import write_figure

    notes: list[str] = []
    drawn = charts(runs, choice, note=notes.append)
    made, missing = write_figure(drawn, out)
    notes += dict.fromkeys([*(line for one in drawn for line in one.notes), *missing])
    width, height = made.get_size_inches()
    captions = dict.fromkeys(f"caption: {one.caption}" for one in drawn)
    lines = [f"saved {out} ({width:.3g} x {height:.3g} in)", *captions]
    return Answer(f"plot in {out}", {"file": out}, lines=lines, notes=notes)


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
        Argument(
            metavar="TABLE",
            help="Such as jobs, merges, evaluations, client_evaluations, measures, clients or features.",
        ),
    ],
    out: Annotated[
        Path | None, Option(help="A .csv or .parquet file; CSV on standard output by default.")
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
    from edgefl.core.files import check_out, replacing
    from edgefl.core.units import show_bytes
    from edgefl.show.frames import sources, to_csv, to_parquet
    from edgefl.store.reader import check_table

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
