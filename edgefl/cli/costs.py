"""Commands about costs before anything is trained: profile a round, and calibrate this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Group
from typer import Argument, Option

from edgefl.cli.answering import Force, Overridden, OwnModel, Seed, Sensitivity, command, stderr
from edgefl.show.answers import Answer, Steps, quiet, several

if TYPE_CHECKING:
    from edgefl.runs.group import Scenario

ScenarioName = Annotated[
    "Scenario", Argument(metavar="SCENARIO", help="A YAML file, or a name from `edgefl list scenarios`."), str
]


@command("profile quickstart", "profile quickstart --device raspberry-pi-4b --link 4g --layers")
def profile(
    scenario: ScenarioName,
    *,
    device: Annotated[
        str | Sequence[str] | None,
        Option(help="Device to price, or all; the fleet's devices by default."),
        list[str] | None,
    ] = None,
    link: Annotated[str | None, Option(help="Network class, from `edgefl list links`.")] = None,
    dtype: Annotated[
        str | None, Option(help="fp32, fp16, bf16 or int8; the fleet's own type by default.")
    ] = None,
    layers: Annotated[
        bool, Option("--layers", help="Add work, time, energy and memory layer by layer.")
    ] = False,
    measure_memory: Annotated[
        bool, Option("--measure-memory", help="Also run the work here, beside the predicted memory.")
    ] = False,
    measure_time: Annotated[
        bool, Option("--measure-time", help="Also time its steps here, beside the predicted time.")
    ] = False,
    sensitivity: Sensitivity = None,
    overrides: Overridden = (),
    model: OwnModel = None,
    seed: Seed = None,
    steps: Steps = quiet,
) -> Answer:
    """Show one round's compute, memory, bytes, time and energy for a client; nothing is trained."""
    from edgefl.analysis.published import beside_profiles
    from edgefl.core.units import show_count
    from edgefl.planning.fleets import dtype_of
    from edgefl.planning.learning import DataAccess
    from edgefl.planning.profile import ProfileOptions, swept_rounds
    from edgefl.planning.profile import profile as profile_run
    from edgefl.runs.group import as_overrides, drafts
    from edgefl.show.profile import profiles

    measure = [what for what, on in (("memory", measure_memory), ("time", measure_time)) if on]
    options = ProfileOptions(
        list(map(str, several(device))), link, dtype_of(dtype), layers=layers, measure=measure
    )
    access = DataAccess(need="nothing")
    runs = drafts(scenario, as_overrides(overrides, model=model, seed=seed))
    found = []
    for place, draft in enumerate(runs):
        steps(f"profiling {draft.scenario.name}", place, len(runs))
        found.append(profile_run(draft, options, access))
    published = beside_profiles(runs, found)
    swept = []
    records: dict[str, Any] = {"profiles": found, "published": published}
    if sensitivity is not None:
        records["sensitivity"] = swept = swept_rounds(runs, options, access, sensitivity)
    return Answer(f"profile of {show_count(len(runs), 'run')}", records, profiles(found, published, swept))


@command(
    "calibrate my-laptop",
    "calibrate my-laptop --threads 2 --out devices/my-laptop.yaml",
    "calibrate my-board --idle 3W --active 9W",
)
def calibrate(
    name: Annotated[str, Argument(metavar="NAME", help="Name of the new device, such as my-laptop.")],
    out: Annotated[
        Path | None,
        Option(
            help="File to write, in a folder that exists; by default devices/NAME.yaml in the first folder "
            "on EDGEFL_PATH, or here."
        ),
    ] = None,
    threads: Annotated[int, Option(min=1, help="Threads for training and inference.")] = 1,
    power_log: Annotated[
        Path | None,
        Option(
            "--power-log",
            help="A wattmeter's CSV log of the machine's power while it is calibrated: lines of time,watts.",
        ),
    ] = None,
    idle: Annotated[
        str | None, Option(metavar="WATTS", help="The machine's power at rest, read off a meter: 3W.")
    ] = None,
    active: Annotated[str | None, Option(metavar="WATTS", help="Likewise while it trains.")] = None,
    force: Force = False,
    quick: Annotated[bool, Option("--quick", hidden=True, help="Too short to be useful; for tests.")] = False,
    steps: Steps = quiet,
) -> Answer:
    """Measure this machine and write its device file; takes a few minutes."""
    from edgefl.calibrate import FULL, QUICK
    from edgefl.calibrate import calibrate as measure
    from edgefl.calibrate.power import Powers
    from edgefl.show.table import Line
    from edgefl.show.validation import calibration

    def told(label: str, done: int, total: int) -> None:
        steps(label, done, total)
        # A log has a line for each step.
        if not stderr().is_terminal:
            stderr().print(f"{done + 1} of {total}: {label}", soft_wrap=True)

    found = measure(
        name,
        out=out,
        force=force,
        threads=threads,
        power_log=power_log,
        powers=Powers.read_off(idle, active),
        effort=QUICK if quick else FULL,
        progress=told,
    )
    view = Group(calibration(found.steps, found.inference, found.methods), Line())
    lines = [f"saved in {found.file} after {found.took_s:.0f} s", f"next: {found.next}"]
    return Answer(f"calibration of {name}", found, view, lines, found.notes)


@command("validate", "validate raspberry-pi-5-training", "validate --device raspberry-pi-4b --json")
def validate(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME|FILE",
            help="Measurements: names from `edgefl list validation`, or YAML files; all by default.",
        ),
    ] = None,
    device: Annotated[
        list[str] | None, Option(help="Only measurements on this device; can be repeated.")
    ] = None,
    steps: Steps = quiet,
) -> Answer:
    """Hold predicted times and energies against those measured on real boards."""
    from edgefl.planning.validation import validation
    from edgefl.show import validation as report

    found = validation(tuple(names or ()), tuple(device or ()), steps)
    return Answer("validation", found, report.validation(found))
