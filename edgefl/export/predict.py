"""What one call of an exported model takes on devices that are not here, by the devices' own cost models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from edgefl.core import catalogue
from edgefl.core.cost import Kernel, Work
from edgefl.core.devices import TRACED, WIDTHS, Board, Bounds, Roofline
from edgefl.core.errors import UserError
from edgefl.export.kernels import Costed, kernels
from edgefl.export.memory import needs
from edgefl.export.model import Graph
from edgefl.planning.fleets import named

ALL = "all"
_UNKNOWN = ("dtype", "figures", "launch", "seconds", "bounds", "images_per_s", "joules")


def predictions(
    graph: Graph, names: Sequence[str], batch: int, dtype: str | None = None
) -> list[dict[str, Any]]:
    """A row for each device; what is unknown, and all of what it cannot price, is None.

    Args:
        graph: the model at this batch size.
        names: devices, or "all".
        batch: samples.
        dtype: the number type of everything; int8 for what is quantised and fp32 for the rest by default.

    Raises:
        UserError: there is no such device, or an operator has no cost.
    """
    devices = named(catalogue.entries("devices") if ALL in names else names, "--device")
    found, memory_bytes = kernels(graph, dtype), sum(needs(graph, dtype))
    return [_row(name, device, found, memory_bytes, batch) for name, device in devices.items()]


def _row(name: str, device: Board, found: Sequence[Costed], memory_bytes: int, batch: int) -> dict[str, Any]:
    row: dict[str, Any] = {"device": name, "unknown": "", **dict.fromkeys(_UNKNOWN)}
    room = device.usable_memory_bytes
    row |= {
        "memory_bytes": memory_bytes,
        "memory_share": memory_bytes / room if room else None,
        "fits": None if room is None else memory_bytes <= room,
    }
    works = _works(found, device.dtypes())
    try:
        bounds = Bounds()
        for dtype, work in works.items():
            bounds = bounds.plus(device.clock(name, dtype, inference=True).time(work))
    except UserError as error:
        return {**row, "unknown": error.what}
    watts = device.power.active.value
    return {
        **row,
        "dtype": " + ".join(works),
        "figures": _figures(device),
        "launch": device.launch_known(inference=True),
        "seconds": bounds.seconds,
        "bounds": bounds._asdict(),
        "images_per_s": batch / bounds.seconds,
        "joules": None if watts is None else watts * bounds.seconds,
    }


def _figures(device: Board) -> str:
    """Whose efficiencies they are: a runtime's for inference, or those of training where it has no other."""
    if not isinstance(device, Roofline):
        return ""
    return device.inference.runtime if device.inference else "training"


def _works(found: Iterable[Costed], has: Sequence[str]) -> dict[str, Work]:
    """The kernels by number type.

    Kernels without products (what stands before the first quantised operator and after the last) are bytes
    in any type: a device that lacks theirs moves the same bytes.
    """
    found = list(found)
    with_products = {one.dtype for one in found if one.kernel.flops}
    works: dict[str, list[Kernel]] = {}
    for one in found:
        dtype, kernel = one.dtype, one.kernel
        if dtype not in has and dtype not in with_products and with_products <= set(has):
            dtype = has[0]
            kernel = kernel._replace(bytes=kernel.bytes * WIDTHS[TRACED] // WIDTHS[dtype])
        works.setdefault(dtype, []).append(kernel)
    return {dtype: Work.of(one) for dtype, one in works.items()}
