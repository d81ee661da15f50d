"""The command that makes profiles of traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgefl.cli.answering import command
from edgefl.cli.options import Force
from edgefl.show.answers import Answer, Steps, quiet


@command(
    "import fedscale-capacity client_device_capacity --out fedscale",
    "import fedscale-capacity capacity.pkl behavior.pkl --out both",
    "import flash-states state_traces.json --ready locked,wifi --out flash",
    "import csv users.csv --device pixel-6 --out office",
)
def import_(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="fedscale-capacity, fedscale-availability, flash-states, flash-speeds or csv.",
        ),
    ],
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="The trace; or two that go together: speeds, and availability."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder to write profiles/NAME.yaml and its tables in.")
    ],
    name: Annotated[str | None, typer.Option(help="The profile's name; the folder's by default.")] = None,
    device: Annotated[
        str, typer.Option(metavar="DEVICE", help="The device of users whose device is not recorded.")
    ] = "phone-mid",
    link: Annotated[
        str | None,
        typer.Option(
            metavar="LINK",
            help="The network class of what is not recorded, such as latency and radio; by default "
            "flash-wifi for FLASH and 4g for others.",
        ),
    ] = None,
    ready: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITIONS",
            help="flash-states: when phones are available: any of locked, screen-off, wifi, online and "
            "charged; locked,wifi,charged by default.",
        ),
    ] = None,
    repeat: Annotated[
        str | None, typer.Option(metavar="TIME", help="csv: when intervals repeat, such as '168 h'.")
    ] = None,
    users: Annotated[int | None, typer.Option(metavar="N", help="Take N users at random.", min=1)] = None,
    dealt: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="How users' columns are dealt to clients: together or independently; of two traces that do "
            "not name the same users, independently by default, else together.",
        ),
    ] = None,
    force: Force = False,
    steps: Steps = quiet,
) -> Answer:
    """Make a profile of a trace: FedScale's, FLASH's, or a table of users."""
    from edgefl.core.units import show_count
    from edgefl.importing import import_traces

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
        progress=steps,
    )
    lines = [
        f"{show_count(done.users, 'user')}, dealt {done.dealt}",
        *(f"read: {sentence}" for sentence in done.read),
        *(f"dropped: {sentence}" for sentence in done.dropped),
        *(f"saved {path}" for path in done.files),
        f"run it: {done.next_step}",
    ]
    return Answer(f"import of {done.name}", done, lines=lines)
