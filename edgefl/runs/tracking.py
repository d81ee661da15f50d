"""Experiment trackers while a group of runs goes on: each in a thread of its own, which no run waits for."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Annotated, Any, TypeAlias

from edgefl.analysis.groups import numbers
from edgefl.analysis.settings import dotted
from edgefl.analysis.summary import summary
from edgefl.core.components import read, resolve
from edgefl.core.errors import EdgeflError, RunError, UserError, in_one_line
from edgefl.core.nodes import Node, written
from edgefl.core.notes import note
from edgefl.core.params import Component, OfKind, Strict
from edgefl.core.user_code import explained, returned, user_code
from edgefl.core.wording import quoted
from edgefl.core.yamls import Document
from edgefl.planning.plan import Planned
from edgefl.runs.callbacks import Both, Callbacks, Progress
from edgefl.store import read as read_run
from edgefl.trackers import End, Point, Run, Tracker

Trackers: TypeAlias = str | Mapping[str, Any] | Sequence[str | Mapping[str, Any] | Node]
"""A tracker, or several: by name, or as mappings with a name and parameters."""

# Points that wait for a tracker; what comes then is dropped.
MOST_POINTS = 10_000
# Threads of Python share one processor: while runs go on, a tracker computes for a fifth of the time at most,
# and is given at most so many points at once. At the end neither holds.
_PAUSE_S, _IDLE, _TOGETHER = 0.5, 4, 500
# How long trackers are waited for when all runs have ended, after an interrupt, and before that is said.
PATIENCE_S, INTERRUPTED_S, _SILENT_S = 60.0, 8.0, 2.0


class _Asked(Strict):
    """A tracker that is asked for."""

    tracker: Annotated[Component, OfKind("trackers")]


@dataclass(frozen=True)
class Chosen:
    """A tracker with its parameters.

    Attributes:
        name: its name.
        module: its file.
        params: its parameters, validated.
    """

    name: str
    module: ModuleType
    params: Any


@user_code()
def chosen(trackers: Trackers) -> list[Chosen]:
    """The trackers that are asked for, ready to be used.

    Raises:
        UserError: one is unknown, a parameter is wrong, or its own check fails: a package is not installed,
            say.
    """
    given = [trackers] if isinstance(trackers, str | Mapping) else trackers
    if not isinstance(given, Sequence):
        raise UserError(f"trackers must be a name, a mapping or a list of those; got {quoted(given)}")
    return [
        _chosen(each if isinstance(each, Node) else written(each, f"trackers[{place}]"))
        for place, each in enumerate(given)
    ]


def _chosen(tracker: Node) -> Chosen:
    asked = Document.of(Node({"tracker": tracker}, tracker.file), tracker.file)
    component = read(_Asked, asked.data, asked).tracker
    module, params = resolve("trackers", component, asked, ["tracker"])
    name = component.name.replace("_", "-")
    if hasattr(module, "check"):
        try:
            module.check(params)
        except UserError as error:
            raise UserError(
                f"{name}: {error.what}", where=error.where or tracker.file, hint=error.hint
            ) from error
    return Chosen(name, module, params)


class Final:
    """A run that has ended; its figures are read once, for all trackers."""

    def __init__(self, folder: Path, last: Point) -> None:
        self._folder = folder
        self._last = last

    @cached_property
    def end(self) -> End:
        """How it ended, as its directory has it."""
        try:
            with read_run(self._folder) as reader:
                told = summary(reader)
        except UserError as error:
            # A full disk, say.
            return End("failed", error.what, *self._last[:2], {})
        status = "interrupted" if told.status == "running" else told.status
        return End(status, told.reason, self._last.round, told.virtual_s, numbers(told))


class Feed:
    """A tracker's thread. Nothing here waits for it but ``close``."""

    def __init__(self, tracker: Chosen, folder: Path) -> None:
        """Starts the thread.

        Args:
            tracker: the tracker.
            folder: the group's directory, for messages.
        """
        self._tracker = tracker
        self._folder = folder
        self._items: SimpleQueue[Run | Point | Final | None] = SimpleQueue()
        self._closing = threading.Event()
        self._points_until_s = math.inf
        self._off = False
        self._dropped = 0
        self._thread = threading.Thread(target=self._work, name=f"tracker {tracker.name}", daemon=True)
        self._thread.start()

    def put(self, item: Run | Point | Final) -> None:
        """Hands something over; a point is dropped where too much waits."""
        if self._off:
            return
        if isinstance(item, Point) and self._items.qsize() >= MOST_POINTS:
            self._dropped += 1
        else:
            self._items.put(item)

    def ending(self, patience_s: float) -> None:
        """Says that nothing follows, and that the thread is waited for so many seconds at most."""
        # The other half is for the end of the runs, which must not be lost.
        self._points_until_s = time.monotonic() + patience_s / 2
        self._items.put(None)
        self._closing.set()

    def close(self, deadline_s: float) -> None:
        """Waits until all is recorded, at most until a moment of ``time.monotonic``."""
        name = self._tracker.name
        self._thread.join(max(min(_SILENT_S, deadline_s - time.monotonic()), 0.0))
        left_s = deadline_s - time.monotonic()
        if self._thread.is_alive() and left_s > 0:
            self._say(f"waiting for the tracker {name}, {left_s:.0f} s at most")
            self._thread.join(left_s)
        if self._thread.is_alive():
            self._off = True
            self._say(f"the tracker {name} was not waited for any longer; it lacks the end of the runs")
        if self._dropped:
            self._say(f"the tracker {name} is slower than the runs: {self._dropped:,} points were dropped")

    def _say(self, line: str) -> None:
        # With the group's directory, since a line is said once.
        note(f"{self._folder}: {line}")

    def _work(self) -> None:
        try:
            self._record()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the runs go on
            if not self._off:
                self._off = True
                self._say(f"the tracker {self._tracker.name} failed and was turned off: {_told(error)}")

    def _record(self) -> None:
        tracker: Tracker | None = None
        for kind, items in self._together():
            if self._off:
                return
            if kind is Run:
                (run,) = items
                # What a tracker does to it is of no consequence for others, or for the run.
                tracker = self._built(deepcopy(run))
            elif kind is Point and time.monotonic() > self._points_until_s:
                self._dropped += len(items)
            elif tracker is not None and kind is Point:
                tracker.log(items)
            elif tracker is not None:
                (final,) = items
                tracker.finish(deepcopy(final.end))
                tracker = None

    def _built(self, run: Any) -> Tracker:
        build = self._tracker.module.build
        built = build(self._tracker.params, run)
        tracker: Tracker = returned(built, Tracker, build, "an object with log and finish")
        return tracker

    def _together(self) -> Iterator[tuple[type, list[Any]]]:
        """What was handed over, points that follow each other together; waits for more until the end."""
        ended, used_s = False, 0.0
        while not ended:
            items = [self._items.get()]
            self._closing.wait(max(_PAUSE_S, _IDLE * used_s))
            while items[-1] is not None and len(items) < _TOGETHER:
                try:
                    items.append(self._items.get_nowait())
                except Empty:
                    break
            ended, before_s = items[-1] is None, time.thread_time()
            # A tracker can be given a run alone, since one ends before the next begins.
            for kind, some in groupby((item for item in items if item is not None), type):
                yield kind, list(some)
            used_s = time.thread_time() - before_s


