"""The command line: parse and print, nothing else.

Results go to stdout; progress, notes and errors to stderr. Exit status: 0 done, 1 a run failed, 2 bad input.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from edgefl.core.errors import EdgeflError

if TYPE_CHECKING:
    from edgefl.calibrate import Calibration

app = typer.Typer(
    help="What would federated learning cost on your devices? Real training under a simulated clock.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as server.rounds=5."),
]
Seed = Annotated[int | None, typer.Option(help="The same as --set seed=N.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
ScenarioName = Annotated[str, typer.Argument(metavar="SCENARIO", help="A file, or a shipped name.")]
# Accuracies to suggest as a target, the most wanted first.
_TARGETS = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


@app.command()
def run(
    scenario: ScenarioName,
    settings: Settings = None,
    seed: Seed = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where datasets' files lie.")] = None,
    engine: Annotated[str | None, typer.Option(help="Who trains; `edgefl list engines` has them.")] = None,
    workers: Annotated[int | None, typer.Option(help="The same as --set engine.workers=N.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda:N; --set engine.device=...")] = None,
    ray_address: Annotated[
        str | None, typer.Option(help="With --engine ray: a cluster's address, or auto.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The directory to make; a fresh one under runs/ by default.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Never download a dataset.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario: one run, or one for each setting of its sweep."""
    from edgefl.cli.progress import Display
    from edgefl.report.summary import summaries
    from edgefl.report.tables import comparison
    from edgefl.runs import run as run_scenario

    with Display(stderr()) as display:
        try:
            result = run_scenario(
                scenario,
                overrides=[
                    *_overrides(settings, seed),
                    *_engine_settings(workers=workers, device=device, address=ray_address),
                ],
                data_dir=data_dir,
                download=not offline,
                engine=engine,
                out=out,
                watch=display,
            )
        except KeyboardInterrupt:
            display.interrupted()
            raise typer.Exit(130) from None
    found = summaries([one.folder for one in result.runs])
    if as_json:
        print_json({"group_dir": str(result.folder), "runs": found})
    else:
        console = stdout()
        console.print(comparison(found))
        console.print()
        console.print(f"saved in {result.folder}", soft_wrap=True)
        target = _next_target(found)
        asked = "" if target is None else f" --target {target}"
        console.print(f"next: edgefl compare {result.folder}{asked}", soft_wrap=True)
    if result.failed:
        raise typer.Exit(1)


@app.command()
def check(
    scenarios: Annotated[
        list[str] | None, typer.Argument(metavar="[SCENARIO]...", help="Files or names; all by default.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Check what every method promises on this one instead.")
    ] = None,
    settings: Settings = None,
) -> None:
    """Validate scenarios and dry-run them: the clock and the costs, no training, no data files."""
    if method is not None:
        _check_method(method)
        return
    from edgefl.core.catalogue import entries
    from edgefl.report.tables import checked
    from edgefl.runs.dry import Checked, dry_run

    found: list[Checked] = []
    broken = 0
    for name in scenarios or list(entries("scenarios")):
        try:
            runs = dry_run(name, _overrides(settings, None))
        except EdgeflError as error:
            broken += 1
            _print_error(error)
            continue
        found += runs
        for note in dict.fromkeys(note for one in runs for note in one.notes):
            stderr().print(f"note: {note}", style="dim", soft_wrap=True)
    if found:
        stdout().print(checked(found))
    if broken:
        raise typer.Exit(2)
    if any(one.refused == one.clients for one in found):
        raise typer.Exit(1)


def _engine_settings(**settings: int | str | None) -> list[str]:
    return [f"engine.{key}={value}" for key, value in settings.items() if value is not None]


def _check_method(name: str) -> None:
    """Exit status 1 where a promise is broken."""
    from edgefl.report.tables import named
    from edgefl.runs.contract import check_method

    found = check_method({"name": name})
    words = {True: "kept", False: "BROKEN", None: "not made"}
    rows = [(one.promise, words[one.kept], one.detail) for one in found]
    stdout().print(named("", rows, (f"what {name} promises", "", "detail")))
    if any(one.kept is False for one in found):
        raise typer.Exit(1)


@app.command()
def profile(
    scenario: ScenarioName,
    device: Annotated[
        list[str] | None, typer.Option(help="A device to price on, or all; the fleet's own by default.")
    ] = None,
    link: Annotated[str | None, typer.Option(help="A network class; `edgefl list links` has them.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="fp32, fp16, bf16 or int8; the fleet's own by default.")
    ] = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="Add each layer's counts, fvcore's beside ours.")
    ] = False,
    measure: Annotated[
        bool,
        typer.Option("--measure-memory", help="Also do the work once on this host, in fresh processes."),
    ] = False,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Show one round's compute, memory, bytes, time and energy for a client; nothing is trained."""
    from edgefl.planning.fleets import dtype_of
    from edgefl.planning.learning import DataAccess
    from edgefl.planning.profile import Ask
    from edgefl.planning.profile import profile as profile_run
    from edgefl.planning.published import comparisons
    from edgefl.report import costs
    from edgefl.report.published import published
    from edgefl.runs import drafts

    ask = Ask(tuple(device or ()), link, dtype_of(dtype), layers=layers, measure=measure)
    access = DataAccess(need="nothing")
    runs = drafts(scenario, _overrides(settings, None))
    found = [profile_run(draft, ask, access) for draft in runs]
    claims = comparisons(runs, found)
    if as_json:
        print_json({"profiles": found, "published": claims})
        return
    console = stdout()
    for one in found:
        console.rule(f"{one['scenario']}: {one['method']}", align="left")
        for note in one["assumed"]:
            console.print(f"assumed: {note}", style="dim")
        console.print(costs.profile(one))
        if layers:
            console.print(costs.layers(one))
    if claims:
        console.print(published(claims))


