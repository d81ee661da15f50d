"""FedScale's traces: pickles with the speed and the availability of each user.

Columns and units are those of the code that reads them (SymbioticLab/FedScale, Apache-2.0:
fedscale/cloud/internal/client_metadata.py, fedscale/cloud/client_manager.py and
fedscale/cloud/aggregation/aggregator.py)::

    client_device_capacity: {number: {'computation': ms, 'communication': kbit/s}}
    client_behave_trace: {number: {'active': [s], 'inactive': [s], 'finish_time': s, 'duration', 'model'}}

``computation`` is a forward pass of one sample. ``communication`` is the rate both ways; a kilobit is 1000
bits. The i-th interval lasts from active[i] to inactive[i]; all repeat after ``finish_time``.
"""

import pickle
from collections import Counter
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from edgefl.core.arrays import Bools
from edgefl.core.errors import UserError, short
from edgefl.importing.trace import RecordedUsers, merged, source_of, told, users_of

CAPACITY, AVAILABILITY = "fedscale-capacity", "fedscale-availability"

_ORIGIN = "SymbioticLab/FedScale, Apache-2.0"
# What is possible: ms a sample and kbit/s; a link has at least 1 bit/s.
_LEAST, _MOST = (1e-6, 1e-3), (1e9, 1e9)
_Time = Annotated[float, Field(allow_inf_nan=False)]


class _Capacity(TypedDict):
    computation: float
    communication: float


class _Availability(TypedDict):
    active: list[_Time]
    inactive: list[_Time]
    finish_time: Annotated[_Time, Field(gt=0)]


class _Plain(pickle.Unpickler):
    """Plain data alone: a pickle is a program, and without names there is no function that it can call."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise UserError(f"the pickle asks for {short(f'{module}.{name}')}")


def unpickled(content: bytes) -> Any:
    """The plain data of a pickle; nothing in it is executed, and all else is a ``UserError``."""
    try:
        return _Plain(BytesIO(content), encoding="utf-8").load()
    except Exception as error:  # of a damaged program anything can follow
        what = error.what if isinstance(error, UserError) else "not a pickle, or damaged or cut off"
        raise UserError(what, hint="only plain data are read") from error


def read(path: Path) -> RecordedUsers:
    """A trace of either kind, by what its users have."""
    kind, users = users_of(path, unpickled, {CAPACITY: _Capacity, AVAILABILITY: _Availability})
    return _capacity(users, path) if kind == CAPACITY else _availability(users, path)


def _capacity(users: dict[Any, _Capacity], path: Path) -> RecordedUsers:
    rows = np.array([(user["computation"], user["communication"]) for user in users.values()])
    usable: Bools = np.all((rows >= _LEAST) & (rows <= _MOST), axis=1)
    if not usable.any():
        raise UserError("no user has a possible computation and communication", where=str(path))
    ms, kbit_s = rows[usable].T
    rate_bps = (kbit_s * 1e3).tolist()
    left_out = int((~usable).sum())
    return RecordedUsers(
        kind=CAPACITY,
        sources=(source_of(path, _ORIGIN),),
        columns={"slowdown": (ms / np.median(ms)).tolist(), "down": rate_bps, "up": rate_bps},
        dropped=told((left_out, "user", "without a possible speed and rate")),
    )


def _availability(users: dict[Any, _Availability], path: Path) -> RecordedUsers:
    periods = Counter(user["finish_time"] for user in users.values())
    period_s = max(periods, key=lambda one: (periods[one], one))
    kept = [user for user in users.values() if user["finish_time"] == period_s]
    spans, ongoing, odd = [], 0, 0
    for user in kept:
        ends = user["inactive"][: len(user["active"])]
        ongoing += len(user["active"]) - len(ends)
        pairs = list(zip_longest(user["active"], ends, fillvalue=period_s))
        odd += sum(not 0 <= start < end <= period_s for start, end in pairs)
        spans.append(merged((max(start, 0.0), min(end, period_s)) for start, end in pairs))
    if not any(spans):
        raise UserError("no user is ever available", where=str(path))
    others, never = len(users) - len(kept), sum(not one for one in spans)
    return RecordedUsers(
        kind=AVAILABILITY,
        sources=(source_of(path, _ORIGIN),),
        columns={"availability": spans},
        repeat_s=period_s,
        on_leave="check-at-end",
        read=told(
            (ongoing, "interval", "without an end: until the end of the period"),
            (never, "user", "never available"),
        ),
        dropped=[
            *told((others, "user", f"with another finish_time than most, {period_s:g} s")),
            *told((odd, "interval", "that are empty, or as far as they are not in the period")),
            "duration and model of each user",
        ],
    )
