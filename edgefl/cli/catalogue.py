"""Commands about what has a name: make, list and show it, and the schema of scenarios."""

import json
from operator import itemgetter
from pathlib import Path
from typing import Annotated

from rich.console import Group, RenderableType
from rich.text import Text
from typer import Argument, Option

from edgefl.cli.answering import Force, command
from edgefl.core.documents import document
from edgefl.show.answers import Answer


@command(
    "import fedscale client_device_capacity --out fedscale",
    "import fedscale capacity.pkl behavior.pkl --out both",
    "import flash state_traces.json --ready locked,wifi --out flash",
    "import csv users.csv --device pixel-6 --out office",
)
def import_(
    kind: Annotated[str, Argument(metavar="KIND", help="Whose trace it is: fedscale, flash or csv.")],
    files: Annotated[
        list[Path],
        Argument(metavar="FILE", help="The trace; or two that go together: speeds, and availability."),
    ],
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Folder to write profiles/NAME.yaml and its tables in.")
    ],
    name: Annotated[str | None, Option(help="The profile's name; the folder's by default.")] = None,
    device: Annotated[
        str, Option(metavar="DEVICE", help="The device of users whose device is not recorded.")
    ] = "phone-mid",
    link: Annotated[
        str | None,
        Option(
            metavar="LINK",
            help="The network class of what is not recorded, such as latency and radio; by default "
            "flash-wifi for FLASH and 4g for others.",
        ),
    ] = None,
    ready: Annotated[
        str | None,
        Option(
            metavar="CONDITIONS",
            help="flash: when phones are available: any of locked, screen-off, wifi, online and "
            "charged; locked,wifi,charged by default.",
        ),
    ] = None,
    repeat: Annotated[
        str | None, Option(metavar="TIME", help="csv: when intervals repeat, such as '168 h'.")
    ] = None,
    users: Annotated[int | None, Option(metavar="N", help="Take N users at random.", min=1)] = None,
    force: Force = False,
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
        force=force,
    )
    lines = [
        f"{show_count(done.users, 'user')}, dealt {done.dealt}",
        *(f"read: {sentence}" for sentence in done.read),
        *(f"dropped: {sentence}" for sentence in done.dropped),
        *(f"saved {path}" for path in done.files),
        f"run it: {done.next_step}",
    ]
    return Answer(f"import of {done.name}", done, lines=lines)


@command("list devices", "list methods --json")
def list_(
    kind: Annotated[
        str | None, Argument(metavar="KIND", help="devices, methods, scenarios, ...; all kinds by default.")
    ] = None,
) -> Answer:
    """List devices, methods, models, scenarios and everything else that has a name."""
    from edgefl.core.catalogue import KINDS, entries, kind_of, summary
    from edgefl.show.table import Column, Table

    kinds = {each: entries(each).values() for each in ([kind_of(kind)] if kind else KINDS)}
    found = {
        each: [{"name": one.name, "description": summary(one), "file": one.path} for one in known]
        for each, known in kinds.items()
    }
    columns = (
        Column("name", itemgetter("name")),
        Column("description", itemgetter("description"), left=True),
    )
    return Answer(
        "list", {"kinds": found}, Group(*(Table(columns, known, each) for each, known in found.items()))
    )


@command("show raspberry-pi-4b", "show method fedprox", "show --raw scenario quickstart")
def show(
    kind: Annotated[
        str,
        Argument(
            metavar="KIND",
            help="A kind from `edgefl list`, singular or plural; may be left out if no other has the name.",
        ),
    ],
    name: Annotated[str, Argument(metavar="NAME", help="A name of that kind.")] = "",
    raw: Annotated[bool, Option("--raw", help="Print the file as it is.")] = False,
) -> Answer:
    """Show a device's numbers and their sources, a method's paper and parameters, or a file's text."""
    from edgefl.core.catalogue import find, kind_of, only_kind_of
    from edgefl.core.inheriting import TAKEN
    from edgefl.planning.describe import describe
    from edgefl.show.table import Column, Line, Table

    if not name:
        kind, name = only_kind_of(kind), kind
    if raw:
        path = find(kind_of(kind), name, where="NAME").path
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read()
        return Answer(name, {"file": path, "text": text}, plain=lambda stream: stream.write(text))
    found = describe(kind, name)
    rows = [dict(zip(found.heads, row, strict=True)) for row in found.rows]
    # Lines of a file are not wrapped.
    view: list[RenderableType] = [Text(found.title, "bold", no_wrap=True, overflow="ignore")]
    if not found.heads:
        view.append(Text(found.text, no_wrap=True, overflow="ignore"))
    elif found.text:
        view.append(Line(found.text))
    if found.rows:
        # Another device's sources are shown with that device.
        shown = [[TAKEN.sub(r"\1", cell) for cell in row] for row in found.rows]
        view.append(Table([Column(head, left=True) for head in found.heads], shown))
    return Answer(found.title, {"title": found.title, "text": found.text, "rows": rows}, Group(*view))


@command("new device my-board --like pixel-6", "new fleet my-lab", "new scenario my-first")
def new(
    kind: Annotated[str, Argument(metavar="KIND", help="device, fleet or scenario.")],
    name: Annotated[str, Argument(metavar="NAME", help="Its name, such as my-board.")],
    like: Annotated[
        str | None, Option(metavar="OTHER", help="A device or fleet from which it differs.")
    ] = None,
) -> Answer:
    """Write a commented file to start from, in devices/, profiles/ or scenarios/ here."""
    from edgefl.planning.starting import start

    started = start(kind, name, like)
    return Answer(f"new {kind}", started, lines=[f"wrote {started.file}", f"next: {started.next}"])


@command("schema", as_json=False)
def schema() -> Answer:
    """Print the JSON Schema of a scenario file, for editors."""
    from edgefl.planning.schema import schema as scenario_schema

    found = scenario_schema()
    text = json.dumps(document(found), indent=2) + "\n"
    return Answer("schema", found, plain=lambda stream: stream.write(text))
