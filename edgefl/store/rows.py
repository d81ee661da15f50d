"""What the store is given, as rows of its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgefl.core.clients import NAMED, Clients, Ints
from edgefl.core.corners import Corner
from edgefl.core.cost import Traced
from edgefl.core.event import ENDINGS, JOB, ServerEvent
from edgefl.core.plan import COLUMNS, Plan, Prices, Refusal


def state_file(job: int) -> str:
    """The name of the file with the state that a job wrote, or with its outcome; each in its own folder."""
    return f"{job:08d}.safetensors"


class SavedState(NamedTuple):
    """A client's state on disk: the job that wrote it, and its file's SHA-256."""

    job: int
    sha256: str


def plan_rows(plan: Plan, test_samples: Iterable[int]) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """What is known of a run before it starts: tables and rows of them."""
    clients = plan.clients
    yield "kinds", _kind_rows(clients.one_of_each_kind())
    kind, slowdown = clients.kind.tolist(), clients.slowdown.tolist()
    own = (range(len(clients)), kind, test_samples, slowdown, clients.admitted.astype(int).tolist())
    cells = (None if cell < 0 else cell for cell in clients.cell.tolist())
    users = (None if user == client else user for client, user in enumerate(clients.user.tolist()))
    yield "fleet", zip(*own, cells, users, strict=True)
    yield "cells", enumerate(clients.cells)
    refused = {int(clients.kind[refusal.client]): refusal for refusal in plan.refusals}
    yield "refused_kinds", [(kind, *_refusal_row(one)) for kind, one in refused.items()]
    for place, prices in enumerate(plan.prices):
        facts = (prices.at, prices.every, int(prices.everyone), int(prices.stateful))
        yield "exchanges", [(prices.exchange, place, *facts)]
        yield "prices", _price_rows(prices)
        for corner, one in zip(Corner, prices.corners or (), strict=False):
            yield "corner_prices", _price_rows(one, corner.value)
        if prices.traces:
            yield "traces", [(prices.exchange, Traced(prices.traces, prices.taken).written())]
        for model, trace in dict(zip(clients.models, prices.traces, strict=True)).items():
            for direction, parts in (("down", trace.down), ("up", trace.up)):
                key = prices.exchange, model, direction
                yield "payloads", [(*key, part, size) for part, size in parts.items()]
    if plan.server_work is not None:
        yield "server_work", [(name, one.written()) for name, one in plan.server_work.traces.items()]


def count_rows(counts: Ints) -> Iterator[tuple[int, int, int]]:
    """Rows of ``class_counts``, of (clients, classes) counts: those that are not 0."""
    clients, labels = np.nonzero(counts)
    return zip(clients.tolist(), labels.tolist(), counts[clients, labels].tolist(), strict=True)


def _price_rows(prices: Prices, *key: str) -> Iterator[tuple[Any, ...]]:
    """By kind. SQLite stores NaN as NULL, so an unknown number is read back as None."""
    values = zip(*(getattr(prices, name).tolist() for name in COLUMNS), strict=True)
    return ((prices.exchange, kind, *key, *row) for kind, row in enumerate(values))


def _kind_rows(kinds: Clients) -> Iterable[tuple[Any, ...]]:
    """Rows of a client of each kind."""
    named = [[getattr(kinds, f"{key}s")[place] for place in getattr(kinds, key)] for key in NAMED]
    return zip(kinds.kind.tolist(), *named, kinds.samples.tolist(), strict=True)


def _refusal_row(refusal: Refusal) -> tuple[Any, ...]:
    """A kind's row of one of its clients' refusals."""
    parts = json.dumps(dict(refusal.parts))
    return refusal.exchange, refusal.needs_bytes, refusal.has_bytes, parts, refusal.reason


def event_row(event: ServerEvent) -> tuple[Any, ...]:
    """A row of ``server_events``."""
    return *event[:2], str(event.kind), *event[3:]


def job_columns(rows: np.ndarray, exchanges: Sequence[str]) -> list[Any]:
    """Rows of ``JOB`` as the table's columns but for scalars: arrays and lists; -1 and NaN are NULL."""
    rows = rows[np.argsort(rows["job"])]
    columns: dict[str, Any] = {name: rows[name] for name in JOB.names or ()}
    columns["exchange"] = [exchanges[place] for place in rows["exchange"].tolist()]
    columns["ending"] = [_ENDINGS[number] for number in rows["ending"].tolist()]
    return list(columns.values())


_ENDINGS = [str(ending) for ending in ENDINGS]
