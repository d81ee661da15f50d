"""FLASH's traces: JSON with what phones did, and how fast their Wi-Fi was.

Columns and units are those of the code that reads them (PKU-Chengxu/FLASH: models/timer.py and
models/device.py)::

    state_traces.json: {number: {"guid", "model", "messages": "YYYY-mm-dd HH:MM:SS<TAB>state, ..."}}
    speed_distri.json: {guid: {"down_u", "down_sigma", "up_u", "up_sigma"}}, kB/s, a kilobyte being 1000 bytes

States are battery_charged_on and _off, wifi, 2g, 3g, 4g, 5g and unknown, screen_on, _off, _lock and _unlock,
and the battery's level (``85%``); there is a line for each. There, a phone is ready while it is locked, on
Wi-Fi and on its charger. Times are those of a wall clock, without a zone.
"""

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field
from pydantic_core import from_json
from typing_extensions import TypedDict

from edgefl.core.errors import UserError, nearest
from edgefl.core.units import show_count
from edgefl.importing.trace import RecordedUsers, Spans, merged, source_of, told, users_of

STATES, SPEEDS = "flash-states", "flash-speeds"

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
_BITS = 8 * 1000
_DAY = timedelta(days=1)

# What is possible, in kB/s; a link has at least 1 bit/s.
_Rate = Annotated[float, Field(ge=1e-3, le=1e9, allow_inf_nan=False)]
_Spread = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
_Messages = list[tuple[datetime, str]]


class _Said(TypedDict):
    guid: str
    messages: str


class _Speed(TypedDict):
    down_u: _Rate
    down_sigma: _Spread
    up_u: _Rate
    up_sigma: _Spread


def read(path: Path, ready: str | None) -> RecordedUsers:
    """A trace of either kind, by what its users have; ``ready`` says when phones are available."""
    ready = "locked,wifi,charged" if ready is None else ready
    conditions = [word.strip().lower() for word in ready.split(",")]
    for word in conditions:
        if word not in CONDITIONS:
            raise UserError(f"unknown condition {word!r}", where="--ready", hint=nearest(word, CONDITIONS))
    kind, users = users_of(path, from_json, {STATES: _Said, SPEEDS: _Speed})
    return _states(users, path, conditions) if kind == STATES else _speeds(users, path)


def _speeds(users: dict[str, _Speed], path: Path) -> RecordedUsers:
    rows = [(user["down_u"], user["down_sigma"], user["up_u"], user["up_sigma"]) for user in users.values()]
    down, down_sigma, up, up_sigma = np.array(rows).T
    spread = f"{np.median(down_sigma / down):.2g} down and {np.median(up_sigma / up):.2g} up"
    return RecordedUsers(
        kind=SPEEDS,
        sources=(source_of(path, _ORIGIN),),
        ids=list(users),
        columns={"down": (down * _BITS).tolist(), "up": (up * _BITS).tolist()},
        dropped=(f"the spread of each user's rates: coefficients of variation of {spread} in the median",),
    )


def _states(users: dict[str, _Said], path: Path, ready: Sequence[str]) -> RecordedUsers:
    said = [(user["guid"], _said(user["messages"])) for user in users.values()]
    phones = [(guid, messages) for guid, messages in said if messages and messages[0][0] < messages[-1][0]]
    if not phones:
        raise UserError("no user has messages at two different times", where=str(path))
    start = datetime.combine(min(messages[0][0] for _, messages in phones).date(), time())
    days = (max(messages[-1][0] for _, messages in phones) - start) // _DAY + 1
    spans = [_ready(messages, start, ready) for _, messages in phones]
    if not any(spans):
        raise UserError("no user is ever available", where=str(path))
    recorded = np.median([(messages[-1][0] - messages[0][0]) / _DAY for _, messages in phones])
    silent = len(said) - len(phones)
    other = sum(len(user["messages"].splitlines()) for user in users.values())
    other -= sum(state in _SAYS for _, messages in said for _, state in messages)
    return RecordedUsers(
        kind=STATES,
        sources=(source_of(path, _ORIGIN),),
        ids=[guid for guid, _ in phones],
        columns={"availability": spans},
        repeat_s=days * _DAY.total_seconds(),
        on_leave="pause",
        read=(
            f"ready means: {', '.join(ready)}; what a user has not reported yet counts as not ready",
            f"0 s is {start:%Y-%m-%d %H:%M:%S} of the phones' clocks, whose zones are not known",
            f"the period is {show_count(days, 'day')}, of which the median user recorded {recorded:.2g}",
        ),
        dropped=[
            *told((silent, "user", "without messages of two times")),
            *told((other, "message", "of another state or time")),
            "the model of each phone",
        ],
    )


def _said(text: str) -> _Messages:
    """Messages with a time, in its order, those of one time in theirs."""
    found = []
    for line in text.splitlines():
        when, _, state = (part.strip() for part in line.partition("\t"))
        try:
            # The length leaves out zones and fractions.
            is_whole = len(when) == len("YYYY-mm-dd HH:MM:SS")
            found.append((datetime.fromisoformat(when if is_whole else ""), state.lower()))
        except ValueError:
            continue
    return sorted(found, key=lambda message: message[0])


def _ready(messages: _Messages, start: datetime, ready: Sequence[str]) -> Spans:
    """When a phone is ready, in seconds from ``start``."""
    known: dict[str, bool] = {}
    spans = []
    for (when, state), (until, _) in pairwise(messages):
        known.update(_SAYS.get(state, {}))
        if all(known.get(condition) for condition in ready):
            spans.append(((when - start).total_seconds(), (until - start).total_seconds()))
    return merged(spans)
