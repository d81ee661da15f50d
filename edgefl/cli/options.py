"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, such as server.rounds=5."),
]
Seed = Annotated[int | None, typer.Option(help="Short for --set seed=N.")]
Offline = Annotated[bool, typer.Option("--offline", help="Never download a dataset.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A YAML file, or a name from `edgefl list scenarios`.")
]
