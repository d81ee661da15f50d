"""Commands about costs before anything is trained: profile a round, and calibrate this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, print_note, stderr, stdout
from edgefl.cli.options import AsJson, ScenarioName, Seed, Sensitivity, Settings, overrides

if TYPE_CHECKING:
    from edgefl.planning.costs import ClaimedSavings, Profile
    from edgefl.planning.sensitivity import Sensitivity as Studied


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
    memory: Annotated[
        bool, typer.Option("--measure-memory", help="Also run the work here, beside the predicted memory.")
    ] = False,
    time: Annotated[
        bool, typer.Option("--measure-time", help="Also time its steps here, beside the predicted time.")
    ] = False,
    sensitivity: Sensitivity = None,
    settings: Settings = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Show one round's compute, memory, bytes, time and energy for a client; nothing is trained."""
    from edgefl.planning.fleets import dtype_of
    from edgefl.planning.learning import DataAccess
    from edgefl.planning.profile import ProfileOptions, client_rounds
    from edgefl.planning.profile import profile as profile_run
    from edgefl.planning.published import claimed_savings
    from edgefl.planning.swept_rounds import swept_rounds
    from edgefl.runs import drafts

    measure = [what for what, asked in (("memory", memory), ("time", time)) if asked]
    options = ProfileOptions(
        tuple(device or ()),
        link,
        dtype_of(dtype),
        layers=layers,
        measure=measure,
    )
    access = DataAccess(need="nothing")
    runs = drafts(scenario, overrides(settings, seed=seed))
    profiles = [profile_run(draft, options, access) for draft in runs]
    claims = claimed_savings(runs, profiles)
    swept = []
    if sensitivity is not None:
        rounds = [one for draft in runs for one in client_rounds(draft, options, access)]
        swept = swept_rounds(rounds, sensitivity)
    if as_json:
        found = {"profiles": profiles, "published": claims}
        print_json(found if sensitivity is None else found | {"sensitivity": swept})
        return
    _print_profiles(profiles, claims, swept)


def _print_profiles(
    profiles: Sequence[Profile], claims: Sequence[ClaimedSavings], swept: Sequence[Studied]
) -> None:
    """Prints what a round costs, published savings beside ours, and what the figures depend on."""
    from edgefl.report import costs
    from edgefl.report.device_rounds import device_rounds
    from edgefl.report.layers import checked
    from edgefl.report.sensitivity import sensitivity

    console = stdout()
    if len(profiles) > 1:
        console.print(device_rounds(profiles))
    for each in profiles:
        console.rule(f"{each.scenario}: {each.method}", align="left")
        for note in each.assumed:
            console.print(f"assumed: {note}", style="dim")
        console.print(f"network: {costs.links(each.exchanges)}", style="dim")
        console.print(costs.profile(each))
        if each.layers:
            console.print(checked(each.layers))
    if claims:
        console.print(costs.published(claims))
    for one in swept:
        console.print(sensitivity(one))


@app.command(
    epilog=examples(
        "calibrate my-laptop",
        "calibrate my-laptop --threads 2 --out devices/my-laptop.yaml",
        "calibrate my-board --idle 3W --active 9W",
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
    idle: Annotated[
        str | None, typer.Option(metavar="WATTS", help="The machine's power at rest, read off a meter: 3W.")
    ] = None,
    active: Annotated[str | None, typer.Option(metavar="WATTS", help="Likewise while it trains.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", hidden=True, help="Too short to be useful; for tests.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure this machine and write its device file; takes a few minutes."""
    from edgefl.calibrate import FULL, QUICK
    from edgefl.calibrate import calibrate as measure
    from edgefl.calibrate.power import Powers
    from edgefl.cli.steps import Steps
    from edgefl.report.calibration import calibration

    with Steps(stderr()) as steps:
        found = measure(
            name,
            out=out,
            force=force,
            threads=threads,
            power_log=power_log,
            powers=Powers.read_off(idle, active),
            effort=QUICK if quick else FULL,
            progress=steps.tell,
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
