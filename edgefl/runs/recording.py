"""A recorded run beside its replay: compares each merge, and answers with what was recorded."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from edgefl.core.errors import RunError, UserError
from edgefl.core.plan import Plan
from edgefl.planning.learning import Learning
from edgefl.planning.replanning import Replanned
from edgefl.protocol.sample_losses import LOSS_RMS
from edgefl.runs.past import Answers
from edgefl.runs.task_builder import Facts, TaskBuilder
from edgefl.store.reader import Reader
from edgefl.world.driver import simulate
from edgefl.world.job import stacked
from edgefl.world.needs import Evaluate, Feedback, Merge, Need, jobs_of

# So many clients are named.
_NAMED = 3
# What is alike in two merges whose results are the same, and in two of their jobs.
_MERGE = ("exchange", "round", "correction")
_JOB = {"exchange": "exchange", "nth": "jobs done", "version": "version", "steps": "steps", "round": "round"}

Scalars = Mapping[int, Mapping[str, float]]


class OtherRunError(UserError):
    """On the other fleet, another run would be learned."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(f"another run would be learned: {what}", hint=hint)


class RecordEndsError(Exception):
    """The run was not done, and has no further merge."""


class Recording:
    """Takes the learner's place in a replay.

    The recorded plan is simulated again, in step with the replay's: what a merge depends on is more than what
    its row says.

    Attributes:
        version: the last merge that was replayed.
        unscored: the versions that the replay evaluates and the run did not.
    """

    # As of a learner that takes no measures: theirs are recorded.
    observer = None

    def __init__(self, reader: Reader, found: Replanned) -> None:
        """Begins before the first merge.

        Raises:
            UserError: the selector reads what the run's training did not report.
        """
        plan = found.planned.plan
        self.reader = reader
        self.version = 0
        self.unscored: list[int] = []
        self._plans = found.recorded, plan
        self._differences = Differences(found.recorded, plan, found.planned.learning)
        self._answers = Answers(reader)
        self._last = reader.query("SELECT IFNULL(MAX(version), 0) AS last FROM merges")[0]["last"]
        self._merged = reader.arrays(
            "SELECT into_version, job, client FROM jobs WHERE into_version IS NOT NULL "
            "ORDER BY into_version, client, job",
            **dict.fromkeys(("version", "job", "client"), np.int64),
        )
        self._reads = plan.scenario.server.selector.READS
        self._check_reads()
        # Since the last merge: late jobs whose states are kept, here and as recorded, and jobs' scalars.
        self._late: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        self._reported: dict[tuple[int, ...], Mapping[str, float]] = {}
        self._world = simulate(found.recorded)
        self._need = self._next(None)

    def _check_reads(self) -> None:
        rows = self.reader.query("SELECT scalars FROM jobs WHERE scalars LIKE '%:%' LIMIT 1")
        for name in self._reads if rows else ():
            if f'"{name}":' not in rows[0]["scalars"]:
                raise UserError(
                    f"the selection reads {name}, which the run's training did not report",
                    where="server.selector",
                    hint="choose another selector, or run the scenario with this one",
                )

    def _next(self, feedback: Feedback | None) -> Need | None:
        """The recorded run's next need; None where it has no other."""
        try:
            return self._world.send(feedback)  # type: ignore[arg-type]
        except (StopIteration, RunError):
            return None

    def _answered(self) -> None:
        """Answers the recorded run's need, and takes the next."""
        was = self._need
        if was is None:
            raise AssertionError("there is no need to answer")
        feedback = self._answers.to(was)
        rows = stacked([was.rows, was.late_rows]) if isinstance(was, Merge) else was.late_rows
        self._reported |= {
            key: self._kept(feedback.jobs[job])
            for job, key in zip(rows["job"].tolist(), _keys(rows), strict=True)
            if job in feedback.jobs
        }
        self._late[1].append(was.late_rows)
        self._need = self._next(feedback)

    def _kept(self, scalars: Mapping[str, float]) -> Mapping[str, float]:
        """The scalars that training with the replay's selector reports."""
        if LOSS_RMS not in scalars or LOSS_RMS in self._reads:
            return scalars
        return {name: value for name, value in scalars.items() if name != LOSS_RMS}

    def merge(self, need: Merge) -> Scalars:
        """What training a merge's jobs reported in the recorded run, by the numbers of the jobs here.

        Raises:
            UserError: the merge differs from the recorded one.
            RecordEndsError: there is none, as the run was not done.
        """
        while isinstance(self._need, Evaluate):
            self._answered()
        was = self._need
        if need.version > self._last or was is None:
            if self.reader.meta["status"] != "done":
                raise RecordEndsError
            raise self._beyond()
        self._check_repeated(was)
        self._late[0].append(need.late_rows)
        late = stacked([*self._late[1], was.late_rows]), stacked(self._late[0])
        if text := self._differences.of(was, need, late):
            if self._goes_on(was, need):
                raise self._beyond()
            raise OtherRunError(f"merge {need.version} {self._when(was)} {text}")
        self._answered()
        found = self._scalars(stacked([need.rows, need.late_rows]))
        for each in self._late:
            each.clear()
        self._reported.clear()
        self.version = need.version
        return found

    def complete(self, need: Evaluate) -> Scalars:
        """What training late jobs reported, as ``merge``; then the evaluation's rows can be read.

        Raises:
            UserError: other late work would be complete, or other clients would be scored.
        """
        self._late[0].append(need.late_rows)
        was = self._need
        if isinstance(was, Evaluate) and was.version == need.version:
            self._answered()
            if text := self._differences.late(stacked(self._late[1]), stacked(self._late[0])):
                raise OtherRunError(f"the evaluation after merge {need.version} {text}")
        return self._scalars(need.late_rows)

    def scored(self, version: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
        """The recorded rows of ``evaluations``, ``client_evaluations`` and ``measures`` of a version.

        Raises:
            UserError: other clients would be scored.
        """
        tables = ("evaluations", "client_evaluations", "measures")
        found = [
            self.reader.query(f"SELECT * FROM {table} WHERE version = ? ORDER BY rowid", version)  # noqa: S608 - our own names
            for table in tables
        ]
        if not found[0]:
            self.unscored.append(version)
        was, now = (plan.clients.admitted for plan in self._plans)
        if found[1] and not np.array_equal(was, now):
            client = int(np.flatnonzero(was != now)[0])
            told = "without client {}, which is refused" if was[client] else "with client {}"
            raise OtherRunError(f"the evaluation after merge {version} would be {told.format(client)}")
        return found[0], found[1], found[2]

    def _scalars(self, rows: np.ndarray) -> Scalars:
        pairs = zip(rows["job"].tolist(), _keys(rows), strict=True)
        return {job: self._reported[key] for job, key in pairs if key in self._reported}

    def _goes_on(self, was: Merge, now: Merge) -> bool:
        """Whether the recorded run's rounds were over before a merge, and the replay's are not."""
        at = {prices.exchange: prices.at for prices in self._plans[1].prices}
        return at[was.exchange] == "end" and at[now.exchange] != "end"

    def _when(self, was: Merge) -> str:
        rounds = self.reader.meta.get("rounds")
        if was.round < 0:
            return "(before the rounds)"
        return "(after the rounds)" if was.round == rounds else f"(round {was.round})"

    def _beyond(self) -> UserError:
        rounds = self.reader.meta.get("rounds")
        return UserError(
            f"the run was trained for {rounds} rounds, and here it would go on after merge {self.version}",
            hint="lower server.until, or resume the run with more rounds first",
        )

    def _check_repeated(self, was: Merge) -> None:
        """Checks that the recorded plan still gives the recorded run.

        Raises:
            UserError: it does not, since the clock, a policy or a selector has changed.
        """
        own = slice(*np.searchsorted(self._merged["version"], [was.version, was.version + 1]).tolist())
        if not all(np.array_equal(self._merged[name][own], was.rows[name]) for name in ("job", "client")):
            raise UserError(
                f"merge {was.version} comes out otherwise than it was recorded: edgefl, or the policy or the "
                "selector, has changed since the run",
                hint="run the scenario again",
            )


def _keys(rows: np.ndarray) -> list[tuple[int, ...]]:
    """What tells jobs of one learning apart: their client, exchange and count."""
    return list(zip(*(rows[name].tolist() for name in ("client", "exchange", "nth")), strict=True))


class Differences:
    """Compares the needs of a recorded run with those of its replay."""

    def __init__(self, recorded: Plan, plan: Plan, learning: Learning) -> None:
        self._exchanges = [prices.exchange for prices in plan.prices]
        self._refused = dict(plan.refused())
        self._plans = recorded, plan
        facts = Facts.of(recorded), Facts.of(plan)
        settings = any(each.settings for method in learning.methods for each in method.exchanges)
        # Only then may the server tell clients something else with equal jobs.
        told = facts[0].rounds != facts[1].rounds or (settings and facts[0].devices != facts[1].devices)
        self._builders = [_builder(learning, each) for each in facts] if told else []

    def of(self, was: Merge, now: Merge, late: tuple[np.ndarray, np.ndarray]) -> str:
        """What is the first to differ between a recorded merge and the replay's; empty if nothing does.

        Args:
            late: of both, the jobs since the merge before that were late and whose clients keep their states.
        """
        return next(self._of(was, now, late), "")

    def late(self, was: np.ndarray, now: np.ndarray) -> str:
        """How the late jobs differ of which clients keep the states; empty if they do not."""
        return next(self._late(was, now), "")

    def _of(self, was: Merge, now: Merge, late: tuple[np.ndarray, np.ndarray]) -> Iterator[str]:
        both = was, now
        yield from _fields("would have", *({name: getattr(one, name) for name in _MERGE} for one in both))
        yield from self._jobs(was.rows, now.rows, "take")
        yield from self._late(*late)
        for name in ("weight", "scale"):
            before, after = (getattr(one, f"{name}s") for one in both)
            if before != after:
                place = next(place for place, one in enumerate(after) if one != before[place])
                has = f"would have client {now.rows['client'][place]} with"
                yield from _fields(has, {name: before[place]}, {name: after[place]})
        yield from self._told(was.rows, now.rows)

    def _late(self, was: np.ndarray, now: np.ndarray) -> Iterator[str]:
        was, now = (rows[np.lexsort((rows["job"], rows["client"]))] for rows in (was, now))
        yield from self._jobs(was, now, "come after late work of")
        yield from self._told(was, now)

    def _jobs(self, was: np.ndarray, now: np.ndarray, does: str) -> Iterator[str]:
        """Other clients, or other work of them."""
        before, after = (Counter(rows["client"].tolist()) for rows in (was, now))
        missing, more = before - after, after - before
        if missing:
            told = f" in place of {_clients(missing)}" if more else ""
            first = f"would {does} {_clients(more)}" if more else f"would not {does} {_clients(missing)}"
            refused = (client for client in sorted(missing) if client in self._refused)
            why = next((f", since client {one} is refused: {self._refused[one]}" for one in refused), "")
            yield f"{first}{told}{why}"
        elif more:
            yield f"would also {does} {_clients(more)}"
        for place in np.flatnonzero(np.any([was[name] != now[name] for name in _JOB], axis=0)).tolist():
            old, new = ({words: rows[name][place] for name, words in _JOB.items()} for rows in (was, now))
            for one in (old, new):
                one["exchange"] = self._exchanges[one["exchange"]]
            yield from _fields(f"would have client {now['client'][place]} with", old, new)

    def _told(self, was: np.ndarray, now: np.ndarray) -> Iterator[str]:
        """What the server tells clients with their jobs."""
        each = zip(self._builders, self._plans, (was, now), strict=False)
        contexts = [map(builder.ctx, jobs_of(plan, rows)) for builder, plan, rows in each]
        for both in zip(*contexts, strict=True):
            before, after = (
                {"learning rate": one.lr, "share of steps": one.work, **one.settings} for one in both
            )
            yield from _fields(f"would have client {both[1].client} with", before, after)


def _fields(has: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The values that differ, in words."""
    for name in {**was, **now}:
        before, after = was.get(name, "none"), now.get(name, "none")
        if before != after:
            told = [f"{one:g}" if isinstance(one, float) else str(one) for one in (after, before)]
            yield f"{has} {name} {' instead of '.join(told)}"


def _builder(learning: Learning, facts: Facts) -> TaskBuilder:
    """Makes contexts of jobs; there are no data to train on."""
    federation = learning.federation
    counts = torch.from_numpy(federation.class_counts).float()
    counts = counts if len(counts) else torch.zeros(federation.clients, federation.spec.classes)
    return TaskBuilder(learning, facts, torch.device("cpu"), counts.unbind(), federation.samples.tolist())


def _clients(clients: Counter[int]) -> str:
    names = [str(client) for client in sorted(clients)]
    if len(names) == 1:
        return f"client {names[0]}"
    if len(names) > _NAMED + 1:
        return f"clients {', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"
    return f"clients {', '.join(names[:-1])} and {names[-1]}"
