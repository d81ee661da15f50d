"""Commands about costs before anything is trained: profile a round, and calibrate this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import answered
from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, print_note, stderr, stdout
from edgefl.cli.options import AsJson, ScenarioName, Seed, Sensitivity, Settings


@app.command(
    epilog=examples(
        "profile quickstart",
        "profile quickstart --device raspberry-pi-4b --link 4g --layers",
    )
)
def profile(
    scenario: ScenarioName,
    device: Annotated[
        list[str] | None, typer.Option(help="Device to price, or all; the fleet's devices by default.")
    ] = None,
    link: Annotated[str | None, typer.Option(help="Network class, from `edgefl list links`.")] = None,
    dtype: Annotated[
        str | None, typer.Option(help="fp32, fp16, bf16 or int8; the fleet's own type by default.")
    ] = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="Add work, time, energy and memory layer by layer.")
    ] = False,
    measure: Annotated[
        bool,
        typer.Option("--measure-memory", help="Also run the work once on this host, in fresh processes."),
    ] = False,
    sensitivity: Sensitivity = None,
    settings: Settings = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Show one round's compute, memory, bytes, time and energy for a client; nothing is trained."""
    from edgefl.api import profile as ask

    answered(
        ask,
        scenario,
        device=device,
        link=link,
        dtype=dtype,
        layers=layers,
        measure_memory=measure,
        sensitivity=sensitivity,
        overrides=settings or (),
        seed=seed,
        as_json=as_json,
    )


@app.command(
    epilog=examples(
        "calibrate my-laptop",
        "calibrate my-laptop --threads 2 --out devices/my-laptop.yaml",
        "calibrate my-board --power-log wattmeter.csv",
    )
)
def calibrate(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new device, such as my-laptop.")],
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write, in a folder that exists; by default devices/NAME.yaml in the first folder "
            "on EDGEFL_PATH, or here."
        ),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads for training and inference.")] = 1,
    power_log: Annotated[
        Path | None,
        typer.Option(
            "--power-log",
            help="A wattmeter's CSV log of the machine's power while it is calibrated: lines of time,watts.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", hidden=True, help="Too short to be useful; for tests.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure this machine and write its device file; takes a few minutes."""
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
            power_log=power_log,
            effort=QUICK if quick else FULL,
            progress=steps.show,
        )
    for note in found.notes:
        print_note(note)
    if as_json:
        print_json(found)
        return
    console = stdout()
    console.print(calibration(found.steps, found.inference, found.methods))
    console.print()
    console.print(f"saved in {found.file} after {found.took_s:.0f} s", soft_wrap=True)
    console.print(f"next: {found.next}", soft_wrap=True)
