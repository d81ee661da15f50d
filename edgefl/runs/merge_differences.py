"""How a merge differs from a recorded one, in words: what would make its result another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from edgefl.core.plan import Plan
from edgefl.planning.learning import Learning
from edgefl.runs.task_builder import Facts, TaskBuilder
from edgefl.world.needs import Merge, jobs_of

# So many clients are named.
_NAMED = 3
# What is alike in two merges whose results are the same, and in two of their jobs.
_MERGE = ("exchange", "round", "correction")
_JOB = {"exchange": "exchange", "nth": "jobs done", "version": "version", "steps": "steps", "round": "round"}


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
            refused = (self._refused[client] for client in sorted(missing) if client in self._refused)
            why = next((f", since client {one.client} is refused: {one}" for one in refused), "")
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
