"""The command that makes profiles of traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.app import app, examples
from edgefl.cli.console import print_json, stderr, stdout
from edgefl.cli.options import AsJson

Kind = Annotated[
    str,
    typer.Argument(
        metavar="KIND", help="fedscale-capacity, fedscale-availability, flash-states, flash-speeds or csv."
    ),
]
Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="The trace; or two that go together: speeds, and availability."),
]
Out = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder to write profiles/NAME.yaml and its tables in.")
]
Name = Annotated[str | None, typer.Option(help="The profile's name; the folder's by default.")]
Device = Annotated[
    str, typer.Option(metavar="DEVICE", help="The device of users whose device is not recorded.")
]
BaseLink = Annotated[
    str | None,
    typer.Option(
        metavar="LINK",
        help="The network class of what is not recorded, such as latency and radio; by default flash-wifi "
        "for FLASH and 4g for others.",
    ),
]
Ready = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITIONS",
        help="flash-states: when phones are available: any of locked, screen-off, wifi, online and charged; "
        "locked,wifi,charged by default.",
    ),
]
Repeat = Annotated[
    str | None, typer.Option(metavar="TIME", help="csv: when intervals repeat, such as '168 h'.")
]
Users = Annotated[int | None, typer.Option(metavar="N", help="Take N users at random.", min=1)]
Dealt = Annotated[
    str | None,
    typer.Option(
        metavar="HOW",
        help="How users' columns are dealt to clients: together or independently; of two traces that do not "
        "name the same users, independently by default, else together.",
    ),
]


@app.command(
    "import",
    epilog=examples(
        "import fedscale-capacity client_device_capacity --out fedscale",
        "import fedscale-capacity capacity.pkl behavior.pkl --out both",
        "import flash-states state_traces.json --ready locked,wifi --out flash",
        "import csv users.csv --device pixel-6 --out office",
    ),
)
def import_(
    kind: Kind,
    files: Files,
    out: Out,
    name: Name = None,
    device: Device = "phone-mid",
    link: BaseLink = None,
    ready: Ready = None,
    repeat: Repeat = None,
    users: Users = None,
    dealt: Dealt = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the profile.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a profile of a trace: FedScale's, FLASH's, or a table of users."""
    from edgefl.cli.steps import Steps
    from edgefl.core.units import show_count
    from edgefl.importing import import_traces

    with Steps(stderr()) as steps:
        done = import_traces(
            kind,
            files,
            out,
            name=name,
            device=device,
            link=link,
            ready=ready,
            repeat=repeat,
            users=users,
            dealt=dealt,
            force=force,
            progress=steps.show,
        )
    if as_json:
        print_json(done)
        return
    console = stdout()
    for line in (
        f"{show_count(done.users, 'user')}, dealt {done.dealt}",
        *(f"read: {sentence}" for sentence in done.read),
        *(f"dropped: {sentence}" for sentence in done.dropped),
        *(f"saved {path}" for path in done.files),
        f"run it: {done.next_step}",
    ):
        console.print(line, soft_wrap=True)
