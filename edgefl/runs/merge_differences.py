"""How a merge differs from a recorded one, in words: what would make its result another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch

from edgefl.core.plan import Plan
from edgefl.planning.learning import Learning
from edgefl.protocol import Ctx
from edgefl.runs.task_builder import Facts, TaskBuilder
from edgefl.world.needs import Merge, jobs_of

# So many clients are named.
_NAMED = 3
# What is alike in two jobs whose results are the same, but for the versions that they began from.
_SAME = ("client", "exchange", "nth", "version", "steps", "round")


class Differences:
    """Compares the needs of a recorded run with those of its replay."""

    def __init__(self, recorded: Plan, plan: Plan, learning: Learning) -> None:
        """Takes the plans of both, and what is learned in both."""
        self._exchanges = [prices.exchange for prices in plan.prices]
        self._refused = {refusal.client: refusal for refusal in plan.refusals}
        self._plans = recorded, plan
        facts = Facts.of(recorded), Facts.of(plan)
        settings = any(each.settings for method in learning.methods for each in method.exchanges)
        # Only then may the server tell clients something else with equal jobs.
        told = facts[0].rounds != facts[1].rounds or (settings and facts[0].devices != facts[1].devices)
        self._builders = [_builder(learning, each) for each in facts] if told else []

    def of(self, was: Merge, now: Merge, late: tuple[np.ndarray, np.ndarray]) -> str:
        """What is the first to differ between two merges of one version; empty if nothing does.

        Args:
            was: the recorded one.
            now: the replay's.
            late: of both, the jobs since the merge before that were late and whose clients keep their states.
        """
        return next(self._of(was, now, late), "")

    def _of(self, was: Merge, now: Merge, late: tuple[np.ndarray, np.ndarray]) -> Iterator[str]:
        if was.exchange != now.exchange:
            yield f"would be one of {now.exchange!r} instead of {was.exchange!r}"
        if was.round != now.round:
            yield f"would come in round {now.round} instead of round {was.round}"
        yield from self._clients(was.rows, now.rows, "take")
        yield from self._jobs(was.rows, now.rows)
        yield from self._late(*late)
        if was.correction != now.correction:
            yield f"would re-express stale updates by {now.correction!r} instead of {was.correction!r}"
        for name, before, after in (
            ("weight", was.weights, now.weights),
            ("scale", was.scales, now.scales),
        ):
            yield from _factors(name, now.rows["client"].tolist(), before, after)
        yield from self._told(was.rows, now.rows)

    def late(self, was: np.ndarray, now: np.ndarray) -> str:
        """How the late jobs differ of which clients keep the states; empty if they do not."""
        return next(self._late(was, now), "")

    def _late(self, was: np.ndarray, now: np.ndarray) -> Iterator[str]:
        was, now = (rows[np.lexsort((rows["job"], rows["client"]))] for rows in (was, now))
        yield from self._clients(was, now, "come after late work of")
        yield from self._jobs(was, now)
        yield from self._told(was, now)

    def _clients(self, was: np.ndarray, now: np.ndarray, does: str) -> Iterator[str]:
        before, after = (Counter(rows["client"].tolist()) for rows in (was, now))
        missing, more = before - after, after - before
        if missing:
            told = f" in place of {_clients(missing)}" if more else ""
            first = f"would {does} {_clients(more)}" if more else f"would not {does} {_clients(missing)}"
            yield f"{first}{told}{self._why(missing)}"
        elif more:
            yield f"would also {does} {_clients(more)}"

    def _why(self, missing: Iterable[int]) -> str:
        """Which of the clients that are missing is refused here, and why; empty if none is."""
        refused = next((client for client in sorted(missing) if client in self._refused), None)
        return "" if refused is None else f", since client {refused} is refused: {self._refused[refused]}"

    def _jobs(self, was: np.ndarray, now: np.ndarray) -> Iterator[str]:
        for name in _SAME:
            differ = np.flatnonzero(was[name] != now[name])
            if len(differ):
                place = int(differ[0])
                yield self._job(name, int(now["client"][place]), int(was[name][place]), int(now[name][place]))

    def _job(self, name: str, client: int, was: int, now: int) -> str:
        if name == "exchange":
            ours, theirs = self._exchanges[now], self._exchanges[was]
            return f"would take client {client}'s {ours!r} instead of its {theirs!r}"
        if name == "nth":
            jobs = f"{now} {'job' if now == 1 else 'jobs'}"
            return f"would take client {client}'s work after {jobs} of its exchange instead of {was}"
        does = {"version": "begin from version", "round": "begin in round", "steps": "take"}[name]
        was, now = (was + 1, now + 1) if name == "round" else (was, now)
        steps = "" if name != "steps" else " step" if now == 1 else " steps"
        return f"would have client {client} {does} {now:,}{steps} instead of {was:,}"

    def _told(self, was: np.ndarray, now: np.ndarray) -> Iterator[str]:
        """What the server tells clients with their jobs."""
        each = zip(self._builders, self._plans, (was, now), strict=False)
        contexts = [map(builder.ctx, jobs_of(plan, rows)) for builder, plan, rows in each]
        for before, after in zip(*contexts, strict=True):
            for name, number, instead in _numbers(before, after):
                yield f"would have client {after.client} train with {name} {number:g} instead of {instead:g}"


def _builder(learning: Learning, facts: Facts) -> TaskBuilder:
    """Makes contexts of jobs; there are no data to train on."""
    federation = learning.federation
    counts = torch.from_numpy(federation.class_counts).float()
    counts = counts if len(counts) else torch.zeros(federation.clients, federation.spec.classes)
    return TaskBuilder(learning, facts, torch.device("cpu"), counts.unbind(), federation.samples.tolist())


def _numbers(was: Ctx, now: Ctx) -> Iterator[tuple[str, float, float]]:
    """What differs between two contexts: its name, its value now and before."""
    if was.lr != now.lr:
        yield "the learning rate", now.lr, was.lr
    if was.work != now.work:
        yield "a share of all steps of", now.work, was.work
    for name in {**was.settings, **now.settings}:
        values = [float(each.settings.get(name, np.nan)) for each in (now, was)]
        if values[0] != values[1]:
            yield name, values[0], values[1]


def _factors(name: str, clients: Sequence[int], was: Sequence[float], now: Sequence[float]) -> Iterator[str]:
    for client, before, after in zip(clients, was, now, strict=True):
        if before != after:
            yield f"would count client {client}'s update with the {name} {after:g} instead of {before:g}"


def _clients(clients: Counter[int]) -> str:
    names = [str(client) for client in sorted(clients)]
    if len(names) == 1:
        return f"client {names[0]}"
    if len(names) > _NAMED + 1:
        return f"clients {', '.join(names[:_NAMED])} and {len(names) - _NAMED} others"
    return f"clients {', '.join(names[:-1])} and {names[-1]}"
