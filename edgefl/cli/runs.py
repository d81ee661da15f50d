"""Commands about scenarios and their runs: run them, dry-run them, and compare what was run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_error, print_json, print_note, print_trace, stderr, stdout
from edgefl.cli.options import (
    AsJson,
    FleetLink,
    Format,
    InFormat,
    Offline,
    RunFolders,
    Seed,
    Seeds,
    Sensitivity,
    Settings,
    TargetAccuracy,
    TorchDevice,
    Track,
    Watch,
    WatchPort,
    overrides,
    trackers,
)
from edgefl.cli.streams import OutputError, results
from edgefl.core.documents import document
from edgefl.core.errors import EdgeflError, RunError, UserError

if TYPE_CHECKING:
    from edgefl.core.overrides import Override
    from edgefl.planning.sensitivity import Sensitivity as Found
    from edgefl.report.overviews import Overview
    from edgefl.report.summary import DryRun, Summary
    from edgefl.runs import Result
    from edgefl.runs.contract import Finding
    from edgefl.runs.group import Overrides

_RUN = examples(
    "run quickstart",
    "run quickstart --set server.rounds=5 --seed 1 --out runs/first",
    "run scenario.yaml --engine null --json",
    "run quickstart --seeds 5",
    "run --resume runs/first",
    "run quickstart --watch",
    "run quickstart --track '{name: wandb, project: mine}'",
)


@app.command(epilog=_RUN)
def run(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="SCENARIO", help="A YAML file, or a name from `edgefl list scenarios`."),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    seeds: Seeds = None,
    link: FleetLink = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the dataset's files.")] = None,
    engine: Annotated[str | None, typer.Option(help="Training engine, from `edgefl list engines`.")] = None,
    workers: Annotated[int | None, typer.Option(help="Short for --set engine.workers=N.")] = None,
    torch_device: TorchDevice = None,
    ray_address: Annotated[
        str | None, typer.Option(help="With --engine ray: the cluster's address, or auto.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory to create; a new one under runs/ by default.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Go on with a run or a group that stopped; --set server.until.rounds=N makes it longer.",
        ),
    ] = None,
    track: Track = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario, or every run of its sweep; or go on with what stopped."""
    from edgefl.cli.watch import watching
    from edgefl.runs.progress import Display

    short = {"workers": workers, "torch_device": torch_device, "ray_address": ray_address}
    given: dict[str, Any] = {"data_dir": data_dir, "download": not offline, "trackers": trackers(track)}
    if resume is None:
        short |= {"link": link, "seed": seed}
        start = _starting(scenario, out=out, seeds=seeds)
    else:
        start = _resuming(
            resume, {"SCENARIO": scenario, "--seed": seed, "--seeds": seeds, "--link": link, "--out": out}
        )
    given["overrides"] = overrides(settings, engine=engine, **short)
    console = stderr()
    with watching(watch, watch_port, console) as page:
        with Display(console) as display:
            try:
                result = start(**given, callbacks=page.beside(display))
            except KeyboardInterrupt:
                display.interrupted()
                raise typer.Exit(130) from None
        _print_runs(result, as_json=as_json)
        page.stay()
    if result.failed:
        raise typer.Exit(1)


def _starting(scenario: str | None, **given: Any) -> Callable[..., Result]:
    """Runs a scenario.

    Raises:
        UserError: there is none.
    """
    from edgefl.runs import run as run_scenario

    if scenario is None:
        raise UserError(
            "nothing to run", where="SCENARIO", hint="give a scenario, such as quickstart, or --resume RUN"
        )
    return partial(run_scenario, scenario, **given)


def _resuming(folder: Path, others: Mapping[str, Any]) -> Callable[..., Result]:
    """Goes on with runs.

    Raises:
        UserError: something was given that belongs to new runs.
    """
    from edgefl.runs.resuming import resume

    wrong = next((name for name, value in others.items() if value is not None), None)
    if wrong is not None:
        raise UserError(
            f"--resume cannot be combined with {wrong}",
            where=wrong,
            hint="a run goes on as it began; server.until, engine and checkpoint can be set",
        )
    return partial(resume, folder)


