"""Training in other processes: orders, answers, and retries.

A ``WorkerPool`` is the workers and how to reach them. ``Remote`` gives each worker one unit of jobs at a
time, and gives the unit of a worker that died or failed to another. Units do not depend on the number of
workers, and a unit's result depends on its jobs alone, so the number of workers changes no bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from torch import Tensor

from edgefl.compute.job import EngineContext, Group, Outcome, Trainer, shortened
from edgefl.core.errors import EdgeflError, RunError
from edgefl.core.event import Job
from edgefl.core.user_code import as_run_error
from edgefl.protocol import Tree

TRIES = 3

RefT = TypeVar("RefT")


class TaskBuilder(Protocol):
    """What makes tasks of jobs in a worker."""

    def group(
        self, jobs: Sequence[Job], servers: Mapping[int, Tree], states: Mapping[int, Tree | None]
    ) -> Group:
        """The jobs with everything their folds need."""
        ...


class BuilderSpec(NamedTuple):
    """How a worker makes its task builder.

    Attributes:
        build: (settings, tensors) -> task builder; a function that every process can import.
        settings: plain data.
        tensors: what all workers share.
    """

    build: Callable[[Mapping[str, Any], Mapping[str, Tensor]], TaskBuilder]
    settings: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


class RemoteEngineContext(EngineContext, Protocol):
    """The run as an engine with workers sees it.

    Attributes:
        versions: the server versions that are needed now.
    """

    versions: Mapping[int, Tree]

    def builder_spec(self) -> BuilderSpec:
        """How a worker makes its task builder."""
        ...

    def sent_state(self, job: Job) -> Any:
        """The state that a job begins with: a tree, None, or a small object whose ``read()`` returns it."""
        ...


@dataclass(frozen=True)
class Order(Generic[RefT]):
    """One unit of work on its way to a worker.

    Attributes:
        jobs: the unit.
        servers: where the server versions lie that it needs.
        states: where the clients' states lie: a tree with an entry a client.
        limit: the most steps to take in each phase.
    """

    jobs: tuple[Job, ...]
    servers: dict[int, RefT]
    states: RefT
    limit: int | None


class Done(NamedTuple):
    """A worker's answer: one outcome a job."""

    outcomes: list[Outcome]


class Failed(NamedTuple):
    """A worker's answer: an error that another worker may not meet.

    Attributes:
        error: what was raised, with its traceback; in a user's code also with the file and line.
    """

    error: EdgeflError


class Refused(NamedTuple):
    """A worker's answer: an error that every other worker would meet as well."""

    error: EdgeflError


def failure(error: BaseException) -> Failed | Refused:
    """A worker's answer to an error."""
    return Refused(error) if isinstance(error, EdgeflError) else Failed(as_run_error(error))


class Died(NamedTuple):
    """A worker is gone; another one has taken its place."""

    how: str


class Gone(NamedTuple):
    """A worker is gone, and none has taken its place, for example because a computer left the cluster."""

    how: str


Answer = Done | Failed | Refused | Died | Gone


class WorkerPool(Protocol[RefT]):
    """Workers, numbered from 0.

    Attributes:
        workers: how many.
        shares_files: whether workers can read the driver's files.
    """

    workers: int
    shares_files: bool

    def put(self, tree: Any) -> RefT:
        """Places a tree where every worker can read it."""
        ...

    def drop(self, ref: RefT) -> None:
        """Frees what ``put`` placed."""
        ...

    def send(self, worker: int, order: Order[RefT]) -> None:
        """Gives an idle worker an order."""
        ...

    def receive(self) -> tuple[int, Answer]:
        """Waits for the next answer of any worker."""
        ...

    def close(self) -> None:
        """Ends all workers."""
        ...


def work(
    builder: TaskBuilder, trainer: Trainer, order: Order[Any], servers: Mapping[int, Tree], states: Any
) -> list[Outcome]:
    """Does an order in a worker, which has read its trees."""
    group = builder.group(order.jobs, servers, {client: _read(state) for client, state in states.items()})
    return list(trainer.work(group if order.limit is None else shortened(group, order.limit)))


def _read(state: Any) -> Any:
    return state.read() if hasattr(state, "read") else state


