"""What is called as runs go on: ``Callbacks``, and trackers, which make one, one file each."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from edgefl.core.params import Component


@dataclass(frozen=True)
class Began:
    """A run that begins, or goes on.

    Attributes:
        group: the scenario's name, which all runs of a sweep share.
        number, runs: its place in its group, from 1, and how many runs there are.
        rounds: how many there will be at most; None where the scenario does not limit them.
        run_id: a digest of all that its result depends on.
        folder, group_folder: its directory, and that of its group; that of a single run is its own.
        settings: the resolved scenario by dotted key, such as "method.temperature": numbers, texts, booleans,
            None, or lists.
        tags: "method", "dataset" and "engine".
        notes: what was assumed of the group, and which clients were refused; told with its first run.
    """

    name: str
    group: str
    number: int
    runs: int
    rounds: int | None
    run_id: str
    seed: int
    folder: Path
    group_folder: Path
    settings: Mapping[str, Any]
    tags: Mapping[str, str]
    notes: Sequence[str] = ()

    @property
    def facts(self) -> dict[str, str]:
        """Which run it is, as texts."""
        found = {"group": self.group, "run_id": self.run_id, "seed": self.seed, **self.tags}
        return {key: str(value) for key, value in {**found, "directory": self.folder.resolve()}.items()}


What: TypeAlias = Literal["ready", "merged", "evaluated", "over"]


@dataclass(frozen=True)
class Progress:
    """How far a run is, and what it has cost.

    Costs are of the jobs that have ended, whether they were merged or not; jobs in flight are not counted.

    Attributes:
        name: the run's.
        what: has happened: the engine is "ready", the server "merged", a version was "evaluated", or all is
            "over".
        engine: what trains, why, and in how many processes; empty where nothing is trained.
        version: the server's version, counted from 0: merges so far.
        round: the round of the last merge, from 0; -1 before the first round, the number of rounds after the
            last.
        rounds: how many there will be at most; None where the scenario does not limit them.
        t_s: virtual seconds since the start.
        left_s: the wall time left, in seconds, estimated from the pace of the last merges towards the limit
            of ``server.until`` that will be met first; None while too little is known, or where the limit is
            an accuracy alone. A limit on accuracy may end the run earlier.
        figures: what is known, by its key in ``edgefl compare --json``, in base units: "virtual_s", "jobs",
            "bytes", "accuracy.global.value" and so on; unknown ones are left out. Beside these, "loss.global"
            and "loss.personal" on test data.
        new: those that this merge or evaluation has given; the others are as they were.
    """

    name: str
    what: What
    engine: str
    version: int
    round: int
    rounds: int | None
    t_s: float
    left_s: float | None
    figures: Mapping[str, float]
    new: Mapping[str, float]


@dataclass(frozen=True)
class End:
    """How a run ended.

    Attributes:
        status: "done", "failed" or "interrupted".
        reason: why it failed; empty otherwise.
        round, t_s: as of the last ``Progress``.
        figures: reads the numbers of the run in ``edgefl compare --json``, by dotted key.
    """

    name: str
    status: str
    reason: str
    round: int
    t_s: float
    figures: Callable[[], Mapping[str, float]]


class Callbacks:
    """Called in the run's own thread, which waits; a subclass overrides what it needs."""

    def began(self, run: Began) -> None:
        """A run begins, after all runs of its group have been planned."""

    def told(self, so_far: Progress) -> None:
        """It has come further; see ``Progress.what``."""

    def ended(self, end: End) -> None:
        """It ended, as its directory says by now."""


class TrackerParams(Component):
    """The parameters of a tracker."""

    @abstractmethod
    def build(self) -> Callbacks:
        """What is told of runs; before they begin, it raises a ``UserError`` where it cannot work."""
