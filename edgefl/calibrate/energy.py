"""Energy over time: from the host's own counters and sensors, or from a wattmeter's log.

Counters and sensors are read by a thread of the process that waits for the measuring ones. Whatever the
source, energy is a sum that grows with wall time, and the power of a workload is its slope between the
workload's start and end.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import numpy as np

POWERCAP = "sys/class/powercap"
HWMON = "sys/class/hwmon"
LEAST_SAMPLES = 3
_EVERY_S = 0.05
# The rails that supply a whole Jetson module (rbonghi/jetson_stats' documentation). Modules without one, such
# as the AGX Orin, spread their input over several rails, some of which feed others.
_INPUTS = ("VDD_IN", "POM_5V_IN")


class EnergySpan(NamedTuple):
    """Wall time from ``time.time()``, in seconds."""

    start_s: float
    end_s: float


@dataclass
class EnergyLog:
    """Energy since the first sample.

    Attributes:
        times_s: wall time in seconds since the epoch, ascending.
        joules: the energy until then.
    """

    times_s: list[float] = field(default_factory=list)
    joules: list[float] = field(default_factory=list)

    @classmethod
    def of_power(cls, times_s: Sequence[float], watts: Sequence[float]) -> "EnergyLog":
        """The energy of power samples, straight lines between them."""
        times, power = np.asarray(times_s, dtype=float), np.asarray(watts, dtype=float)
        steps = np.diff(times) * (power[:-1] + power[1:]) / 2
        return cls(times.tolist(), [0.0, *np.cumsum(steps).tolist()])

    def samples(self, span: EnergySpan) -> int:
        return bisect_right(self.times_s, span.end_s) - bisect_left(self.times_s, span.start_s)

    def watts(self, span: EnergySpan) -> float | None:
        """The mean power of a span; None if it has too few samples."""
        if self.samples(span) < LEAST_SAMPLES or span.end_s <= span.start_s:
            return None
        # The span's ends lie between samples, or beyond the first or last one.
        start_s, end_s = max(span.start_s, self.times_s[0]), min(span.end_s, self.times_s[-1])
        start_j, end_j = np.interp([start_s, end_s], self.times_s, self.joules)
        return float(end_j - start_j) / (end_s - start_s)


class Counters:
    """The energy counters of processor packages (RAPL) in a powercap tree, and what they measure."""

    what = "the processor's own counter (powercap), without board, memory and power supply"

    def __init__(self, packages: Sequence[Path]) -> None:
        self._packages = packages
        self._ranges = [_number(one / "max_energy_range_uj", default=0) for one in packages]
        self._last = [_number(one / "energy_uj") for one in packages]
        self._sum = 0.0

    def joules(self, now_s: float) -> float:  # noqa: ARG002 - counters do not need it
        """The energy since the first reading; a counter that wrapped around goes on from its range's end.

        Raises:
            OSError, ValueError: it cannot be read.
        """
        for place, package in enumerate(self._packages):
            now = _number(package / "energy_uj")
            change = now - self._last[place]
            self._sum += change if change >= 0 else max(0.0, change + self._ranges[place])
            self._last[place] = now
        return self._sum / 1e6


class Sensor:
    """A power sensor in a hwmon tree: watts at the moment."""

    def __init__(self, what: str, factors: Sequence[Path], scale: float) -> None:
        """Power is the product of the files' numbers, times ``scale``."""
        self.what = what
        self._factors, self._scale = factors, scale
        self._before: tuple[float, float] | None = None
        self._sum = 0.0
        self._watts()

    def _watts(self) -> float:
        return float(np.prod([_number(file) for file in self._factors])) * self._scale

    def joules(self, now_s: float) -> float:
        """As of ``Counters``."""
        watts = self._watts()
        if self._before is not None:
            then_s, before = self._before
            self._sum += max(0.0, now_s - then_s) * (before + watts) / 2
        self._before = now_s, watts
        return self._sum


def _number(file: Path, default: float | None = None) -> float:
    try:
        return float(file.read_text(encoding="ascii"))
    except OSError:
        if default is None:
            raise
        return default


def host_source(root: Path = Path("/")) -> tuple[Counters | Sensor | None, str]:
    """What tells this host's energy, the whole board before the processor alone; or None, and why."""
    refused = []
    for sensor in _sensors(root / HWMON):
        try:
            return Sensor(*sensor), ""
        except (OSError, ValueError):
            refused.append(str(sensor[1][0]))
    packages = [one for one in sorted((root / POWERCAP).glob("intel-rapl:*")) if one.name.count(":") == 1]
    if packages:
        try:
            return Counters(packages), ""
        except (OSError, ValueError):
            refused.append(str(packages[0] / "energy_uj"))
    meter = "read a meter at the socket, and give --idle and --active, or its --power-log"
    if refused:
        return None, f"this user may not read {refused[0]}; {meter}"
    return None, (
        f"the system exposes no power counter (no intel-rapl in /{POWERCAP}, no board's input sensor in "
        f"/{HWMON}); {meter}"
    )


def _sensors(tree: Path) -> Iterator[tuple[str, list[Path], float]]:
    """The sensors of a board's input: what each measures, its files, and their product's unit in watts."""
    for folder in sorted(tree.glob("hwmon*")):
        chip = _text(folder / "name")
        if chip == "ina3221":
            for channel in (1, 2, 3):
                label = _text(folder / f"in{channel}_label")
                if label in _INPUTS:
                    files = [folder / f"in{channel}_input", folder / f"curr{channel}_input"]
                    # Millivolts times milliamperes.
                    yield f"the board's input {label} (INA3221)", files, 1e-6
        elif chip.startswith("ina2") and (folder / "power1_input").exists():
            yield f"the board's supply, by its {chip.upper()}", [folder / "power1_input"], 1e-6


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


@contextmanager
def recording(source: Counters | Sensor, every_s: float = _EVERY_S) -> Iterator[EnergyLog]:
    """Reads a source while it is open; a reading that fails is left out."""
    log, stop = EnergyLog(), Event()

    def read() -> None:
        while not stop.wait(every_s):
            now_s = time.time()
            try:
                joules = source.joules(now_s)
            except (OSError, ValueError):
                continue
            if not log.times_s or now_s > log.times_s[-1]:
                log.times_s.append(now_s)
                log.joules.append(joules)

    thread = Thread(target=read, daemon=True)
    thread.start()
    try:
        yield log
    finally:
        stop.set()
        thread.join()