class Remote(Generic[RefT]):
    """The engine over a pool of workers.

    Attributes:
        ahead: jobs that are trained ahead fill idle workers.
    """

    ahead = True

    def __init__(self, context: RemoteEngineContext, trainer: Trainer, pool: WorkerPool[RefT]) -> None:
        self._context = context
        self._trainer = trainer
        self._pool = pool
        self._workers = list(range(pool.workers))
        self._servers: dict[int, RefT] = {}

    def outcomes(self, jobs: Sequence[Job], *, limit: int | None = None) -> Iterator[Outcome]:
        """Trains jobs; see ``Engine``.

        Raises:
            RunError: a unit failed three times or for good, or all workers are gone.
        """
        self._publish({job.version for job in jobs})
        waiting = deque((unit, 1) for unit in self._trainer.units(jobs, self._context.size))
        idle, deaths = list(self._workers), 0
        busy: dict[int, tuple[tuple[Job, ...], int, Order[RefT]]] = {}
        while waiting or busy:
            while waiting and idle:
                worker, (unit, attempt) = idle.pop(0), waiting.popleft()
                order = self._order(unit, limit)
                busy[worker] = unit, attempt, order
                self._pool.send(worker, order)
            worker, answer = self._pool.receive()
            if isinstance(answer, Gone):
                self._without(worker, answer, idle)
            elif worker in busy:
                idle.append(worker)
            if worker not in busy:
                deaths += 1
                self._check_lasting(jobs, answer, deaths)
                continue
            unit, attempt, order = busy.pop(worker)
            self._pool.drop(order.states)
            if isinstance(answer, Done):
                deaths = 0
                yield from answer.outcomes
            elif isinstance(answer, Refused):
                raise answer.error
            else:
                waiting.appendleft((unit, _next(unit, attempt, answer)))

    def _check_lasting(self, jobs: Sequence[Job], answer: Answer, deaths: int) -> None:
        """A worker that dies while idle is replaced, but not without end."""
        if isinstance(answer, Died) and deaths > TRIES * self._pool.workers:
            raise _given_up(jobs, answer)

    def _without(self, worker: int, answer: Gone, idle: list[int]) -> None:
        """Goes on with the other workers."""
        self._workers.remove(worker)
        if worker in idle:
            idle.remove(worker)
        if not self._workers:
            raise RunError(
                f"all workers are gone: {answer.how}",
                where="engine.workers",
                hint="add computers to the cluster, or wait until it has room",
            )

    def _publish(self, needed: set[int]) -> None:
        for version in set(self._servers) - set(self._context.versions):
            self._pool.drop(self._servers.pop(version))
        for version in needed - set(self._servers):
            self._servers[version] = self._pool.put(self._context.versions[version])

    def _order(self, unit: tuple[Job, ...], limit: int | None) -> Order[RefT]:
        servers = {job.version: self._servers[job.version] for job in unit}
        states = {job.client: self._context.sent_state(job) for job in unit}
        if not self._pool.shares_files:
            states = {client: _read(state) for client, state in states.items()}
        return Order(unit, servers, self._pool.put(states), limit)

    def close(self) -> None:
        """Ends all workers."""
        self._pool.close()


def _next(unit: Sequence[Job], attempt: int, answer: Failed | Died | Gone) -> int:
    """The number of a unit's next attempt; a worker that did not start is not counted against the unit."""
    if isinstance(answer, Gone):
        return attempt
    if attempt == TRIES:
        raise _given_up(unit, answer)
    return attempt + 1


def _given_up(unit: Sequence[Job], answer: Failed | Died) -> RunError:
    job = unit[0]
    who = f"client {job.client}" if len(unit) == 1 else f"{len(unit)} clients including {job.client}"
    failed = f"training {who} in round {job.round} failed {TRIES} times"
    where = f"exchange {job.exchange}"
    if isinstance(answer, Died):
        return RunError(
            f"{failed}: the worker process died: {answer.how}",
            where=where,
            hint="a component may have called os._exit"
            if "exit status" in answer.how
            else "a killed worker may have run out of memory: set engine.workers lower",
        )
    cause = answer.error
    error = RunError(
        f"{failed}: {cause.what}",
        where=f"{cause.where}, exchange {job.exchange}" if cause.where else where,
        hint=cause.hint or "run with --engine loop to debug it in one process",
    )
    error.trace = cause.trace
    return error