def _told(error: BaseException) -> str:
    """A failure in one line, with the file and line of a user's code that raised it."""
    told = error if isinstance(error, EdgeflError) else explained(error, RunError)
    if told is None:
        return in_one_line(error)
    return f"{told.what} ({told.where})" if told.where else told.what


class Followed(Callbacks):
    """One run's calls, as points for its trackers."""

    def __init__(self, feeds: Sequence[Feed], run: Run) -> None:
        self._feeds = feeds
        self._run = run
        self._new: dict[str, float] = {}
        self._costs: dict[str, float] = {}
        self._last = Point(-1, 0.0, {})
        self._open = False

    def started(self, name: str, rounds: int | None, folder: Path) -> None:
        """Begins the run."""
        del name, rounds, folder
        self._open = True
        self._put(self._run)

    def merged(self, round_: int, t_s: float, loss: float | None) -> None:
        """Keeps the training loss for the point that follows."""
        del round_, t_s
        if loss is not None:
            self._new["loss/train"] = loss

    def measured(self, values: Mapping[str, Mapping[str, float]]) -> None:
        """Keeps the measures' figures for the point that follows."""
        for measure, each in values.items():
            self._new |= {f"measures/{measure}/{figure}": value for figure, value in each.items()}

    def evaluated(self, accuracies: dict[str, float]) -> None:
        """Keeps the accuracies for the point that follows."""
        self._new |= {f"accuracy/{model}": value for model, value in accuracies.items()}

    def progressed(self, so_far: Progress) -> None:
        """Hands over a point: what is new, and the costs unless they are those of the point before."""
        if any(name.startswith("accuracy/") for name in self._new):
            self._new |= {f"loss/{model}": value for model, value in so_far.losses.items()}
        costs = {name: getattr(so_far, name) for name in _COSTS}
        known = {f"cost/{name}": value for name, value in costs.items() if value is not None}
        if known != self._costs:
            self._new |= known
        self._costs = known
        self._last = Point(so_far.round, so_far.t_s, self._new)
        self._new = {}
        if self._last.figures:
            self._put(self._last)

    def ended(self, name: str, status: str, reason: str) -> None:
        """Ends the run."""
        del name, status, reason
        self.over()

    def over(self) -> None:
        """Ends the run, unless it has ended or never began."""
        if self._open:
            self._put(Final(self._run.folder, self._last))
        self._open = False

    def _put(self, item: Run | Point | Final) -> None:
        for feed in self._feeds:
            feed.put(item._replace(figures=dict(item.figures)) if isinstance(item, Point) else item)


