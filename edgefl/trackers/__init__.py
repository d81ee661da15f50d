"""Experiment trackers, one file each: where a run's settings and figures go while it runs.

A file has ``build(params, run) -> Tracker`` and may have ``check(params)``, which is called before the run.
A tracker's other calls are made in a thread of its own, one run after another.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from edgefl.core.errors import UserError

ROUND, TIME = "round", "virtual_s"
"""What trackers call the round and the virtual time, where these are figures too."""


@dataclass(frozen=True)
class Run:
    """A run that begins.

    Attributes:
        name: its name.
        group: the scenario's name, which all runs of a sweep share.
        run_id: a digest of all that its result depends on.
        seed: its seed.
        folder: its directory, an absolute path.
        group_folder: the directory of its group, an absolute path; that of a single run is ``folder``.
        settings: the resolved scenario by dotted key, such as "method.temperature": numbers, texts, booleans,
            None, or lists.
        tags: texts by name: "method", "dataset" and "engine".
    """

    name: str
    group: str
    run_id: str
    seed: int
    folder: Path
    group_folder: Path
    settings: Mapping[str, Any]
    tags: Mapping[str, str]

    @property
    def place(self) -> Path:
        """The run's directory as seen from where its group's directory is: ``GROUP/RUN``, or ``RUN``."""
        return self.folder.relative_to(self.group_folder.parent)


class Point(NamedTuple):
    """What is known after a merge or an evaluation.

    Attributes:
        round: from 0; -1 before the first round, the number of rounds after the last.
        t_s: virtual seconds since the start.
        figures: numbers by name, such as "accuracy/global"; what is unknown is left out.
    """

    round: int
    t_s: float
    figures: Mapping[str, float]


@dataclass(frozen=True)
class End:
    """How a run ended.

    Attributes:
        status: "done", "failed" or "interrupted".
        reason: why it failed; empty otherwise.
        round: the last round, as in ``Point``.
        t_s: virtual seconds since the start.
        figures: the numbers of the run in ``edgefl compare --json`` by dotted key, such as "virtual_s" and
            "accuracy.global.value"; what is unknown is left out.
    """

    status: str
    reason: str
    round: int
    t_s: float
    figures: Mapping[str, float]


@runtime_checkable
class Tracker(Protocol):
    """Records one run. Whatever it raises turns it off, and the run goes on."""

    def log(self, points: Sequence[Point]) -> None:
        """Records some points, in order, at least one."""

    def finish(self, end: End) -> None:
        """Records the end, after the last point."""


def check_installed(module: str, requirement: str) -> None:
    """Checks that a package is installed, without importing it.

    Args:
        module: the name that is imported.
        requirement: what ``pip install`` is given.

    Raises:
        UserError: it is not installed.
    """
    spec = importlib.util.find_spec(module)
    # A directory of that name is a namespace package; W&B makes one where it is used.
    if spec is None or spec.origin is None:
        raise UserError(f"{module} is not installed", hint=f"pip install {requirement}")
