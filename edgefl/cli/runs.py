"""Commands about scenarios and their runs: run them, dry-run them, and compare what was run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, TextIO

from rich.console import Group
from typer import Argument, Option

from edgefl.cli.answering import (
    FleetLink,
    Offline,
    Overridden,
    OwnModel,
    Seed,
    Seeds,
    Sensitivity,
    SomeRuns,
    TargetAccuracy,
    command,
    stderr,
)
from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.show.answers import Answer, Steps, quiet, several, unless

if TYPE_CHECKING:
    from edgefl.analysis.summary import DryRun
    from edgefl.core.overrides import Override
    from edgefl.runs.group import Overrides, Scenario
    from edgefl.runs.results import Result

# In what a comparison is printed.
_FORMATS = ("table", "markdown", "latex", "csv", "json")
SomeScenarios = Annotated[
    "Scenario | Sequence[Scenario] | None",
    Argument(metavar="SCENARIO", help="Files or names; all scenarios by default."),
    list[str] | None,
]


@command(
    "run quickstart",
    "run quickstart --set server.rounds=5 --seed 1 --out runs/first",
    "run scenario.yaml --engine null --json",
    "run quickstart --seeds 5",
    "run --resume runs/first",
    "run quickstart --watch",
    "run quickstart --track '{name: wandb, project: mine}'",
)
def run(
    scenario: Annotated[
        str | None, Argument(metavar="SCENARIO", help="A YAML file, or a name from `edgefl list scenarios`.")
    ] = None,
    *,
    overrides: Overridden = (),
    seed: Seed = None,
    seeds: Seeds = None,
    link: FleetLink = None,
    data_dir: Annotated[Path | None, Option(help="Folder of the dataset's files.")] = None,
    engine: Annotated[str | None, Option(help="Training engine, from `edgefl list engines`.")] = None,
    workers: Annotated[int | None, Option(help="Short for --set engine.workers=N.")] = None,
    torch_device: Annotated[
        str | None,
        Option(help="Where torch trains: auto, cpu or cuda:N; short for --set engine.device=DEVICE."),
    ] = None,
    ray_address: Annotated[
        str | None, Option(help="With --engine ray: the cluster's address, or auto.")
    ] = None,
    out: Annotated[Path | None, Option(help="Directory to create; a new one under runs/ by default.")] = None,
    resume: Annotated[
        Path | None,
        Option(
            metavar="RUN",
            help="Go on with a run or a group that stopped; --set server.until.rounds=N makes it longer.",
        ),
    ] = None,
    track: Annotated[
        list[str] | None,
        Option(
            metavar="TRACKER",
            help="Record it with a tracker from `edgefl list trackers`: NAME, or '{name: NAME, KEY: VALUE}'.",
        ),
    ] = None,
    watch: Annotated[
        bool,
        Option("--watch", help="Write the report page of the runs into their directory meanwhile."),
    ] = False,
    offline: Offline = False,
) -> Answer:
    """Run a scenario, or every run of its sweep; or go on with what stopped."""
    from edgefl.cli.watch import watching
    from edgefl.core.errors import short
    from edgefl.core.yamls import Document
    from edgefl.runs.group import as_overrides
    from edgefl.show.compare import comparison
    from edgefl.show.table import Line

    engines = {"engine": engine, "workers": workers, "torch_device": torch_device, "ray_address": ray_address}
    given = as_overrides(overrides, **engines)
    trackers = [Document.value(text, f"--track {short(text.strip())}", lines=False) for text in track or ()]
    start = _start(scenario, resume, {"seed": seed, "seeds": seeds, "link": link, "out": out})
    own = {"overrides": given, "track": trackers, "data_dir": data_dir, "offline": offline}
    with watching(watch, stderr()) as page:
        result = start(**own, callbacks=page, progress=True)
    title, status = f"run of {scenario or resume}", int(bool(result.failed))
    runs, folder = result.readable(), quote(str(result.folder))
    if not runs:
        return Answer(title, result, exit_status=status)
    lines = [
        f"saved in {result.folder}",
        *(f"event hash {run.event_hash}" for run in runs if len(runs) == 1 and run.event_hash),
        f"next: edgefl report {folder}",
        f"      edgefl explain {folder}",
        f"      edgefl compare {folder} --all",
    ]
    # Why a run failed was said when it did.
    view = Group(comparison(runs, reasons=False), Line())
    return Answer(title, result, view, lines, exit_status=status)


def _start(scenario: str | None, folder: Path | None, own: Mapping[str, Any]) -> Callable[..., Result]:
    """Runs a scenario, whose own arguments are given, or goes on with the runs of a folder.

    Raises:
        UserError: there is neither, or something was given that belongs to new runs.
    """
    from edgefl.runs.group import run
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


@command(
    "check",
    "check quickstart --set server.participants=5",
    "check --method flexchill --set method.base=fedprox",
)
def check(
    scenarios: SomeScenarios = None,
    *,
    method: Annotated[
        str | None,
        Option(metavar="NAME", help="Check this method against the contract of all methods instead."),
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
    if seeds and not names:
        raise UserError("--seeds needs a scenario", where="--seeds", hint="edgefl check quickstart --seeds 5")
    return _clocked(names, given, seeds, steps)


def _clocked(names: Sequence[Scenario], given: Overrides, seeds: int | None, steps: Steps) -> Answer:
    """Dry runs of some scenarios, or of all of them at a glance; thousands of runs take minutes."""
    from edgefl.core.catalogue import entries
    from edgefl.core.units import show_count
    from edgefl.planning.assumed import guesses, in_short
    from edgefl.planning.learning import DataAccess
    from edgefl.runs.dry import dry_run, name_of, overview
    from edgefl.show.check import Overview, dry_runs, overviews

    every: Sequence[Scenario] = names or list(entries("scenarios"))
    checked: list[DryRun] = []
    scenarios: list[Overview] = []
    mistakes: list[EdgeflError] = []
    access = DataAccess(need="embedded")
    for place, name in enumerate(every):
        steps(f"checking {name_of(name)}", place, len(every))
        try:
            if names:
                checked += dry_run(name, given, seeds)
            else:
                scenarios.append(overview(str(name), given, access))
                checked += scenarios[-1].runs
        except EdgeflError as error:
            mistakes.append(error)
    summaries = (run.summary for run in checked)
    errors = [RunError(f"{one.name} failed: {one.reason}") for one in summaries if one.status == "failed"]
    notes = [note for run in checked for note in run.notes]
    if names:
        title, document = f"check of {show_count(len(checked), 'run')}", {"runs": checked}
        view = dry_runs(checked) if checked else Group()
        return unless(mistakes, Answer(title, document, view, notes=in_short(notes), errors=errors))
    title, told = f"check of {show_count(len(scenarios), 'scenario')}", in_short(guesses(notes))
    answer = Answer(title, {"scenarios": scenarios}, overviews(scenarios), notes=told, errors=errors)
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
    "compare runs/first runs/second --target 0.9",
    "compare runs/first --all",
    "compare runs/first --json",
    "compare runs/first --rows 'virtual time' --format latex > table.tex",
)
def compare(
    runs: SomeRuns,
    *,
    target: TargetAccuracy = None,
    sensitivity: Sensitivity = None,
    all: Annotated[  # noqa: A002 - as the option
        bool, Option("--all", help="Show every figure, with its bounds, and differences over seeds.")
    ] = False,
    rows: Annotated[
        str, Option(metavar="A,B,C", help="Show these figures, by their labels or keys in `--json`.")
    ] = "",
    format: Annotated[  # noqa: A002 - as the option
        str | None, Option(metavar=f"<{'|'.join(_FORMATS)}>", help="How to print it; as a table by default.")
    ] = None,
    steps: Steps = quiet,
) -> Answer:
    """Compare runs: accuracy, and the time, bytes and energy to reach a target; who is ahead.

    Runs that differ in nothing but their seeds are averaged; groups of these are compared seed by seed.

    LaTeX needs the package booktabs; in it and in Markdown, each row has one unit.

    CSV has a row for each run or average, by the keys of `--json`.
    """
    from edgefl.analysis.groups import seeds_together
    from edgefl.analysis.sensitivity import of_groups
    from edgefl.analysis.summary import summaries
    from edgefl.core.errors import nearest
    from edgefl.core.units import show_count
    from edgefl.runs.results import folders_of
    from edgefl.show.compare import Comparison, comparison
    from edgefl.show.formats import latex, markdown, write_csv
    from edgefl.show.frames import records
    from edgefl.show.sensitivity import sensitivity as swept
    from edgefl.show.table import Line

    chosen = format or "table"
    if chosen not in _FORMATS:
        raise UserError(f"unknown format {chosen!r}", where="format", hint=nearest(chosen, _FORMATS))
    if sensitivity is not None and chosen not in {"table", "json"}:
        raise UserError(
            f"--sensitivity cannot be printed as {chosen}", where="--sensitivity", hint="use --format json"
        )
    if rows and chosen in {"json", "csv"}:
        raise UserError(f"--rows is of tables; {chosen} has every figure", where="--rows")
    notes: list[str] = []
    steps("reading runs", 0, 1)
    compared = summaries(folders_of(runs), target, note=notes.append)
    found = None if sensitivity is None else of_groups(seeds_together(compared), sensitivity)
    one_unit = chosen in {"latex", "markdown"}
    view = comparison(compared, every=all, names=rows, one_unit=one_unit)

    formats: dict[str, Callable[[TextIO], object]] = {
        "csv": lambda stream: write_csv(stream, *records(compared)),
        "latex": lambda stream: stream.write(latex(view)),
        "markdown": lambda stream: stream.write(markdown(view)),
    }
    title = f"comparison of {show_count(len(compared), 'run')}"
    shown = Group(view, *([Line(), swept(found)] if found else []))
    return Answer(title, Comparison(compared, found), shown, notes=notes, plain=formats.get(chosen))
