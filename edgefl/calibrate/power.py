"""The machine's power: at rest, with one core busy, and in training on all threads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from edgefl.calibrate.energy import LEAST_SAMPLES, EnergyLog, EnergySource, EnergySpan, host_source, recording
from edgefl.calibrate.measure import Session
from edgefl.calibrate.suites import ALL_THREADS, ONE_CORE
from edgefl.calibrate.wattmeter import read_log
from edgefl.core.errors import EdgeflError, UserError
from edgefl.core.notes import note
from edgefl.core.units import parse


class Spans(NamedTuple):
    """When the machine did what."""

    idle: EnergySpan
    single_core: EnergySpan
    active: EnergySpan


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
    def read_off(cls, idle: str | None, active: str | None) -> Powers | None:
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
        self._source: EnergySource | None = None
        self._why = ""
        self._found = EnergyLog()
        self._spans: Spans | None = None
        if given:
            return
        if log is None:
            self._source, self._why = host_source(root)
        elif log.exists():
            read_log(log)
        else:
            note(f"there is no {log} yet: it is read when everything has been measured")

    @property
    def measures(self) -> bool:
        """Whether there is anything to measure with."""
        return self._log is not None or self._source is not None

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
        if not self.measures:
            return
        seconds, threads = session.effort.power_s, session.how.threads
        start_s = time.time()
        time.sleep(seconds)
        idle = EnergySpan(start_s, time.time())
        session.expect(2)
        self._spans = Spans(
            idle, session.worked(ONE_CORE, seconds, 1), session.worked(ALL_THREADS, seconds, threads)
        )

    def powers(self) -> Powers:
        if self._given:
            return self._given
        if self._spans is None:
            return Powers(why=self._why)
        found, what = self._found, self._source.what if self._source else "the user's wattmeter"
        if self._log is not None:
            try:
                found = read_log(self._log)
            except EdgeflError as error:
                place = f" ({error.where})" if error.where else ""
                return Powers(why=f"the wattmeter's log cannot be used: {error.what}{place}")
        return _powers(found, self._spans, what)


def _powers(log: EnergyLog, spans: Spans, what: str) -> Powers:
    """The mean powers of the spans."""
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