def _print_runs(result: Result, *, as_json: bool) -> None:
    """Prints what the runs gave, where they are saved, and what may be asked of them next."""
    from edgefl.report.comparison import Comparison, comparison

    runs = _read(result)
    try:
        if as_json:
            print_json({"group_dir": str(result.folder), **document(Comparison(runs))})
        elif runs:
            console = stdout()
            # Why a run failed was said when it did.
            console.print(comparison(runs, reasons=False))
            console.print()
            console.print(f"saved in {result.folder}", soft_wrap=True)
            if len(runs) == 1 and runs[0].event_hash:
                console.print(f"event hash {runs[0].event_hash}")
            folder = quote(str(result.folder))
            console.print(f"next: edgefl report {folder}", soft_wrap=True)
            console.print(f"      edgefl explain {folder}", soft_wrap=True)
            console.print(f"      edgefl compare {folder} --all", soft_wrap=True)
    except OutputError as error:
        raise OutputError(error.what, hint=f"the runs are saved in {result.folder}") from error


def _read(result: Result) -> list[Summary]:
    """Those of the runs that have a directory; where a disk is full, it may not tell how its run ended."""
    from edgefl.report.summary import summaries
    from edgefl.store import is_run

    saved = [run for run in result.runs if is_run(run.folder)]
    found = summaries([run.folder for run in saved])
    return [replace(one, status=run.status, reason=run.reason) for one, run in zip(found, saved, strict=True)]


@app.command(
    epilog=examples(
        "check",
        "check quickstart --set server.participants=5",
        "check --method flexchill --set method.base=fedprox",
    )
)
def check(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCENARIO", help="Files or names; all scenarios by default."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Check this method against the contract of all methods instead."),
    ] = None,
    settings: Settings = None,
    seed: Seed = None,
    seeds: Seeds = None,
    link: FleetLink = None,
    as_json: AsJson = False,
) -> None:
    """Validate scenarios and dry-run them: the clock and the costs, no training, no data files.

    Without a scenario, all are checked: of each kind of run, one, for a few rounds.

    The checks, messages and exit statuses are those of `edgefl run`.

    With `--method`, `--set` changes the scenario of the check; `--set method.KEY=VALUE` sets a parameter.
    """
    if method is not None:
        if scenarios or link or seeds:
            raise UserError("--method takes no scenario, no --link and no --seeds", where="--method")
        _check_method(method, overrides(settings, seed=seed), as_json=as_json)
        return
    given = overrides(settings, seed=seed, link=link)
    if not scenarios:
        if seeds:
            raise UserError(
                "--seeds needs a scenario", where="--seeds", hint="edgefl check quickstart --seeds 5"
            )
        _check_all(given, as_json=as_json)
        return
    from edgefl.report.comparison import dry_runs
    from edgefl.runs.dry import dry_run

    checked: list[DryRun] = []
    statuses = [0]
    for name in scenarios:
        try:
            # A sweep of thousands of runs takes minutes.
            with stderr().status(Text(f"checking {name}")):
                checked += dry_run(name, given, seeds)
        except EdgeflError as error:
            statuses.append(error.exit_status)
            print_error(error)
    _print_notes(checked)
    if as_json:
        print_json({"runs": checked})
    elif checked:
        stdout().print(dry_runs(checked))
    failed = [run.summary for run in checked if run.summary.status == "failed"]
    for each in failed:
        print_error(RunError(f"{each.name} failed: {each.reason}"))
    raise typer.Exit(max([*statuses, *(1 for _ in failed)]))


def _print_notes(checked: Sequence[DryRun]) -> None:
    """What was assumed and who was refused: each note once, with its runs where not all share it."""
    from edgefl.planning.assumed import in_short

    runs: dict[str, list[str]] = {}
    for run in checked:
        for note in run.notes:
            runs.setdefault(note, []).append(run.summary.name)
    told = []
    for note, names in runs.items():
        everyone = len(names) == len(checked) or note.startswith(f"{names[0]}: ")
        told.append(note if everyone or ": " in note else f"{', '.join(dict.fromkeys(names))}: {note}")
    for note in in_short(told):
        print_note(note)


def _check_all(given: Overrides, *, as_json: bool) -> None:
    """Looks at every scenario.

    Raises:
        Exit: always, with the status of the worst.
    """
    from edgefl.core.catalogue import entries
    from edgefl.planning.assumed import in_short
    from edgefl.planning.learning import DataAccess
    from edgefl.report.overviews import overviews
    from edgefl.runs.overview import overview

    found: list[Overview] = []
    statuses, access = [0], DataAccess(need="embedded")
    names = list(entries("scenarios"))
    with stderr().status("") as progress:
        for number, name in enumerate(names, start=1):
            progress.update(Text(f"checking {name}, {number} of {len(names)}"))
            try:
                found.append(overview(name, given, access))
            except EdgeflError as error:
                statuses.append(error.exit_status)
                print_error(error)
    if as_json:
        print_json({"scenarios": found})
    else:
        stdout().print(overviews(found))
        for note in in_short(line for each in found for line in each.assumed)[-1:]:
            print_note(note)
    failed = [message for each in found for message in each.failed]
    for message in failed:
        print_error(RunError(message))
    raise typer.Exit(max([*statuses, *(1 for _ in failed)]))


