"""A wattmeter's log: a CSV file of times and watts that the user recorded while a calibration ran.

    time,watts
    2026-11-22T08:00:00.0Z,3.1
    2026-11-22T08:00:01.0Z,3.2

The first line may be left out. A time is in seconds since the epoch or in ISO 8601; without an offset from
UTC it is this machine's local time. The wattmeter's clock must agree with this machine's.
"""

from __future__ import annotations

import csv
import math
from datetime import datetime
from pathlib import Path

from edgefl.calibrate.energy import EnergyLog
from edgefl.core.errors import UserError, short
from edgefl.core.yamls import text_of

# Four hours of 100 samples a second.
_MOST_BYTES = 50_000_000
# More than any machine in one place draws.
_MOST_WATTS = 1e6


def read_log(path: Path) -> EnergyLog:
    """The energy over time of a wattmeter's log.

    Raises:
        UserError: it cannot be read, or a line of it is wrong.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path.name} is not a file", where=str(path))
    lines = csv.reader(text_of(path, _MOST_BYTES).splitlines())
    times_s: list[float] = []
    watts: list[float] = []
    try:
        for fields in lines:
            if not any(map(str.strip, fields)) or (lines.line_num == 1 and _is_head(fields)):
                continue
            time_s, power = _sample(fields, times_s[-1] if times_s else -math.inf)
            times_s.append(time_s)
            watts.append(power)
    except (ValueError, csv.Error) as error:
        raise UserError(str(error), where=f"{path}:{lines.line_num}", hint=_FORM) from None
    if not times_s:
        raise UserError("there are no samples", where=str(path), hint=_FORM)
    return EnergyLog.of_power(times_s, watts)


_FORM = "each line is a time and watts, such as 2026-11-22T08:00:00Z,3.1 or 1795334400,3.1"


def _is_head(fields: list[str]) -> bool:
    return [field.strip().lower() for field in fields] == ["time", "watts"]


def _sample(fields: list[str], after_s: float) -> tuple[float, float]:
    """A line's time in seconds since the epoch, and its watts.

    Raises:
        ValueError: they are no such, or the time is not later than ``after_s``.
    """
    if len(fields) != 2:  # noqa: PLR2004 - time and watts
        raise ValueError(f"{short(','.join(fields))!r} must be a time and watts")
    time_word, power_word = (field.strip() for field in fields)
    try:
        power = float(power_word)
    except ValueError:
        raise ValueError(f"{short(power_word)!r} must be watts") from None
    if not 0 <= power <= _MOST_WATTS:
        raise ValueError(f"{short(power_word)} W must be between 0 and {_MOST_WATTS:,.0f}")
    time_s = _seconds(time_word)
    if time_s <= after_s:
        raise ValueError(f"{short(time_word)!r} is not later than the time before it")
    return time_s, power


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        try:
            seconds = datetime.fromisoformat(word).timestamp()
        except (ValueError, OverflowError, OSError):
            raise ValueError(f"{short(word)!r} must be seconds since the epoch or an ISO 8601 time") from None
    if not math.isfinite(seconds):
        raise ValueError(f"{short(word)!r} must be a finite time")
    return seconds
