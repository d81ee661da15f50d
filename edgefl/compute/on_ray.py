"""Workers on a Ray cluster: actors of one thread each, with trees in Ray's object store.

Imports Ray, so only the engine ``ray`` imports this. A cluster's computers need edgefl in the driver's
version, and nothing else of the user's: settings, data and the files on ``EDGEFL_PATH`` are sent.
"""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import ray
import torch
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from edgefl.compute import silence
from edgefl.compute.folders import owned_folder, removed
from edgefl.compute.job import Outcome, Trainer
from edgefl.compute.ray_cluster import Cluster
from edgefl.compute.ray_trees import Packed, borrowed, packed, unpacked
from edgefl.compute.remote import (
    Answer,
    BuilderSpec,
    Died,
    Done,
    Failed,
    Gone,
    Order,
    Refused,
    failure,
    work,
)
from edgefl.core import catalogue
from edgefl.core.errors import RunError, UserError

# How long a worker may take to start: to find room in the cluster, and to load torch.
COMING_S = 90.0
_LEAVING_S = 2.0
# What gives signs while an order is being done.
_SIGNS = "signs"


class Setup(NamedTuple):
    """The first message to a worker.

    Attributes:
        build: see ``BuilderSpec``.
        settings: see ``BuilderSpec``.
        tensors: where the shared tensors lie.
        trainer: how it trains.
        folders: each directory on the driver's ``EDGEFL_PATH``, and its files of components by their paths.
    """

    build: Any
    settings: Mapping[str, Any]
    tensors: Any
    trainer: Trainer
    folders: dict[str, dict[str, bytes]]


class Seat(NamedTuple):
    """Where a worker runs.

    Attributes:
        host: the computer's name.
        node: the cluster's name for it.
        pid: the process.
        versions: see ``versions()``.
    """

    host: str
    node: str
    pid: int
    versions: dict[str, str]


