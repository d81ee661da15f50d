"""Training in other processes: loky's on this machine, or another pool's.

A unit is a pure function of its jobs. Units do not depend on the number of workers either, so that it changes
no bit, and what does not come back, because a worker died, is submitted again.
"""

import math
import multiprocessing.resource_tracker
import os
import shutil
import signal
import threading
import time
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

from loky import process_executor
from loky.backend import resource_tracker
from loky.process_executor import ProcessPoolExecutor

from edgefl.compute.job import Engine, EngineContext, Group, Outcome, Setup, Trainer, Unit
from edgefl.compute.process import keep_freed_memory
from edgefl.compute.trees import Files
from edgefl.core import fresh
from edgefl.core.errors import EdgeflError, RunError
from edgefl.core.event import TrainingJob
from edgefl.core.user_code import as_run_error

TRIES = 3
# Units on their way for each worker: one is trained, the next one is there when it is done.
_QUEUED = 2
_LOOK_S = 0.5


class Order(NamedTuple):
    """One unit of work on its way to a worker, with the places of the server versions and states it needs."""

    jobs: Unit
    servers: dict[int, Any]
    states: Any


class Trees(Hashable, Protocol):
    """How trees get to workers and back; goes with every unit."""

    def put(self, tree: Any, /) -> Any:
        """Places a tree where others can read it, and says where."""

    def get(self, ref: Any, /) -> Any: ...

    def drop(self, ref: Any, /) -> None:
        """Frees what ``put`` placed; readers keep what they have."""


def unit(trees: Trees, setup: Any, order: Order) -> Any:
    """A worker's: trains an order's jobs; returns where their outcomes lie, or why there are none."""
    try:
        grouped, trainer = _prepared(trees, setup)
        servers = {version: trees.get(ref) for version, ref in order.servers.items()}
        return trees.put(list(trainer.work(grouped(order.jobs, servers, trees.get(order.states)))))
    except BaseException as error:  # noqa: BLE001 - whatever a job raises, the driver tells
        return as_run_error(error)


@lru_cache(maxsize=1)
def _prepared(trees: Trees, setup: Any) -> tuple[Callable[..., Group], Trainer]:
    build, federation, trainer = trees.get(setup)
    return build(federation).group, trainer


class Parallel(Engine):
    """Has workers, and ``most`` units on their way to them; ``lost`` is the error of one that was lost."""

    lost: ClassVar[type[Exception]]

    def __init__(self, context: EngineContext, setup: Setup, trees: Trees, most: int) -> None:
        self.trees = trees
        self.most = most
        self._context = context
        self._trainer = setup.trainer
        self._setup = trees.put(setup)
        self._servers: dict[int, Any] = {}

    @abstractmethod
    def submit(self, order: Order) -> Future[Any]:
        """Has a worker call ``unit``."""

    def outcomes(self, jobs: Sequence[TrainingJob]) -> Iterator[Outcome]:
        """Raises a ``RunError`` where the worker of a unit died three times."""
        for version in self._servers.keys() - self._context.versions.keys():
            self.trees.drop(self._servers.pop(version))
        for version in {job.version for job in jobs} - self._servers.keys():
            self._servers[version] = self.trees.put(self._context.versions[version])
        waiting = deque((1, unit) for unit in self._trainer.units(jobs, self._context.size))
        flying: dict[Future[Any], tuple[int, Order]] = {}
        while waiting or flying:
            # Where a worker dies, all units on their way are lost: its last attempt a unit has alone.
            last = any(attempt == TRIES for attempt, _ in (*waiting, *flying.values()))
            while waiting and len(flying) < (1 if last else self.most):
                attempt, group = waiting.popleft()
                servers = {job.version: self._servers[job.version] for job in group}
                states = {job.client: self._context.begins(job) for job in group}
                order = Order(group, servers, self.trees.put(states))
                flying[self.submit(order)] = attempt, order
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                attempt, order = flying.pop(future)
                self.trees.drop(order.states)
                try:
                    answer = future.result()
                    if isinstance(answer, EdgeflError):
                        raise answer
                    found: list[Outcome] = self.trees.get(answer)
                    self.trees.drop(answer)
                except self.lost as error:
                    if attempt == TRIES:
                        raise _given_up(order.jobs, error) from error
                    waiting.appendleft((attempt + 1, order.jobs))
                else:
                    yield from found


def _given_up(jobs: Sequence[TrainingJob], error: Exception) -> RunError:
    job = jobs[0]
    who = f"client {job.client}" if len(jobs) == 1 else f"{len(jobs)} clients including {job.client}"
    how = fresh.died(error)
    return RunError(
        f"training {who} in round {job.round} failed {TRIES} times: the worker process died: {how}",
        where=f"exchange {job.exchange}",
        hint="a killed worker may have run out of memory: set engine.workers lower; one that was not killed "
        "ran a component that calls os._exit",
    )


class Processes(Parallel):
    """Workers on this machine, one thread each; trees lie in shared memory."""

    lost = BrokenExecutor

    def __init__(self, context: EngineContext, setup: Setup, workers: int) -> None:
        self._workers = workers
        with _apart():
            files = Files.fresh(setup.federation.nbytes)
            # Also when every process is killed.
            resource_tracker.register(str(files.folder), "folder")
            self._remove = weakref.finalize(self, _removed, files)
        self._executor = _started(workers)
        try:
            super().__init__(context, setup, files, _QUEUED * workers)
        except BaseException:
            self.close()
            raise

    def submit(self, order: Order) -> Future[Any]:
        # After a worker's death, all are replaced.
        call = unit, self.trees, self._setup, order
        try:
            future: Future[Any] = self._executor.submit(*call)
        except BrokenExecutor:
            self._executor = _started(self._workers)
            future = self._executor.submit(*call)
        return future

    def close(self) -> None:
        """Ends all workers, busy or not, and removes the files."""
        self._executor.shutdown(kill_workers=True)
        self._remove()


def _started(workers: int) -> ProcessPoolExecutor:
    """Workers, started by another thread than the one that Ctrl-C breaks off, lest they be left half-way."""
    here, env = (os.getpid(),), fresh.environment(1)
    with _apart(), ThreadPoolExecutor(1) as thread:
        executor = ProcessPoolExecutor(workers, initializer=_begin, initargs=here, env=env)
        # Starts them all.
        starting = thread.submit(executor.submit, os.getpid)
        try:
            starting.result()
        except BaseException:
            if starting.exception() is None:
                executor.shutdown(kill_workers=True)
            raise
    return executor


@contextmanager
def _apart() -> Iterator[None]:
    """Processes that start now leave Ctrl-C to this one, and import nothing from the current folder."""
    safe = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    # When it starts, it lets Ctrl-C through again, to workers that start after it.
    multiprocessing.resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        os.environ.pop("PYTHONSAFEPATH") if safe is None else os.environ.update(PYTHONSAFEPATH=safe)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(driver: int) -> None:
    keep_freed_memory()
    # A worker's memory grows with its largest unit: that is no leak, for which loky would replace it.
    process_executor._MAX_MEMORY_LEAK_SIZE = math.inf  # noqa: SLF001
    threading.Thread(target=_follow, args=(driver,), daemon=True).start()


def _follow(driver: int) -> None:
    """Ends this worker with its driver, which may have been killed."""
    while os.getppid() == driver:
        time.sleep(_LOOK_S)
    os._exit(1)


def _removed(files: Files) -> None:
    shutil.rmtree(files.folder, ignore_errors=True)
    resource_tracker.unregister(str(files.folder), "folder")
