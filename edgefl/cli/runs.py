"""Commands about scenarios and their runs: run them, dry-run them, and compare what was run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edgefl.cli.answering import answered
from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, print_note, stderr, stdout
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
    trackers,
)
from edgefl.cli.streams import OutputError, results
from edgefl.core.errors import UserError

if TYPE_CHECKING:
    from edgefl.runs import Result

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
    given: dict[str, Any] = {"data_dir": data_dir, "download": not offline, "trackers": trackers(track)}
    if resume is None:
        short |= {"link": link, "seed": seed}
        start = _starting(scenario, out=out, seeds=seeds)
    else:
        start = _resuming(
            resume, {"SCENARIO": scenario, "--seed": seed, "--seeds": seeds, "--link": link, "--out": out}
        )
    given["overrides"] = as_overrides(settings or (), engine=engine, **short)
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
    from edgefl.report.comparison import comparison

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
    from edgefl.api import check as ask

    answered(
        ask,
        scenarios,
        method=method,
        overrides=settings or (),
        seed=seed,
        seeds=seeds,
        link=link,
        as_json=as_json,
    )


@app.command(
    epilog=examples(
        "compare runs/first runs/second --target 0.9",
        "compare runs/first --all",
        "compare runs/first --json",
        "compare runs/first --format latex > table.tex",
    )
)
def compare(
    runs: RunFolders,
    target: TargetAccuracy = None,
    sensitivity: Sensitivity = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every figure, with its bounds, and differences over seeds.")
    ] = False,
    format_: InFormat = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: accuracy, and the time, bytes and energy to reach a target; who is ahead.

    Runs that differ in nothing but their seeds are averaged; groups of these are compared seed by seed.

    LaTeX needs the package booktabs. CSV has a row for each run or average, by the keys of `--json`.
    """
    from edgefl.api import compare as ask
    from edgefl.report.comparison import comparison_tables
    from edgefl.report.formats import comma_separated
    from edgefl.report.formats.latex import latex
    from edgefl.report.formats.markdown import markdown
    from edgefl.report.formats.records import records

    chosen = _format(format_, as_json=as_json)
    if chosen in {Format.TABLE, Format.JSON}:
        found = {"target": target, "sensitivity": sensitivity, "all": every}
        answered(ask, runs, **found, as_json=chosen is Format.JSON)
        return
    if sensitivity is not None:
        raise UserError(
            f"--sensitivity cannot be printed as {chosen}", where="--sensitivity", hint="use --format json"
        )
    answer = ask(runs, target=target)
    for note in answer.notes:
        print_note(note)
    if chosen is Format.CSV:
        comma_separated.write(results(), *records(answer.records.runs))
    else:
        write = latex if chosen is Format.LATEX else markdown
        results().write(write(comparison_tables(answer.records.runs, every=every)))


def _format(given: Format | None, *, as_json: bool) -> Format:
    if as_json and given not in {None, Format.JSON}:
        raise UserError(f"--json and --format {given} cannot be combined", where="--format")
    return Format.JSON if as_json else given or Format.TABLE