@app.command()
def calibrate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The device's name, such as my-laptop.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The file; devices/NAME.yaml in EDGEFL_PATH's first folder or here by default."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads that training and inference work on.")] = 1,
    curves: Annotated[
        bool, typer.Option("--measured", help="Write step times of networks, not a roofline.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    quick: Annotated[bool, typer.Option("--quick", hidden=True, help="Too short to be of use.")] = False,
    as_json: AsJson = False,
) -> None:
    """Measure this machine into a device file; takes some minutes."""
    from edgefl.calibrate import FULL, QUICK
    from edgefl.calibrate import calibrate as measure
    from edgefl.cli.steps import Steps
    from edgefl.report.calibration import calibration

    with Steps(stderr()) as steps:
        found = measure(
            name,
            out=out,
            force=force,
            threads=threads,
            curves=curves,
            effort=QUICK if quick else FULL,
            progress=steps.show,
        )
    for note in found.notes:
        stderr().print(f"note: {note}", style="dim", soft_wrap=True)
    if as_json:
        print_json(asdict(found))
        return
    console = stdout()
    console.print(calibration(found.steps, found.inference))
    console.print()
    console.print(f"saved in {found.file} after {found.took_s:.0f} s", soft_wrap=True)
    console.print(_next_of_device(found), soft_wrap=True)


def _next_of_device(found: Calibration) -> str:
    """What to do with a device file."""
    if found.found:
        return f"next: edgefl show device {found.device}"
    return (
        "next: move it to a devices/ folder under a directory on EDGEFL_PATH, where scenarios find it by name"
    )


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs, or groups of runs.")],
    target: Annotated[float | None, typer.Option(help="An accuracy to reach, such as 0.9.")] = None,
    as_json: AsJson = False,
) -> None:
    """Put runs side by side: accuracy, and time, bytes and energy to it."""
    from edgefl.report.summary import summaries
    from edgefl.report.tables import comparison

    found = summaries(runs, target)
    if as_json:
        print_json({"runs": found})
    else:
        stdout().print(comparison(found))


@app.command(name="list")
def list_(
    kind: Annotated[
        str | None, typer.Argument(help="devices, methods, scenarios ...; everything by default.")
    ] = None,
) -> None:
    """List what there is by name."""
    from edgefl.core.catalogue import KINDS, entries, summary
    from edgefl.report.tables import named

    for one in [kind] if kind else KINDS:
        rows = [(name, summary(entry)) for name, entry in entries(one).items()]
        stdout().print(named(one, rows, ("name", "what it is")))


@app.command()
def show(
    kind: Annotated[str, typer.Argument(help="A kind that `edgefl list` shows, in singular or plural.")],
    name: Annotated[str, typer.Argument(help="A name of that kind.")],
) -> None:
    """Show one thing: a device's numbers with their sources, a method's paper and parameters, a file."""
    from edgefl.planning.describe import describe

    title, text, rows, heads = describe(kind, name)
    from edgefl.report.tables import named

    console = stdout()
    console.print(title, style="bold", soft_wrap=True)
    if text:
        console.print(text, markup=False)
    if rows:
        console.print(named("", rows, heads))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a scenario file, for editors."""
    from edgefl.planning.schema import schema as scenario_schema

    print_json(scenario_schema())


def _next_target(runs: list[dict[str, Any]]) -> float | None:
    """The highest accuracy worth asking for that some run came to; None where nobody came to any."""
    own = {run["target"]["accuracy"] for run in runs if run["target"]}
    best = max((one["value"] for run in runs for one in run["accuracy"].values()), default=0.0)
    return next((target for target in _TARGETS if target <= best and target not in own), None)


def _overrides(settings: list[str] | None, seed: int | None) -> list[str]:
    return [*(settings or []), *([] if seed is None else [f"seed={seed}"])]


def stdout() -> Console:
    """Where results go; 100 columns wide where it is no terminal."""
    return Console(width=None if sys.stdout.isatty() else 100, highlight=False)


def stderr() -> Console:
    """Where progress, notes and errors go."""
    return Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on stdout; nothing at all where the value is none."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def _print_error(error: EdgeflError) -> None:
    stderr().print(f"error: {error}", style="red", soft_wrap=True, markup=False)


@contextmanager
def _terminable() -> Iterator[None]:
    """Has SIGTERM end what is inside as an interrupt would: workers end, and what was shared goes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminated(number: int, _: Any) -> NoReturn:
    raise SystemExit(128 + number)


def main(arguments: list[str] | None = None, program: Callable[..., Any] = app) -> None:
    """Runs the command line and exits with its status.

    Raises:
        SystemExit: always, with status 0, 1 or 2; 130 where it was interrupted, 143 where it was terminated.
    """
    try:
        with _terminable():
            program(arguments)
    except EdgeflError as error:
        _print_error(error)
        sys.exit(error.exit_status)
