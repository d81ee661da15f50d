"""A device file's content from what was measured: every number with its standing and how it was found."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from edgefl.calibrate.fit import Fitted
from edgefl.calibrate.host import Host
from edgefl.calibrate.measure import Timing
from edgefl.core.cost import DENSE, Work

Entry = dict[str, Any]
Works = Mapping[str, Work]
"""The kernels of workloads, by name."""


@dataclass(frozen=True)
class Circumstances:
    """How all numbers of a file were found.

    Attributes:
        threads: of the measuring processes.
        repeats: processes a workload.
        date: the day.
    """

    threads: int
    repeats: int
    date: str

    @classmethod
    def now(cls, threads: int, repeats: int) -> Circumstances:
        """Today's."""
        return cls(threads, repeats, dt.datetime.now(dt.UTC).date().isoformat())

    @property
    def in_threads(self) -> str:
        """The threads in words."""
        return f"{self.threads} thread{'s' * (self.threads > 1)}"

    def of(self, runtime: str) -> str:
        """In words, for a runtime."""
        processes = f"{self.repeats} fresh process{'es' * (self.repeats > 1)}"
        return f"edgefl calibrate on {self.date}: {runtime}, {self.in_threads}, median of {processes}"


def torch_runtime() -> str:
    """What trains, with its version."""
    return f"torch {version('torch')}"


def number(value: str | float, status: str, source: str) -> Entry:
    """A number as device files write it."""
    return {"value": value, "status": status, "source": source}


def unknown(source: str) -> Entry:
    """A number that nobody knows."""
    return {"status": "unknown", "source": source}


def fastest(timings: Sequence[Timing], works: Works) -> tuple[float, Timing]:
    """The highest rate of a workload of dense kernels, in FLOP/s, and the workload."""
    dense = [one for one in timings if any(kernel.kind == DENSE for kernel, _ in works[one.workload.name])]
    rates = [(works[one.workload.name].flops / one.seconds, one) for one in dense]
    return max(rates, key=lambda pair: pair[0])


def bandwidth(copy: Timing, works: Works, how: Circumstances) -> tuple[float, Entry]:
    """Bytes a second of a copy that no cache holds, and its entry."""
    found = works[copy.workload.name].bytes / copy.seconds
    source = f"{how.of(torch_runtime())}; {copy.workload.name}, read and written, spread {copy.spread:.0%}"
    return found, number(f"{found / 1e9:.4g} GB/s", "measured", source)


def roofline(
    host: Host, peak: tuple[float, Entry], stream: Entry, found: Fitted, how: Circumstances
) -> dict[str, Any]:
    """A roofline's own numbers, for training.

    Args:
        host: the machine.
        peak: FLOP/s that efficiencies are shares of, and its entry.
        stream: the bandwidth's entry.
        found: the fit.
        how: the circumstances.
    """
    highest, entry = peak
    return {
        "title": host.title,
        "category": host.category,
        "kind": "roofline",
        "peak": {"fp32": entry},
        **efficiencies(found, highest, how.of(torch_runtime())),
        "memory_bandwidth": stream,
    }


def peak(measured: tuple[float, Timing], found: Fitted, how: Circumstances) -> tuple[float, Entry]:
    """FLOP/s that efficiencies are shares of, and its entry.

    Args:
        measured: the highest rate, and by what.
        found: the fit, which may see more in products without a short side: no efficiency is above 1.
        how: the circumstances.
    """
    rate, timing = measured
    source = f"{how.of(torch_runtime())}; the fastest of all workloads, {timing.workload.name}, "
    source += f"at {rate / 1e9:.4g} GFLOP/s, spread {timing.spread:.0%}; reached, not a data sheet's"
    if found.dense <= rate:
        return rate, number(f"{rate / 1e9:.4g} GFLOP/s", "measured", source)
    source += "; from there to products without a short side by the fit of the efficiencies"
    return found.dense, number(f"{found.dense / 1e9:.4g} GFLOP/s", "derived", source)


def efficiencies(found: Fitted, peak: float, circumstances: str) -> dict[str, Any]:
    """Efficiency, half side and launch overhead of one runtime."""
    source = _fitted(found, circumstances)
    shares = {
        "dense": min(1.0, found.dense / peak),
        "depthwise": min(1.0, found.depthwise / peak),
        "elementwise": found.elementwise,
    }
    return {
        "efficiency": {key: number(_round(share), "derived", source) for key, share in shares.items()},
        "half_side": number(_round(found.half_side), "derived", source),
        "launch_overhead": number(f"{found.launch_s * 1e6:.4g} us", "derived", source),
    }


def launch(found: Fitted, how: Circumstances) -> Entry:
    """The launch overhead in training."""
    return number(f"{found.launch_s * 1e6:.4g} us", "derived", _fitted(found, how.of(torch_runtime())))


def _fitted(found: Fitted, circumstances: str) -> str:
    return (
        f"{circumstances}; robust least squares over {found.workloads} workloads, half of which "
        f"the model hits within {found.spread:.0%}"
    )


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def board(host: Host, process_bytes: int, active: Sequence[Timing], how: Circumstances) -> dict[str, Any]:
    """Memory and power.

    Args:
        host: the machine.
        process_bytes: what a process has with the libraries loaded, before any data.
        active: timings of training.
        how: the circumstances.
    """
    reserved = host.taken_bytes + process_bytes
    when = f"psutil, on {how.date}"
    taken = (
        f"{when}: {host.taken_bytes / 1e6:.0f} MB in use by everything else and {process_bytes / 1e6:.0f} MB "
    )
    return {
        "memory": number(f"{host.memory_bytes} B", "measured", f"{when}: all that the system has"),
        "reserved_memory": number(
            f"{reserved} B", "measured", f"{taken}by a process that has loaded PyTorch"
        ),
        "power": _power(host, active, how),
    }


def _power(host: Host, active: Sequence[Timing], how: Circumstances) -> dict[str, Any]:
    watts = [one.watts for one in active if one.watts is not None]
    if host.idle_w is None or not watts:
        why = host.why_no_power or "the power counter began anew while it was read"
        return {"idle": unknown(why), "active": unknown(why)}
    if max(watts) < host.idle_w:
        why = "the machine drew more before the calibration than in training: it was busy with other work"
        return {"idle": unknown(why), "active": unknown(why)}
    what = (
        "the processor's own counter (powercap), its packages alone: board, memory and supply are not in it"
    )
    return {
        "idle": number(f"{host.idle_w:.4g} W", "measured", f"{how.date}, a second without work; {what}"),
        "active": number(
            f"{max(watts):.4g} W",
            "measured",
            f"{how.of(torch_runtime())}; the most of {len(watts)} networks' training; {what}",
        ),
    }
