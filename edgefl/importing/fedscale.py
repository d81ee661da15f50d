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

from edgefl.core.errors import UserError
from edgefl.core.poisson import Bools
from edgefl.core.units import show_bytes, show_count
from edgefl.importing.intervals import Gathered
from edgefl.importing.pickles import load
from edgefl.importing.trace import Trace, content_of, mapping_of, named, neither, source_of

CAPACITY, AVAILABILITY = "fedscale-capacity", "fedscale-availability"

_ORIGIN = "SymbioticLab/FedScale, Apache-2.0"
_KEYS = {CAPACITY: ("computation", "communication"), AVAILABILITY: ("active", "inactive", "finish_time")}

# What is possible: ms a sample and kbit/s; a link has at least 1 bit/s.
_LEAST, _MOST = (1e-6, 1e-3), (1e9, 1e9)


def read(path: Path) -> Trace:
    """A trace of either kind, by what its users have.

    Raises:
        UserError: the file is neither.
    """
    file = str(path)
    content = content_of(path)
    data = mapping_of(load(content, file), "a dict of users", file)
    first = next(iter(data.values()))
    for kind, keys in _KEYS.items():
        if isinstance(first, dict) and set(keys) <= first.keys():
            _check(data, keys, file)
            if kind == CAPACITY:
                return _capacity(data, path)
            _check_sharing(data, len(content), file)
            return _availability(data, path)
    raise neither(first, _KEYS.values(), file)


def _check(data: dict[Any, Any], keys: tuple[str, ...], file: str) -> None:
    wanted = set(keys)
    for user, entry in data.items():
        if not isinstance(entry, dict) or not wanted <= entry.keys():
            raise UserError(f"user {named(user)} must be a dict with {', '.join(keys)}", where=file)


def _check_sharing(data: dict[Any, Any], size: int, file: str) -> None:
    """Checks that users do not share lists, as which a small pickle can hold an enormous trace.

    Raises:
        UserError: there are more times than the pickle has bytes.
    """
    lists = (entry[key] for entry in data.values() for key in ("active", "inactive"))
    if sum(len(one) for one in lists if isinstance(one, list)) > size:
        raise UserError(f"users share lists: more times than the pickle's {show_bytes(size)}", where=file)


def _number(value: Any, user: Any, key: str, file: str) -> float:
    if type(value) not in {int, float}:
        raise UserError(f"{key} of user {named(user)} must be a number; got {named(value)}", where=file)
    return float(value)


def _capacity(data: dict[Any, Any], path: Path) -> Trace:
    file = str(path)
    rows = np.array(
        [[_number(entry[key], user, key, file) for key in _KEYS[CAPACITY]] for user, entry in data.items()]
    )
    usable: Bools = np.all((rows >= _LEAST) & (rows <= _MOST), axis=1)
    if not usable.any():
        raise UserError("no user has a possible computation and communication", where=file)
    left_out = int((~usable).sum())
    ids = tuple(str(user) for user, kept in zip(data, usable.tolist(), strict=True) if kept)
    ms, kbit_s = rows[usable].T
    rate_bps = kbit_s * 1e3
    return Trace(
        kind=CAPACITY,
        sources=(source_of(path, _ORIGIN),),
        ids=ids,
        slowdown=ms / np.median(ms),
        down_bps=rate_bps,
        up_bps=rate_bps,
        dropped=(f"{show_count(left_out, 'user')} without a possible speed and rate",) if left_out else (),
    )


def _availability(data: dict[Any, Any], path: Path) -> Trace:
    file = str(path)
    periods = Counter(
        _number(entry["finish_time"], user, "finish_time", file) for user, entry in data.items()
    )
    period_s, _ = max(periods.items(), key=lambda one: (one[1], one[0]))
    if not 0 < period_s < math.inf:
        raise UserError("finish_time must be positive and finite for most users", where=file)
    gathered, ids = Gathered(period_s), []
    for user, entry in data.items():
        if entry["finish_time"] != period_s:
            continue
        starts, ends = (_times(entry[key], user, key, file) for key in ("active", "inactive"))
        gathered.add(starts, ends)
        ids.append(str(user))
    others = len(data) - len(ids)
    dropped = [
        f"{show_count(others, 'user')} with another finish_time than most, {period_s:g} s",
        *gathered.dropped,
        "duration and model of each user",
    ][0 if others else 1 :]
    return Trace(
        kind=AVAILABILITY,
        sources=(source_of(path, _ORIGIN),),
        ids=tuple(ids),
        intervals=gathered.intervals(file),
        on_leave="check-at-end",
        read=tuple(gathered.read),
        dropped=tuple(dropped),
    )


def _times(value: Any, user: Any, key: str, file: str) -> list[float]:
    if not isinstance(value, list):
        raise UserError(f"{key} of user {named(user)} must be a list; got {named(value)}", where=file)
    return [_number(one, user, key, file) for one in value]
