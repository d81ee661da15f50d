"""FLASH's traces: JSON with what phones did, and how fast their Wi-Fi was.

Columns and units are those of the code that reads them (PKU-Chengxu/FLASH: models/timer.py and
models/device.py)::

    state_traces.json: {number: {"guid", "model", "messages": "YYYY-mm-dd HH:MM:SS<TAB>state, ..."}}
    speed_distri.json: {guid: {"down_u", "down_sigma", "up_u", "up_sigma"}}, kB/s, a kilobyte being 1000 bytes

States are battery_charged_on and _off, wifi, 2g, 3g, 4g, 5g and unknown, screen_on, _off, _lock and _unlock,
and the battery's level (``85%``); there is a line for each. There, a phone is ready while it is locked, on
Wi-Fi and on its charger. Times are those of a wall clock, without a zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import TypedDict

from edgefl.core.availability import DAY_S
from edgefl.core.errors import UserError, nearest
from edgefl.core.units import show_count
from edgefl.importing.intervals import Gathered
from edgefl.importing.trace import RecordedUsers, json_of, source_of, users_of

STATES, SPEEDS = "flash-states", "flash-speeds"
READY = ("locked", "wifi", "charged")

_ORIGIN = "PKU-Chengxu/FLASH; the licence of its data is not stated"
# What a state says of conditions.
_SAYS: dict[str, dict[str, bool]] = {
    "battery_charged_on": {"charged": True},
    "battery_charged_off": {"charged": False},
    "wifi": {"wifi": True, "online": True},
    **{network: {"wifi": False, "online": True} for network in ("2g", "3g", "4g", "5g")},
    "unknown": {"wifi": False, "online": False},
    "screen_lock": {"locked": True},
    "screen_unlock": {"locked": False},
    "screen_on": {"screen-off": False},
    "screen_off": {"screen-off": True},
}
CONDITIONS = ("charged", "locked", "online", "screen-off", "wifi")
_BYTES, _BITS = 1000, 8
_TIME = len("YYYY-mm-dd HH:MM:SS")


# What is possible, in kB/s; a link has at least 1 bit/s.
_Rate = Annotated[float, Field(ge=1e-3, le=1e9, allow_inf_nan=False)]
_Spread = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class _Said(TypedDict):
    guid: str
    messages: str


class _Speed(TypedDict):
    down_u: _Rate
    down_sigma: _Spread
    up_u: _Rate
    up_sigma: _Spread


def conditions_of(text: str) -> tuple[str, ...]:
    """Conditions from a list such as "locked,wifi,charged".

    Raises:
        UserError: one is unknown, or there are none.
    """
    found = tuple(dict.fromkeys(word.strip().lower() for word in text.split(",") if word.strip()))
    for word in found:
        if word not in CONDITIONS:
            raise UserError(f"unknown condition {word!r}", where="--ready", hint=nearest(word, CONDITIONS))
    if not found:
        raise UserError("give at least one condition", where="--ready", hint=", ".join(CONDITIONS))
    return found


def read(path: Path, ready: Sequence[str]) -> RecordedUsers:
    """A trace of either kind, by what its users have.

    Args:
        path: the file.
        ready: the conditions under which a phone is available, of ``CONDITIONS``.

    Raises:
        UserError: the file is neither.
    """
    kind, users = users_of(json_of(path), {STATES: _Said, SPEEDS: _Speed}, str(path))
    return _states(users, path, ready) if kind == STATES else _speeds(users, path)


def _speeds(users: dict[str, _Speed], path: Path) -> RecordedUsers:
    rows = np.array(
        [[user["down_u"], user["down_sigma"], user["up_u"], user["up_sigma"]] for user in users.values()]
    )
    down, down_sigma, up, up_sigma = rows.T
    spread = f"{np.median(down_sigma / down):.2g} down and {np.median(up_sigma / up):.2g} up"
    return RecordedUsers(
        kind=SPEEDS,
        sources=(source_of(path, _ORIGIN),),
        ids=tuple(users),
        identified=True,
        down_bps=down * _BYTES * _BITS,
        up_bps=up * _BYTES * _BITS,
        dropped=(f"the spread of each user's rates: coefficients of variation of {spread} in the median",),
    )


class _Phone(NamedTuple):
    """What is known of one phone.

    Attributes:
        guid: its identifier.
        messages: times and states, in the order of time.
        skipped: how many messages are not known.
        levels: how many were levels of the battery.
    """

    guid: str
    messages: list[tuple[datetime, str]]
    skipped: int
    levels: int


def _states(users: dict[str, _Said], path: Path, ready: Sequence[str]) -> RecordedUsers:
    phones = [_phone(user) for user in users.values()]
    kept = [phone for phone in phones if phone.messages and phone.messages[0][0] < phone.messages[-1][0]]
    if not kept:
        raise UserError("no user has known messages at two different times", where=str(path))
    start = datetime.combine(min(phone.messages[0][0] for phone in kept).date(), time())
    last = max(phone.messages[-1][0] for phone in kept)
    days = (last - start) // timedelta(days=1) + 1
    gathered, cut = Gathered(days * DAY_S), 0
    for phone in kept:
        starts, ends = _ready(phone, start, ready)
        cut += len(starts) > len(ends)
        gathered.add(starts, [*ends, _seconds(phone.messages[-1][0], start)][: len(starts)])
    spans = [(phone.messages[-1][0] - phone.messages[0][0]) / timedelta(days=1) for phone in kept]
    zero = f"0 s is {start:%Y-%m-%d %H:%M:%S} of the phones' clocks, whose zones are not known"
    recorded = f"of which the median user recorded {np.median(spans):.2g}"
    return RecordedUsers(
        kind=STATES,
        sources=(source_of(path, _ORIGIN),),
        ids=tuple(phone.guid for phone in kept),
        identified=True,
        intervals=gathered.intervals(str(path)),
        on_leave="pause",
        read=(
            f"ready means: {', '.join(ready)}; what a user has not reported yet counts as not ready",
            f"{zero}; the period is {show_count(days, 'day')}, {recorded}",
            *((f"{show_count(cut, 'user')} still ready at the last message: until then",) if cut else ()),
            *gathered.read,
        ),
        dropped=(*_lost(phones, len(kept)), "the model of each phone", *gathered.dropped),
    )


def _lost(phones: Sequence[_Phone], kept: int) -> Iterator[str]:
    """What of the messages is lost, a sentence each."""
    if silent := len(phones) - kept:
        yield f"{show_count(silent, 'user')} without messages of two times"
    if skipped := sum(phone.skipped for phone in phones):
        yield f"{show_count(skipped, 'message')} of an unknown state or time"
    if levels := sum(phone.levels for phone in phones):
        yield f"{show_count(levels, 'level')} of batteries"


def _phone(user: _Said) -> _Phone:
    found: list[tuple[datetime, str]] = []
    skipped = levels = 0
    for line in user["messages"].splitlines():
        when, _, state = (part.strip() for part in line.partition("\t"))
        if state.endswith("%"):
            levels += 1
            state = ""
        elif state.lower() not in _SAYS:
            skipped += bool(line.strip())
            continue
        try:
            # The length leaves out zones and fractions.
            told = datetime.fromisoformat(when if len(when) == _TIME else "")
        except ValueError:
            skipped += 1
            continue
        found.append((told, state.lower()))
    # Stable: messages of one time stay as they are.
    found.sort(key=lambda message: message[0])
    return _Phone(user["guid"], found, skipped, levels)


def _ready(phone: _Phone, start: datetime, ready: Sequence[str]) -> tuple[list[float], list[float]]:
    """When a phone becomes ready and unready; the last end is missing if it still is."""
    known: dict[str, bool] = {}
    starts: list[float] = []
    ends: list[float] = []
    for when, state in phone.messages:
        known.update(_SAYS.get(state, {}))
        now = all(known.get(condition, False) for condition in ready)
        if now != (len(starts) > len(ends)):
            (starts if now else ends).append(_seconds(when, start))
    return starts, ends


def _seconds(when: datetime, start: datetime) -> float:
    return (when - start).total_seconds()
