"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgefl.runs.group import Overrides
    from edgefl.runs.results import Runs

# Behind a help, here and in commands: the type on the command line, where it is not that in Python.
Overridden = Annotated[
    "Overrides",
    Option("--set", metavar="KEY=VALUE", help="Override a setting, such as server.rounds=5."),
    list[str] | None,
]
OwnModel = Annotated[
    Any, "A module, whose weights a run starts from; a class or function that makes one; or a component."
]
Seed = Annotated[int | None, Option(help="Short for --set seed=N.")]
Seeds = Annotated[
    int | None,
    Option(metavar="N", min=1, help="Repeat every run with N seeds, counting up from the scenario's."),
]
FleetLink = Annotated[
    str | None,
    Option("--link", metavar="NAME", help="Short for --set fleet.link=NAME: all clients' network class."),
]
Offline = Annotated[bool, Option("--offline", help="Never download a dataset.")]
Force = Annotated[bool, Option("--force", help="Overwrite what is there.")]
Sensitivity = Annotated[
    float | None,
    Option(
        metavar="FACTOR",
        help="Say whether the order holds over all intervals, with assumed numbers by 1/FACTOR and FACTOR; "
        "1 for intervals alone.",
    ),
]
_RUNS = Argument(metavar="RUN", help="Runs, groups of runs, or folders of groups.")
RunFolders = Annotated[list[Path], _RUNS]
SomeRuns = Annotated["Runs | Sequence[Runs]", _RUNS, list[Path]]
TargetAccuracy = Annotated[
    float | str | None,
    Option(
        metavar="ACCURACY",
        help="Target accuracy, such as 0.9, or best-of:RUN, the best of that run; each run's own by default.",
    ),
    str | None,
]
