"""A device file's entries: every number with its status, and how it was measured as its source."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psutil

from edgefl.calibrate.fit import RooflineFit
from edgefl.calibrate.measure import Circumstances, Timing
from edgefl.calibrate.power import Powers
from edgefl.core.cost import DENSE
from edgefl.core.host import board_name, machine_title

NumberEntry = dict[str, str | float]

_TORCH = "torch"


@dataclass(frozen=True)
class Machine:
    """The machine: ``category`` is guessed, and ``used_bytes`` are those of all other programs now."""

    title: str
    category: str
    memory_bytes: int
    used_bytes: int


def this_machine() -> Machine:
    """What the system reports."""
    memory = psutil.virtual_memory()
    # psutil has no such function on systems without any support for batteries.
    battery = getattr(psutil, "sensors_battery", lambda: None)()
    return Machine(
        title=machine_title(),
        category="sbc" if board_name() else "server" if battery is None else "laptop",
        memory_bytes=memory.total,
        used_bytes=memory.total - memory.available,
    )


def number(value: str | float, status: str, source: str) -> NumberEntry:
    """A number as device files have it."""
    return {"value": value, "status": status, "source": source}


def bandwidth(copy: Timing, how: Circumstances) -> tuple[float, NumberEntry]:
    """The rate of a copy that no cache can hold, in bytes a second, and its entry."""
    rate = copy.work.bytes / copy.seconds
    source = f"{how.of(_TORCH)}; {copy.workload.name}, read and written, spread {copy.spread:.0%}"
    return rate, number(f"{rate / 1e9:.4g} GB/s", "measured", source)


def peak(timings: Sequence[Timing], fitted: RooflineFit, how: Circumstances) -> tuple[float, NumberEntry]:
    """The rate that efficiencies are shares of, in FLOP/s, and its entry.

    Args:
        timings: the fastest of those with dense kernels counts.
        fitted: may give a higher rate to products without a short side; no efficiency is above 1.
    """
    dense = [one for one in timings if any(kernel.kind == DENSE for kernel, _ in one.work)]
    fastest = max(dense, key=lambda one: one.work.flops / one.seconds)
    rate = fastest.work.flops / fastest.seconds
    source = f"{how.of(_TORCH)}; the fastest workload, {fastest.workload.name}, "
    source += f"at {rate / 1e9:.4g} GFLOP/s, spread {fastest.spread:.0%}; reached here, not from a data sheet"
    if fitted.dense <= rate:
        return rate, number(f"{rate / 1e9:.4g} GFLOP/s", "measured", source)
    source += "; extrapolated to products without a short side by the fit of the efficiencies"
    return fitted.dense, number(f"{fitted.dense / 1e9:.4g} GFLOP/s", "derived", source)


def efficiencies(fitted: RooflineFit, peak: float, circumstances: str) -> dict[str, Any]:
    """Efficiency, half side and launch overhead of one runtime."""
    source = _fitted(fitted, circumstances)
    shares = {
        "dense": min(1.0, fitted.dense / peak),
        "depthwise": min(1.0, fitted.depthwise / peak),
        "elementwise": fitted.elementwise,
    }
    return {
        "efficiency": {key: number(_round(share), "derived", source) for key, share in shares.items()},
        "half_side": number(_round(fitted.half_side), "derived", source),
        "launch_overhead": number(f"{fitted.launch_s * 1e6:.4g} us", "derived", source),
    }


def backward(fitted: RooflineFit, circumstances: str) -> NumberEntry:
    """The overhead of a backward pass."""
    return number(f"{fitted.backward_s * 1e6:.4g} us", "derived", _fitted(fitted, circumstances))


def _fitted(fitted: RooflineFit, circumstances: str) -> str:
    return (
        f"{circumstances}; robust least squares over {fitted.workloads} workloads, half of which "
        f"the model predicts within {fitted.spread:.0%}"
    )


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def board(machine: Machine, loaded_bytes: int, powers: Powers, how: Circumstances) -> dict[str, Any]:
    """Memory and power; ``loaded_bytes`` are those of a process with all libraries and no data."""
    when = f"psutil, on {how.date}"
    used = f"{machine.used_bytes / 1e6:.0f} MB in use by other programs"
    return {
        "memory": number(f"{machine.memory_bytes} B", "measured", f"{when}: the system's total"),
        "reserved_memory": number(
            f"{machine.used_bytes + loaded_bytes} B",
            "measured",
            f"{when}: {used} and {loaded_bytes / 1e6:.0f} MB by a process with PyTorch loaded",
        ),
        "power": _power(powers, how),
    }


def _power(powers: Powers, how: Circumstances) -> dict[str, NumberEntry]:
    if powers.why:
        # Two dicts: YAML would write the second mention of one as an alias.
        return {key: {"status": "unknown", "source": powers.why} for key in ("idle", "active")}
    doing = {
        "idle": (powers.idle, "at rest"),
        "active": (powers.active, f"in training on {how.in_threads}"),
        "single_core": (powers.single_core, "with one core busy"),
    }
    return {
        key: number(
            f"{watts:.4g} W", "measured", f"edgefl calibrate on {how.date}: the machine {what}; {powers.what}"
        )
        for key, (watts, what) in doing.items()
        if watts is not None
    }
