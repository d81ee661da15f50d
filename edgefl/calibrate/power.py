"""The machine's power: at rest, with one core busy, and in training on all threads."""

import csv
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from edgefl.calibrate.energy import (
    LEAST_SAMPLES,
    Counters,
    EnergyLog,
    EnergySpan,
    Sensor,
    host_source,
    recording,
)
from edgefl.calibrate.measure import Session
from edgefl.calibrate.suites import ALL_THREADS, ONE_CORE
from edgefl.core.errors import EdgeflError, UserError, short
from edgefl.core.notes import note
from edgefl.core.units import parse
from edgefl.core.yamls import text_of


@dataclass(frozen=True)
class Powers:
    """The powers, in watts.

    Attributes:
        idle, single_core, active: None where unknown.
        what: what was measured, and how, in words.
        why: why ``idle`` and ``active`` are unknown; empty if they are known.
    """

    idle: float | None = None
    single_core: float | None = None
    active: float | None = None
    what: str = ""
    why: str = ""
    notes: tuple[str, ...] = ()

    @classmethod
    def read_off(cls, idle: str | None, active: str | None) -> "Powers | None":
        """What the user read off a meter, with units; None where nothing was.

        Raises:
            UserError: one of the two is missing or no power, or the first is above the second.
        """
        texts = {"--idle": idle, "--active": active}
        given = {option: text for option, text in texts.items() if text is not None}
        if not given:
            return None
        watts = {}
        for option, other in (("--idle", "--active"), ("--active", "--idle")):
            if option not in given:
                raise UserError(f"{other} needs {option}", where=other, hint="--idle 3W --active 9W")
            try:
                watts[option] = parse(given[option], "power")
            except ValueError as error:
                raise UserError(str(error), where=option) from None
        if watts["--active"] < watts["--idle"]:
            raise UserError(f"{active} in training is below {idle} at rest", where="--active")
        return cls(watts["--idle"], None, watts["--active"], "read off a meter by the user")


class Meter:
    """Measures power during a calibration, where something can.

    Args:
        log: a wattmeter's log, read when the calibration has run; the host's own sources by default.
        root: of the file system, for the host's sources.
        given: what is known already, in place of both.

    Raises:
        UserError: what the log has so far is wrong, or there is a log besides what is given.
    """

    def __init__(self, log: Path | None = None, root: Path = Path("/"), given: Powers | None = None) -> None:
        if given and log:
            raise UserError("--power-log and --idle exclude each other", where="--power-log")
        self._log, self._given = log, given
        self._source: Counters | Sensor | None = None
        self._why = ""
        self._found = EnergyLog()
        self._spans: Sequence[EnergySpan] = ()
        if given:
            return
        if log is None:
            self._source, self._why = host_source(root)
        elif log.exists():
            read_log(log)
        else:
            note(f"there is no {log} yet: it is read when everything has been measured")

    @contextmanager
    def open(self) -> Iterator[None]:
        """Records the host's source, if there is one, while it is open."""
        if self._source is None:
            yield
            return
        with recording(self._source) as self._found:
            yield

    def measure(self, session: Session) -> None:
        """Lets the machine rest, then work on one core and on all threads.

        Raises:
            RunError: a measuring process failed.
        """
        if self._log is None and self._source is None:
            return
        seconds, threads = session.effort.power_s, session.how.threads
        start_s = time.time()
        time.sleep(seconds)
        idle = EnergySpan(start_s, time.time())
        session.expect(2)
        one, every = session.worked(ONE_CORE, seconds, 1), session.worked(ALL_THREADS, seconds, threads)
        self._spans = idle, one, every

    def powers(self) -> Powers:
        if self._given:
            return self._given
        if not self._spans:
            return Powers(why=self._why)
        found, what = self._found, self._source.what if self._source else "the user's wattmeter"
        if self._log is not None:
            try:
                found = read_log(self._log)
            except EdgeflError as error:
                place = f" ({error.where})" if error.where else ""
                return Powers(why=f"the wattmeter's log cannot be used: {error.what}{place}")
        return _powers(found, self._spans, what)


def _powers(log: EnergyLog, spans: Sequence[EnergySpan], what: str) -> Powers:
    """The mean powers at rest, with one core busy, and in training."""
    for doing, span in zip(("at rest", "busy on one core", "busy on all threads"), spans, strict=True):
        if log.watts(span) is None:
            return Powers(
                why=f"too few samples while the machine was {doing}, {_clock(span.start_s)} to "
                f"{_clock(span.end_s)}: {log.samples(span)}, at least {LEAST_SAMPLES} are needed"
            )
    idle, single_core, active = (log.watts(span) for span in spans)
    if idle is None or single_core is None or active is None or active < idle:
        return Powers(why="the machine drew more at rest than in training: it was busy with other work")
    if idle <= single_core <= active:
        return Powers(idle, single_core, active, what)
    note = (
        f"power.single_core is left out: {single_core:.4g} W with one core busy is not between "
        f"{idle:.4g} W at rest and {active:.4g} W in training"
    )
    return Powers(idle, None, active, what, notes=(note,))


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%H:%M:%S UTC")


# Four hours of 100 samples a second.
_MOST_BYTES = 50_000_000
# More than any machine in one place draws.
_MOST_WATTS = 1e6


def read_log(path: Path) -> EnergyLog:
    """The energy over time of a wattmeter's log, which the user recorded while a calibration ran.

    A line is a time and watts; a first one that says so may be left out. A time is in seconds since the epoch
    or in ISO 8601, without an offset from UTC in local time. Its clock must agree with this machine's.

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