def _check_method(name: str, given: Sequence[str | Override], *, as_json: bool) -> None:
    """Prints which promises a method keeps; exit status 1 if one is broken."""
    from edgefl.core.catalogue import find
    from edgefl.runs.contract import check_method

    find("methods", name, where="--method")
    findings = check_method({"name": name}, given)
    broken = [finding for finding in findings if finding.kept is False]
    if as_json:
        print_json({"method": name, "promises": findings})
    else:
        _print_findings(name, findings)
    if broken:
        print_trace("\n".join(dict.fromkeys(finding.trace for finding in broken if finding.trace)))
        raise typer.Exit(1)


def _print_findings(name: str, findings: Sequence[Finding]) -> None:
    from edgefl.report.tables import named

    words = {True: "kept", False: "BROKEN", None: "-"}
    console = stdout()
    rows = [(one.promise, words[one.kept]) for one in findings]
    console.print(named("", rows, (f"promises of {name}", "")))
    for finding in findings:
        if finding.kept is None:
            console.print(f"- {finding.detail}", style="dim")
    broken: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        if finding.kept is False:
            broken.setdefault((finding.detail, finding.where, finding.hint), []).append(finding)
    for told, found in broken.items():
        console.print()
        for finding in found:
            console.print(f"BROKEN: {finding.promise}", soft_wrap=True)
        for head, text in zip(("", "where: ", "hint:  "), told, strict=True):
            if text:
                console.print(f"  {head}{text}", soft_wrap=True)


@app.command(
    epilog=examples(
        "compare runs/first runs/second --target 0.9",
        "compare runs/first --all",
        "compare runs/first --json",
        "compare runs/first --rows 'accuracy, global, virtual time' --format latex > table.tex",
    )
)
def compare(
    runs: RunFolders,
    target: TargetAccuracy = None,
    sensitivity: Sensitivity = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every figure, with its bounds, and differences over seeds.")
    ] = False,
    rows: Annotated[
        str, typer.Option(metavar="A,B,C", help="Show these figures, by their labels or keys in `--json`.")
    ] = "",
    format_: InFormat = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: accuracy, and the time, bytes and energy to reach a target; who is ahead.

    Runs that differ in nothing but their seeds are averaged; groups of these are compared seed by seed.

    LaTeX needs the package booktabs; in it and in Markdown, what is compared has one unit. CSV has a row for
    each run or average, by the keys of `--json`.
    """
    from edgefl.report.sensitivity import of_runs
    from edgefl.report.summary import summaries

    chosen = _format(format_, as_json=as_json)
    if sensitivity is not None and chosen not in {Format.TABLE, Format.JSON}:
        raise UserError(
            f"--sensitivity cannot be printed as {chosen}", where="--sensitivity", hint="use --format json"
        )
    if rows and chosen in {Format.JSON, Format.CSV}:
        raise UserError(f"--rows is of tables; {chosen} has every figure", where="--rows")
    compared = summaries(runs, target, note=print_note)
    found = None if sensitivity is None else of_runs(compared, sensitivity)
    _print_comparison(compared, found, chosen, every=every, names=rows)


def _format(given: Format | None, *, as_json: bool) -> Format:
    if as_json and given not in {None, Format.JSON}:
        raise UserError(f"--json and --format {given} cannot be combined", where="--format")
    return Format.JSON if as_json else given or Format.TABLE


def _print_comparison(
    runs: Sequence[Summary], found: Found | None, chosen: Format, *, every: bool, names: str
) -> None:
    from edgefl.report.comparison import Comparison, comparison, comparison_tables
    from edgefl.report.formats import comma_separated
    from edgefl.report.formats.latex import latex
    from edgefl.report.formats.markdown import markdown
    from edgefl.report.formats.records import records
    from edgefl.report.sensitivity import sensitivity

    if chosen is Format.JSON:
        print_json(Comparison(runs, found))
    elif chosen is Format.CSV:
        comma_separated.write(results(), *records(runs))
    elif chosen is not Format.TABLE:
        found_tables = comparison_tables(runs, every=every, names=names, one_unit=True)
        results().write((latex if chosen is Format.LATEX else markdown)(found_tables))
    else:
        console = stdout()
        console.print(comparison(runs, every=every, names=names))
        if found:
            console.print()
            console.print(sensitivity(found))