# Of ``Progress``, what is charted; the loss and the accuracies are apart.
_COSTS = (
    "bytes",
    "down_bytes",
    "up_bytes",
    "joules",
    "flops",
    "client_s",
    "jobs",
    "wasted_bytes",
    "wasted_share",
)


class Tracking:
    """The trackers of a group of runs.

    Attributes:
        group: the group's name.
        folder: its directory.
    """

    def __init__(self, trackers: Sequence[Chosen], group: str, folder: Path) -> None:
        self.group = group
        self.folder = folder
        self._feeds = [Feed(tracker, folder) for tracker in trackers]

    @contextmanager
    def following(
        self, planned: Planned, engine: str, folder: Path, callbacks: Callbacks
    ) -> Iterator[Callbacks]:
        """What one run calls: its trackers beside others. However it ends, the trackers are told.

        Args:
            planned: the run.
            engine: the engine's name.
            folder: its directory.
            callbacks: the others.
        """
        if not self._feeds:
            yield callbacks
            return
        following = Followed(self._feeds, self._described(planned, engine, folder))
        try:
            yield Both(callbacks, following)
        finally:
            following.over()

    def _described(self, planned: Planned, engine: str, folder: Path) -> Run:
        scenario = planned.plan.scenario
        return Run(
            name=scenario.name,
            group=self.group,
            run_id=planned.run_id,
            seed=scenario.seed,
            folder=folder.resolve(),
            group_folder=self.folder.resolve(),
            settings=dotted(planned.resolved["scenario"]),
            tags={"method": scenario.method.name, "dataset": scenario.task.dataset.name, "engine": engine},
        )

    def close(self, patience_s: float) -> None:
        """Waits for the trackers, so many seconds at most for all of them together."""
        deadline_s = time.monotonic() + patience_s
        for feed in self._feeds:
            feed.ending(patience_s)
        for feed in self._feeds:
            feed.close(deadline_s)


@contextmanager
def tracking(trackers: Sequence[Chosen], group: str, folder: Path) -> Iterator[Tracking]:
    """The trackers while a group runs; at the end they are waited for.

    Args:
        trackers: the trackers.
        group: the group's name.
        folder: its directory.
    """
    tracked = Tracking(trackers, group, folder)
    patience_s = INTERRUPTED_S
    try:
        yield tracked
        patience_s = PATIENCE_S
    finally:
        tracked.close(patience_s)
