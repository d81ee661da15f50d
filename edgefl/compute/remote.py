"""Training by other processes: what they are told, what they answer, and who does what again.

A ``Crew`` is the workers and how to reach them. ``Remote`` hands them units of jobs, one at a time each,
and does the unit of a worker that died or failed again, elsewhere. Units are cut without regard to the
number of workers, and a unit's result depends on nothing but its jobs, so that the number of workers
changes no bit.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from torch import Tensor

from edgefl.compute.job import Bench, Bundle, Group, Outcome, Trainer, shortened
from edgefl.core.errors import EdgeflError, RunError, told
from edgefl.core.event import Job
from edgefl.protocol import Tree

TRIES = 3

RefT = TypeVar("RefT")


class Workshop(Protocol):
    """A worker's own bench."""

    def group(
        self, jobs: Sequence[Job], servers: Mapping[int, Tree], states: Mapping[int, Tree | None]
    ) -> Group:
        """The jobs with everything their folds need."""
        ...


class Recipe(NamedTuple):
    """How a worker builds its workshop.

    Attributes:
        build: (settings, tensors) -> workshop; found by its name in every process.
        settings: plain data.
        tensors: what all workers share.
    """

    build: Callable[[Mapping[str, Any], Mapping[str, Tensor]], Workshop]
    settings: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


class FarBench(Bench, Protocol):
    """The run, as an engine with workers sees it.

    Attributes:
        versions: the server versions that are needed now.
    """

    versions: Mapping[int, Tree]

    def recipe(self) -> Recipe:
        """How a worker builds its workshop."""
        ...

    def sent_state(self, job: Job) -> Any:
        """The state that a job begins with: a tree, None, or a small thing with a ``read()`` for it."""
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
    """A worker's answer: its bundles."""

    bundles: list[Bundle]


class Failed(NamedTuple):
    """A worker's answer: an error that another worker may not meet.

    Attributes:
        error: its type and message.
        trace: where it was raised, as text of many lines.
    """

    error: str
    trace: str


class Refused(NamedTuple):
    """A worker's answer: an error that every other worker would meet, too."""

    error: EdgeflError


def failure(error: Exception) -> Failed | Refused:
    """What a worker tells of an error; to be called where it is handled."""
    if isinstance(error, EdgeflError):
        return Refused(error)
    return Failed(told(error), traceback.format_exc())


class Died(NamedTuple):
    """A worker is gone; another one has taken its place."""

    how: str


class Gone(NamedTuple):
    """A worker is gone, and none has taken its place: a computer of the cluster, say."""

    how: str


Answer = Done | Failed | Refused | Died | Gone


class Crew(Protocol[RefT]):
    """Workers, numbered from 0.

    Attributes:
        workers: how many.
        shares_files: whether workers see the driver's files.
    """

    workers: int
    shares_files: bool

    def put(self, tree: Any) -> RefT:
        """Places a tree where every worker can read it."""
        ...

    def drop(self, ref: RefT) -> None:
        """Gives back what ``put`` placed."""
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


def worked(
    workshop: Workshop, trainer: Trainer, order: Order[Any], servers: Any, states: Any
) -> list[Bundle]:
    """What a worker does with an order whose trees it has."""
    read = {client: _read(state) for client, state in states.items()}
    group = workshop.group(order.jobs, servers, read)
    return trainer.work(group if order.limit is None else shortened(group, order.limit))


def _read(state: Any) -> Any:
    return state.read() if hasattr(state, "read") else state


class Remote(Generic[RefT]):
    """The engine of a crew.

    Attributes:
        ahead: jobs that are trained ahead fill idle workers.
    """

    ahead = True

    def __init__(self, bench: FarBench, trainer: Trainer, crew: Crew[RefT]) -> None:
        self._bench = bench
        self._trainer = trainer
        self._crew = crew
        self._workers = list(range(crew.workers))
        self._servers: dict[int, RefT] = {}

    def outcomes(self, jobs: Sequence[Job], *, limit: int | None = None) -> Iterator[Outcome]:
        """Trains jobs; see ``Engine``.

        Raises:
            RunError: a unit failed three times or for good, or no worker is left.
        """
        self._publish({job.version for job in jobs})
        waiting = deque((unit, 1) for unit in self._trainer.units(jobs, self._bench.size))
        idle, deaths = list(self._workers), 0
        busy: dict[int, tuple[tuple[Job, ...], int, Order[RefT]]] = {}
        while waiting or busy:
            while waiting and idle:
                worker, (unit, attempt) = idle.pop(0), waiting.popleft()
                order = self._order(unit, limit)
                busy[worker] = unit, attempt, order
                self._crew.send(worker, order)
            worker, answer = self._crew.receive()
            if isinstance(answer, Gone):
                self._without(worker, answer, idle)
            elif worker in busy:
                idle.append(worker)
            if worker not in busy:
                deaths += 1
                self._check_lasting(jobs, answer, deaths)
                continue
            unit, attempt, order = busy.pop(worker)
            self._crew.drop(order.states)
            if isinstance(answer, Done):
                deaths = 0
                for bundle in answer.bundles:
                    yield from bundle.outcomes()
            elif isinstance(answer, Refused):
                raise answer.error
            else:
                waiting.appendleft((unit, _next(unit, attempt, answer)))

    def _check_lasting(self, jobs: Sequence[Job], answer: Answer, deaths: int) -> None:
        """A worker may die without work, and another takes its place, but not again and again."""
        if isinstance(answer, Died) and deaths > TRIES * self._crew.workers:
            raise _given_up(jobs, answer)

    def _without(self, worker: int, answer: Gone, idle: list[int]) -> None:
        """Goes on with the other workers."""
        self._workers.remove(worker)
        if worker in idle:
            idle.remove(worker)
        if not self._workers:
            raise RunError(
                f"no worker is left: {answer.how}",
                where="engine.workers",
                hint="add computers to the cluster, or wait until it has room",
            )

    def _publish(self, wanted: set[int]) -> None:
        for version in set(self._servers) - set(self._bench.versions):
            self._crew.drop(self._servers.pop(version))
        for version in wanted - set(self._servers):
            self._servers[version] = self._crew.put(self._bench.versions[version])

    def _order(self, unit: tuple[Job, ...], limit: int | None) -> Order[RefT]:
        servers = {job.version: self._servers[job.version] for job in unit}
        states = {job.client: self._bench.sent_state(job) for job in unit}
        if not self._crew.shares_files:
            states = {client: _read(state) for client, state in states.items()}
        return Order(unit, servers, self._crew.put(states), limit)

    def close(self) -> None:
        """Ends all workers."""
        self._crew.close()


def _next(unit: Sequence[Job], attempt: int, answer: Failed | Died | Gone) -> int:
    """The number of a unit's next attempt; that a worker did not come is no failure of the unit's."""
    if isinstance(answer, Gone):
        return attempt
    if attempt == TRIES:
        raise _given_up(unit, answer)
    return attempt + 1


def _given_up(unit: Sequence[Job], answer: Failed | Died) -> RunError:
    job = unit[0]
    who = f"client {job.client}" if len(unit) == 1 else f"{len(unit)} clients, {job.client} among them,"
    why = f"the worker process died: {answer.how}" if isinstance(answer, Died) else answer.error
    error = RunError(
        f"the work of {who} in round {job.round + 1} failed {TRIES} times: {why}",
        where=f"exchange {job.exchange}",
        hint="workers that are killed may lack memory: take fewer of them with engine.workers"
        if isinstance(answer, Died)
        else "run it with --engine loop to see it fail in this process",
    )
    if isinstance(answer, Failed):
        error.add_note(answer.trace)
    return error
