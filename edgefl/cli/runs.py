"""Commands about scenarios and their runs: run them, dry-run them, and compare what was run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Group

from edgefl.cli.answering import command
from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, stderr, stdout
from edgefl.cli.options import (
    AsJson,
    FleetLink,
    Format,
    InFormat,
    Offline,
    Overridden,
    OwnModel,
    Seed,
    Seeds,
    Sensitivity,
    Settings,
    SomeRuns,
    SomeScenarios,
    TargetAccuracy,
    TorchDevice,
    Track,
    Watch,
    WatchPort,
    trackers,
)
from edgefl.cli.streams import OutputError
from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.show.answers import Answer, Steps, quiet, several, unless

if TYPE_CHECKING:
    from edgefl.analysis.summary import DryRun
    from edgefl.core.overrides import Override
    from edgefl.runs import Result
    from edgefl.runs.group import Overrides, Scenario

Found = TypeVar("Found")

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
    from edgefl.runs.group import as_overrides
    from edgefl.runs.progress import Display

    short = {"workers": workers, "torch_device": torch_device, "ray_address": ray_address}
    given = {"overrides": as_overrides(settings or (), engine=engine, **short), "track": trackers(track)}
    start = _start(scenario, resume, {"seed": seed, "seeds": seeds, "link": link, "out": out})
    console = stderr()
    with watching(watch, watch_port, console) as page:
        with Display(console) as display:
            try:
                result = start(**given, data_dir=data_dir, offline=offline, callbacks=page.beside(display))
            except KeyboardInterrupt:
                display.interrupted()
                raise typer.Exit(130) from None
        _print_runs(result, as_json=as_json)
        page.stay()
    if result.failed:
        raise typer.Exit(1)


def _start(scenario: str | None, folder: Path | None, own: Mapping[str, Any]) -> Callable[..., Result]:
    """Runs a scenario, whose own arguments are given, or goes on with the runs of a folder.

    Raises:
        UserError: there is neither, or something was given that belongs to new runs.
    """
    from edgefl.runs import run
    from edgefl.runs.resuming import resume

    if folder is not None:
        given = {"SCENARIO": scenario} | {f"--{name}": value for name, value in own.items()}
        wrong = next((name for name, value in given.items() if value is not None), None)
        if wrong is not None:
            hint = "a run goes on as it began; server.until, engine and checkpoint can be set"
            raise UserError(f"--resume cannot be combined with {wrong}", where=wrong, hint=hint)
        return partial(resume, folder)
    if scenario is None:
        hint = "give a scenario, such as quickstart, or --resume RUN"
        raise UserError("nothing to run", where="SCENARIO", hint=hint)
    return partial(run, scenario, **own)


def _print_runs(result: Result, *, as_json: bool) -> None:
    """Prints what the runs gave, where they are saved, and what may be asked of them next."""
    from edgefl.show.compare import comparison

    try:
        if as_json:
            print_json(result.document)
        elif runs := result.readable():
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


@command(
    examples(
        "check",
        "check quickstart --set server.participants=5",
        "check --method flexchill --set method.base=fedprox",
    )
)
def check(
    scenarios: SomeScenarios = None,
    *,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Check this method against the contract of all methods instead."),
    ] = None,
    overrides: Overridden = (),
    model: OwnModel = None,
    seed: Seed = None,
    seeds: Seeds = None,
    link: FleetLink = None,
    steps: Steps = quiet,
) -> Answer:
    """Validate scenarios and dry-run them: the clock and the costs, no training, no data files.

    Without a scenario, all are checked: of each kind of run, one, for a few rounds.

    The checks, messages and exit statuses are those of `edgefl run`.

    With `--method`, `--set` changes the scenario of the check; `--set method.KEY=VALUE` sets a parameter.
    """
    from edgefl.runs.group import as_overrides

    names, given = several(scenarios), as_overrides(overrides, model=model, seed=seed, link=link)
    if method is not None:
        if names or link or seeds:
            raise UserError("--method takes no scenario, no --link and no --seeds", where="--method")
        return _promises(method, given)
    if names:
        return _dry_runs(names, given, seeds, steps)
    if seeds:
        raise UserError("--seeds needs a scenario", where="--seeds", hint="edgefl check quickstart --seeds 5")
    return _overviews(given, steps)


def _each(
    names: Sequence[Any], look: Callable[[Any], Found], steps: Steps
) -> tuple[list[Found], list[EdgeflError]]:
    """What is found in each scenario, and the mistakes."""
    from edgefl.runs.dry import name_of

    found: list[Found] = []
    mistakes: list[EdgeflError] = []
    for place, name in enumerate(names):
        steps(f"checking {name_of(name)}", place, len(names))
        try:
            found.append(look(name))
        except EdgeflError as error:
            mistakes.append(error)
    return found, mistakes


def _dry_runs(names: Sequence[Scenario], given: Overrides, seeds: int | None, steps: Steps) -> Answer:
    from edgefl.core.units import show_count
    from edgefl.planning.assumed import in_short
    from edgefl.runs.dry import dry_run
    from edgefl.show.check import dry_runs

    # A sweep of thousands of runs takes minutes.
    found, mistakes = _each(names, lambda name: dry_run(name, given, seeds), steps)
    checked = [run for runs in found for run in runs]
    answer = Answer(
        f"check of {show_count(len(checked), 'run')}",
        {"runs": checked},
        dry_runs(checked) if checked else Group(),
        notes=in_short(note for run in checked for note in run.notes),
        errors=_failures(checked),
    )
    return unless(mistakes, answer)


def _failures(checked: Iterable[DryRun]) -> list[RunError]:
    found = (run.summary for run in checked)
    return [RunError(f"{one.name} failed: {one.reason}") for one in found if one.status == "failed"]


def _overviews(given: Overrides, steps: Steps) -> Answer:
    from edgefl.core.catalogue import entries
    from edgefl.core.units import show_count
    from edgefl.planning.assumed import guesses, in_short
    from edgefl.planning.learning import DataAccess
    from edgefl.runs.dry import overview
    from edgefl.show.check import overviews

    access = DataAccess(need="embedded")
    names = list(entries("scenarios"))
    found, mistakes = _each(names, lambda name: overview(name, given, access), steps)
    checked = [run for each in found for run in each.runs]
    answer = Answer(
        f"check of {show_count(len(found), 'scenario')}",
        {"scenarios": found},
        overviews(found),
        notes=in_short(guesses(note for run in checked for note in run.notes)),
        errors=_failures(checked),
    )
    return unless(mistakes, answer)


def _promises(name: str, given: Sequence[Override]) -> Answer:
    """Which promises a method keeps; broken ones are a failure."""
    from edgefl.core.catalogue import find
    from edgefl.core.units import show_count
    from edgefl.runs.contract import check_method
    from edgefl.runs.contract.findings import promises, told

    find("methods", name, where="--method")
    findings = check_method({"name": name}, given)
    broken = [one for one in findings if one.kept is False]
    failed = RunError(f"{name} breaks {show_count(len(broken), 'promise')}")
    failed.trace = "\n".join(dict.fromkeys(one.trace for one in broken if one.trace))
    return Answer(
        f"check of {name}",
        {"method": name, "promises": findings},
        promises(name, findings),
        lines=list(told(broken)),
        errors=[failed] if broken else [],
    )


@command(
    examples(
        "compare runs/first runs/second --target 0.9",
        "compare runs/first --all",
        "compare runs/first --json",
        "compare runs/first --rows 'virtual time' --format latex > table.tex",
    )
)
def compare(
    runs: SomeRuns,
    *,
    target: TargetAccuracy = None,
    sensitivity: Sensitivity = None,
    all: Annotated[  # noqa: A002 - as the option
        bool, typer.Option("--all", help="Show every figure, with its bounds, and differences over seeds.")
    ] = False,
    rows: Annotated[
        str, typer.Option(metavar="A,B,C", help="Show these figures, by their labels or keys in `--json`.")
    ] = "",
    format: InFormat = None,  # noqa: A002 - as the option
    steps: Steps = quiet,
) -> Answer:
    """Compare runs: accuracy, and the time, bytes and energy to reach a target; who is ahead.

    Runs that differ in nothing but their seeds are averaged; groups of these are compared seed by seed.

    LaTeX needs the package booktabs; in it and in Markdown, each row has one unit.

    CSV has a row for each run or average, by the keys of `--json`.
    """
    from edgefl.analysis.sensitivity import of_runs
    from edgefl.analysis.summary import summaries
    from edgefl.core.errors import nearest
    from edgefl.core.units import show_count
    from edgefl.runs.results import folders_of
    from edgefl.show.compare import Comparison, comparison
    from edgefl.show.formats import comma_separated
    from edgefl.show.formats.latex import latex
    from edgefl.show.formats.markdown import markdown
    from edgefl.show.formats.records import records
    from edgefl.show.sensitivity import sensitivity as swept
    from edgefl.show.table import Line

    chosen = format or Format.TABLE
    if chosen not in set(Format):
        raise UserError(f"unknown format {chosen!r}", where="format", hint=nearest(chosen, map(str, Format)))
    if sensitivity is not None and chosen not in {Format.TABLE, Format.JSON}:
        raise UserError(
            f"--sensitivity cannot be printed as {chosen}", where="--sensitivity", hint="use --format json"
        )
    if rows and chosen in {Format.JSON, Format.CSV}:
        raise UserError(f"--rows is of tables; {chosen} has every figure", where="--rows")
    notes: list[str] = []
    steps("reading runs", 0, 1)
    compared = summaries(folders_of(runs), target, note=notes.append)
    found = None if sensitivity is None else of_runs(compared, sensitivity)
    one_unit = chosen in {Format.LATEX, Format.MARKDOWN}
    view = comparison(compared, every=all, names=rows, one_unit=one_unit)
    plain = None
    if chosen == Format.CSV:
        stream = io.StringIO(newline="")
        comma_separated.write(stream, *records(compared))
        plain = stream.getvalue()
    elif one_unit:
        plain = latex(view) if chosen == Format.LATEX else markdown(view)
    title = f"comparison of {show_count(len(compared), 'run')}"
    view = Group(view, *([Line(), swept(found)] if found else []))
    return Answer(title, Comparison(compared, found), view, notes=notes, plain=plain)
