"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from edgefl.core.settings import Override

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, such as server.rounds=5."),
]
Seed = Annotated[int | None, typer.Option(help="Short for --set seed=N.")]
FleetLink = Annotated[
    str | None,
    typer.Option(
        "--link", metavar="NAME", help="Short for --set fleet.link=NAME: all clients' network class."
    ),
]
Offline = Annotated[bool, typer.Option("--offline", help="Never download a dataset.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A YAML file, or a name from `edgefl list scenarios`.")
]


def overrides(settings: Sequence[str] | None, given: Mapping[str, tuple[str, Any]]) -> list[str | Override]:
    """The settings of ``--set`` and of the options that are short for it.

    Args:
        settings: KEY=VALUE texts.
        given: (option, value) by key; None for an option that was not given.
    """
    from edgefl.core.settings import Override

    short = [
        Override(key, str(value), f"{option} {value}")
        for key, (option, value) in given.items()
        if value is not None
    ]
    return [*(settings or []), *short]