def versions() -> dict[str, str]:
    """The versions that must be the same on all computers; builds of torch may differ."""
    return {
        "edgefl": installed("edgefl-emulator"),
        "torch": installed("torch").partition("+")[0],
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


class Worker:
    """The actor, which does one order at a time."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self._folder: Path | None = None
        self._roots: dict[str, str] = {}
        self._setup: Setup | None = None
        self._builder: Any = None
        self._servers: dict[int, Any] = {}

    def seat(self) -> tuple[str, str, int, dict[str, str]]:
        """Where it runs, as plain data that every version of edgefl can send."""
        return platform.node(), ray.get_runtime_context().get_node_id(), os.getpid(), versions()

    def prepare(self, setup: Setup) -> None:
        """Takes what all orders share, and puts the user's components where the catalogue looks for them."""
        self._setup = setup
        os.environ["EDGEFL_PATH"] = ""
        if not setup.folders:
            return
        self._folder = owned_folder("edgefl-")
        self._roots = {str(self._folder / str(nth)): name for nth, name in enumerate(setup.folders)}
        for root, files in zip(map(Path, self._roots), setup.folders.values(), strict=True):
            root.mkdir()
            for name, content in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        os.environ["EDGEFL_PATH"] = os.pathsep.join(self._roots)

    @ray.method(concurrency_group=_SIGNS)  # type: ignore[untyped-decorator]
    def beat(self) -> None:
        """Gives a sign, also in the middle of an order."""

    def work(self, order: Order[Any]) -> Packed | Failed | Refused:
        """The outcomes of an order, or why there are none."""
        try:
            return packed(self._outcomes(order))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a job raises, the driver reports
            return self._as_in_driver(failure(error))

    def _as_in_driver(self, answer: Failed | Refused) -> Failed | Refused:
        """The answer, with the driver's paths of the user's files."""
        error = answer.error
        for here, there in self._roots.items():
            error.what, error.where, error.trace = (
                text.replace(here, there) for text in (error.what, error.where, error.trace)
            )
        return answer

    def _outcomes(self, order: Order[Any]) -> list[Outcome]:
        setup = self._setup
        if setup is None:
            raise RuntimeError("this worker was not prepared: the driver's message cannot be read here")
        if self._builder is None:
            self._builder = setup.build(setup.settings, borrowed(ray.get(setup.tensors)))
        known = self._servers
        self._servers = {
            version: known[version] if version in known else unpacked(ray.get(ref))
            for version, ref in order.servers.items()
        }
        return work(self._builder, setup.trainer, order, self._servers, unpacked(ray.get(order.states)))

    def leave(self) -> None:
        """Removes its files."""
        if self._folder is not None:
            removed([self._folder])


class RayWorkerPool:
    """A pool of actors, wherever the cluster has room for them.

    Attributes:
        workers: how many there were at the start.
        shares_files: they cannot read the driver's files.
        seats: where those that have started run, by number.
    """

    shares_files = False

    def __init__(self, spec: BuilderSpec, trainer: Trainer, workers: int | None, address: str | None) -> None:
        """Joins or starts a cluster, and waits until all workers have started.

        Raises:
            UserError: there is no such cluster, or it is too small or has other versions.
            RunError: it has no room.
        """
        folders = dict(zip(map(str, catalogue.user_folders()), catalogue.user_files(), strict=True))
        self._cluster = Cluster(address, workers)
        # Ray has no types: actors by number; the others by the reference that is waited for.
        self._actors: dict[int, Any] = {}
        self._coming: dict[Any, tuple[int, float]] = {}
        self._busy: dict[Any, int] = {}
        # The signs that were asked for, by the number of the worker.
        self._beats: dict[int, Any] = {}
        self._silence = silence.Silence()
        self.seats: dict[int, Seat] = {}
        try:
            self.workers = self._cluster.room(workers)
            self._class = ray.remote(
                num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD", concurrency_groups={_SIGNS: 1}
            )(Worker)
            self._tensors = self.put(dict(spec.tensors))
            self._setup = ray.put(Setup(spec.build, spec.settings, self._tensors, trainer, folders))
            self._assemble()
        except BaseException:
            self.close()
            raise

    def _assemble(self) -> None:
        """Starts all workers, and waits for them."""
        for number in range(self.workers):
            self._hire(number)
        came, missing = ray.wait(list(self._coming), num_returns=self.workers, timeout=COMING_S)
        if missing:
            raise RunError(
                f"the cluster had room for {len(came)} of {self.workers} workers within {COMING_S:.0f} s",
                where="engine.workers",
                hint="use fewer workers, or wait until other work there ends; see `ray status`",
            )
        for ref in came:
            wrong = self._seated(ref)
            if wrong:
                raise UserError(wrong, hint="install the same versions on every computer of the cluster")

    def _hire(self, number: int) -> None:
        """Asks the cluster for a worker."""
        actor = self._actors[number] = self._class.remote()
        self._coming[actor.seat.remote()] = number, time.monotonic() + COMING_S
        actor.prepare.remote(self._setup)

    def _seated(self, ref: Any) -> str:
        """Registers a worker that has started; returns what is wrong with it, if anything."""
        number, _ = self._coming.pop(ref)
        try:
            seat = Seat(*ray.get(ref))
        except RayTaskError as error:
            return f"a computer of the cluster cannot run edgefl: {_last_line(error)}"
        except RayError:
            # Its death shows in its order, too.
            return ""
        self.seats[number] = seat
        here = versions()
        other = {name: found for name, found in seat.versions.items() if found != here[name]}
        if not other:
            return ""
        ours = {name: here[name] for name in other}
        return f"the cluster's {seat.host} has {_names(other)}, this computer has {_names(ours)}"

    def put(self, tree: Any) -> Any:
        """Places a tree in the object store.

        Raises:
            RunError: the store is full.
        """
        try:
            return ray.put(packed(tree))
        except RayError as error:
            raise RunError(f"Ray's object store is full: {_last_line(error)}") from error

    def drop(self, ref: Any) -> None:
        """Nothing to do: the store frees objects without references, and the caller's was the last."""

    def send(self, worker: int, order: Order[Any]) -> None:
        """Gives an idle worker an order; that it died shows in ``receive``."""
        self._busy[self._actors[worker].work.remote(order)] = worker

    def receive(self) -> tuple[int, Answer]:
        """Waits for the next answer of any worker."""
        while True:
            first = min((deadline for _, deadline in self._coming.values()), default=math.inf)
            left = max(0.0, first - time.monotonic())
            ready, _ = ray.wait(
                [*self._busy, *self._coming], num_returns=1, timeout=min(left, silence.LOOK_S)
            )
            if not ready and left <= silence.LOOK_S:
                return self._given_up()
            if not ready:
                order = self._look()
                if order is None:
                    continue
                number = self._busy.pop(order)
                return number, self._replaced(number, silence.given_up())
            if ready[0] in self._busy:
                return self._busy[ready[0]], self._answer(ready[0])
            wrong = self._seated(ready[0])
            if wrong:
                raise RunError(wrong, hint="install the same versions on every computer of the cluster")

    def _given_up(self) -> tuple[int, Gone]:
        """Gives up the worker that has been starting for the longest time."""
        ref = min(self._coming, key=lambda one: self._coming[one][1])
        number, _ = self._coming.pop(ref)
        ray.kill(self._actors.pop(number))
        self._busy = {order: worker for order, worker in self._busy.items() if worker != number}
        return number, Gone(f"the cluster had no room for a replacement within {COMING_S:.0f} s")

    def _answer(self, ref: Any) -> Done | Failed | Refused | Died:
        number = self._busy.pop(ref)
        try:
            found = ray.get(ref)
        except RayTaskError as error:
            failed = RunError(_last_line(error))
            failed.trace = str(error)
            return Failed(failed)
        except RayError as error:
            # The worker may only be unreachable.
            return self._replaced(number, _last_line(error))
        if isinstance(found, Failed | Refused):
            return found
        return Done(unpacked(found))

    def _replaced(self, number: int, how: str) -> Died:
        """Replaces a worker, which must not continue beside its replacement."""
        ray.kill(self._actors[number])
        seat = self.seats.pop(number, None)
        if seat is not None and seat.host == platform.node():
            _kill(seat.pid)
        self._beats.pop(number, None)
        self._coming = {ref: came for ref, came in self._coming.items() if came[0] != number}
        self._hire(number)
        return Died(how)

    def _look(self) -> Any:
        """Asks the busy workers for a sign; returns the order of one that has given none for too long."""
        asked = {number: beat for number, beat in self._beats.items() if number in self._busy.values()}
        heard = set(ray.wait(list(asked.values()), num_returns=len(asked), timeout=0)[0]) if asked else set()
        silent = {number: self._name(number) for number, beat in asked.items() if beat not in heard}
        late = self._silence.look(silent)
        self._beats = {
            number: self._beats[number] if number in silent else self._actors[number].beat.remote()
            for number in self._busy.values()
            if number in self.seats
        }
        return next((order for order, number in self._busy.items() if number in late), None)

    def _name(self, number: int) -> str:
        seat = self.seats[number]
        return f"worker {number + 1} (process {seat.pid} on {seat.host})"

    def close(self) -> None:
        """Ends all workers, busy or not, and leaves the cluster, or ends it if it was started here."""
        with suppress(RayError, GetTimeoutError):
            out = {*self._busy.values(), *(number for number, _ in self._coming.values())}
            leaving = [actor.leave.remote() for number, actor in self._actors.items() if number not in out]
            if leaving:
                ray.wait(leaving, num_returns=len(leaving), timeout=_LEAVING_S)
            for actor in self._actors.values():
                ray.kill(actor)
        self._actors, self._busy, self._coming = {}, {}, {}
        self._cluster.leave()


def _kill(pid: int) -> None:
    """Ends a worker on this computer: Ray asks it to, which one that is stopped does not hear.

    Any other process of that number is left alone: several computers of a cluster may have one name.
    """
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::"):
            process.kill()


def _names(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())


def _last_line(error: Exception) -> str:
    """The last line of an error of Ray's, without its advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1].partition(" Some common causes")[0]
