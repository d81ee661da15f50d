"""What the store is given, as rows of its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from edgefl.core.event import ENDINGS, JOULES
from edgefl.core.plan import NAMED, Clients, Refusal
from edgefl.store.schema import STORED


def state_file(job: int) -> str:
    """The name, in the folder ``states``, of the file with the state that a job wrote."""
    return f"{job:08d}.safetensors"


class SavedState(NamedTuple):
    """A client's state on disk: the job that wrote it, and its file's SHA-256."""

    job: int
    sha256: str


def state_row(client: int, state: SavedState) -> tuple[Any, ...]:
    """A row of ``states``."""
    return client, state.job, f"states/{state_file(state.job)}", state.sha256


def kind_rows(kinds: Clients) -> Iterable[tuple[Any, ...]]:
    """Rows of a client of each kind."""
    named = [[getattr(kinds, f"{key}s")[place] for place in getattr(kinds, key)] for key in NAMED]
    return zip(kinds.kind.tolist(), *named, kinds.samples.tolist(), strict=True)


def refusal_row(refusal: Refusal) -> tuple[Any, ...]:
    """A kind's row of one of its clients' refusals."""
    parts = json.dumps(dict(refusal.parts))
    return refusal.exchange, refusal.needs_bytes, refusal.has_bytes, parts, refusal.reason


def job_columns(rows: np.ndarray, exchanges: Sequence[str]) -> dict[str, Any]:
    """Rows of ``JOB`` as columns of the table, without scalars; texts as lists."""
    order = np.argsort(rows["job"])
    columns: dict[str, Any] = {name: rows[name][order] for name in _JOB_COLUMNS}
    columns["exchange"] = [exchanges[place] for place in columns["exchange"].tolist()]
    columns["ending"] = [_ENDINGS[number] for number in columns["ending"].tolist()]
    return columns


# In the order of the table; the last one, scalars, comes after training.
_JOB_COLUMNS = (
    "job", "client", "exchange", "round", "version", "steps",
    "dispatched_s", "received_s", "worked_s", "arrived_s", "ended_s", "dispatched_turn", "ended_turn",
    "ending", "into_version", "receive_s", "work_s", "transmit_s", "down_bytes", "up_bytes", "flops", *JOULES,
)  # fmt: skip
INSERT_JOB = f"INSERT INTO jobs VALUES ({', '.join('?' * len(STORED['jobs']))})"  # noqa: S608 - our own names
_ENDINGS = [str(ending) for ending in ENDINGS]
