"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from edgefl.core.nodes import Node
    from edgefl.runs.group import Overrides, Scenario
    from edgefl.runs.results import Runs

_SET = typer.Option("--set", metavar="KEY=VALUE", help="Override a setting, such as server.rounds=5.")
Settings = Annotated[list[str] | None, _SET]
# Behind a help, here and in commands: the type on the command line, where it is not that in Python.
Overridden = Annotated["Overrides", _SET, list[str] | None]
OwnModel = Annotated[
    Any, "A module, whose weights a run starts from; a class or function that makes one; or a component."
]
Seed = Annotated[int | None, typer.Option(help="Short for --set seed=N.")]
Seeds = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Repeat every run with N seeds, counting up from the scenario's."),
]
FleetLink = Annotated[
    str | None,
    typer.Option(
        "--link", metavar="NAME", help="Short for --set fleet.link=NAME: all clients' network class."
    ),
]
TorchDevice = Annotated[
    str | None,
    typer.Option(help="Where torch trains: auto, cpu or cuda:N; short for --set engine.device=DEVICE."),
]
Offline = Annotated[bool, typer.Option("--offline", help="Never download a dataset.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]


class Format(StrEnum):
    """In what a comparison is printed."""

    TABLE = "table"
    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


InFormat = Annotated[
    str | None,
    typer.Option("--format", help="How to print it; as a table by default.", show_choices=True),
    Format | None,
]
Track = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TRACKER",
        help="Record it with a tracker from `edgefl list trackers`: NAME, or '{name: NAME, KEY: VALUE}'.",
    ),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Serve the report page to this machine's browsers meanwhile.")
]
WatchPort = Annotated[
    int | None, typer.Option(metavar="PORT", min=1, max=65535, help="Port of --watch; a free one by default.")
]
ScenarioName = Annotated[
    "Scenario",
    typer.Argument(metavar="SCENARIO", help="A YAML file, or a name from `edgefl list scenarios`."),
    str,
]
SomeScenarios = Annotated[
    "Scenario | Sequence[Scenario] | None",
    typer.Argument(metavar="SCENARIO", help="Files or names; all scenarios by default."),
    list[str] | None,
]
Sensitivity = Annotated[
    float | None,
    typer.Option(
        metavar="FACTOR",
        help="Say whether the order holds over all intervals, with assumed numbers by 1/FACTOR and FACTOR; "
        "1 for intervals alone.",
    ),
]
_RUNS = typer.Argument(metavar="RUN", help="Runs, groups of runs, or folders of groups.")
RunFolders = Annotated[list[Path], _RUNS]
SomeRuns = Annotated["Runs | Sequence[Runs]", _RUNS, list[Path]]
TargetAccuracy = Annotated[
    float | str | None,
    typer.Option(
        metavar="ACCURACY",
        help="Target accuracy, such as 0.9, or best-of:RUN, the best of that run; each run's own by default.",
    ),
    str | None,
]


def trackers(given: Sequence[str] | None) -> list[Node]:
    """What ``--track`` names.

    Raises:
        ScenarioError: a text is not valid YAML.
    """
    from edgefl.core.nodes import compose, short

    return [compose(text, f"--track {short(text.strip())}", lines=False) for text in given or ()]
