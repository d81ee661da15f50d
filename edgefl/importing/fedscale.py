"""FedScale's traces: pickles with the speed and the availability of each user.

Columns and units are those of the code that reads them (SymbioticLab/FedScale, Apache-2.0:
fedscale/cloud/internal/client_metadata.py, fedscale/cloud/client_manager.py and
fedscale/cloud/aggregation/aggregator.py)::

    client_device_capacity: {number: {'computation': ms, 'communication': kbit/s}}
    client_behave_trace: {number: {'active': [s], 'inactive': [s], 'finish_time': s, 'duration', 'model'}}

``computation`` is a forward pass of one sample. ``communication`` is the rate both ways; a kilobit is 1000
bits. The i-th interval lasts from active[i] to inactive[i]; all repeat after ``finish_time``.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from edgefl.core.errors import UserError
from edgefl.core.poisson import Bools
from edgefl.core.units import show_count
from edgefl.importing.intervals import Gathered
from edgefl.importing.pickles import load
from edgefl.importing.trace import RecordedUsers, content_of, source_of, users_of

CAPACITY, AVAILABILITY = "fedscale-capacity", "fedscale-availability"

_ORIGIN = "SymbioticLab/FedScale, Apache-2.0"
# What is possible: ms a sample and kbit/s; a link has at least 1 bit/s.
_LEAST, _MOST = (1e-6, 1e-3), (1e9, 1e9)


class _Capacity(TypedDict):
    computation: float
    communication: float


class _Availability(TypedDict):
    active: list[float]
    inactive: list[float]
    finish_time: float


def read(path: Path) -> RecordedUsers:
    """A trace of either kind, by what its users have.

    Raises:
        UserError: the file is neither.
    """
    kinds = {CAPACITY: _Capacity, AVAILABILITY: _Availability}
    kind, users = users_of(load(content_of(path), str(path)), kinds, str(path))
    return _capacity(users, path) if kind == CAPACITY else _availability(users, path)


def _capacity(users: dict[Any, _Capacity], path: Path) -> RecordedUsers:
    rows = np.array([(user["computation"], user["communication"]) for user in users.values()])
    usable: Bools = np.all((rows >= _LEAST) & (rows <= _MOST), axis=1)
    if not usable.any():
        raise UserError("no user has a possible computation and communication", where=str(path))
    left_out = int((~usable).sum())
    ids = tuple(str(user) for user, kept in zip(users, usable.tolist(), strict=True) if kept)
    ms, kbit_s = rows[usable].T
    rate_bps = kbit_s * 1e3
    return RecordedUsers(
        kind=CAPACITY,
        sources=(source_of(path, _ORIGIN),),
        ids=ids,
        slowdown=ms / np.median(ms),
        down_bps=rate_bps,
        up_bps=rate_bps,
        dropped=(f"{show_count(left_out, 'user')} without a possible speed and rate",) if left_out else (),
    )


def _availability(users: dict[Any, _Availability], path: Path) -> RecordedUsers:
    periods = Counter(user["finish_time"] for user in users.values())
    period_s, _ = max(periods.items(), key=lambda one: (one[1], one[0]))
    if not 0 < period_s < math.inf:
        raise UserError("finish_time must be positive and finite for most users", where=str(path))
    kept = {number: user for number, user in users.items() if user["finish_time"] == period_s}
    gathered = Gathered(period_s)
    for user in kept.values():
        gathered.add(user["active"], user["inactive"])
    others = len(users) - len(kept)
    other = f"{show_count(others, 'user')} with another finish_time than most, {period_s:g} s"
    return RecordedUsers(
        kind=AVAILABILITY,
        sources=(source_of(path, _ORIGIN),),
        ids=tuple(map(str, kept)),
        intervals=gathered.intervals(str(path)),
        on_leave="check-at-end",
        read=tuple(gathered.read),
        dropped=(*([other] if others else []), *gathered.dropped, "duration and model of each user"),
    )
