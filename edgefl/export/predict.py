"""The time and energy of one call of an ONNX model on other devices, by their own cost models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgefl.core import catalogue
from edgefl.core.cost import Kernel, Work
from edgefl.core.devices import TRACED, WIDTHS, Board, Bounds, Roofline
from edgefl.core.errors import UserError
from edgefl.export.kernels import Costed, GraphCost
from edgefl.export.model import Graph
from edgefl.planning.fleets import named
from edgefl.report.bench import Predicted, Price

ALL = "all"


def predictions(graph: Graph, names: Sequence[str], batch: int, dtype: str | None = None) -> list[Predicted]:
    """What one call takes on each device.

    Args:
        graph: the model at this batch size.
        names: devices, or "all".
        batch: samples.
        dtype: the number type of everything; by default int8 for what is quantised and fp32 for the rest.

    Raises:
        UserError: a device or the cost of an operator is unknown.
    """
    devices = named(catalogue.entries("devices") if ALL in names else names, "--device")
    cost = GraphCost(graph, dtype)
    kernels, memory_bytes = cost.kernels(), sum(cost.memory())
    found = []
    for name, device in devices.items():
        usable_bytes, price, unknown = device.usable_memory_bytes, None, ""
        try:
            price = _price(name, device, kernels, batch)
        except UserError as error:
            unknown = error.what
        share = memory_bytes / usable_bytes if usable_bytes else None
        fits = None if usable_bytes is None else memory_bytes <= usable_bytes
        found.append(Predicted(name, unknown, price, memory_bytes, share, fits))
    return found


def _price(name: str, device: Board, kernels: Sequence[Costed], batch: int) -> Price:
    """The time and energy of the kernels.

    Raises:
        UserError: the device cannot price them.
    """
    works = _works(kernels, device.dtypes())
    bounds = Bounds()
    for dtype, work in works.items():
        bounds = bounds.plus(device.clock(name, dtype, inference=True).time(work))
    watts = device.power.active.value
    return Price(
        dtype=" + ".join(works),
        figures=_figures(device),
        launch=device.launch_known(inference=True),
        seconds=bounds.seconds,
        bounds=bounds,
        images_per_s=batch / bounds.seconds,
        joules=None if watts is None else watts * bounds.seconds,
    )


def _figures(device: Board) -> str:
    """The runtime whose efficiencies they are; "training" where the device has none for inference."""
    if not isinstance(device, Roofline):
        return ""
    return device.inference.runtime if device.inference else "training"


def _works(kernels: Iterable[Costed], supported: Sequence[str]) -> dict[str, Work]:
    """The kernels by number type.

    Kernels without products (before the first quantised operator and after the last) are bytes in any type: a
    device that does not support theirs moves the same bytes.
    """
    kernels = list(kernels)
    with_products = {one.dtype for one in kernels if one.kernel.flops}
    works: dict[str, list[Kernel]] = {}
    for one in kernels:
        dtype, kernel = one.dtype, one.kernel
        if dtype not in supported and dtype not in with_products and with_products <= set(supported):
            dtype = supported[0]
            kernel = kernel._replace(bytes=kernel.bytes * WIDTHS[TRACED] // WIDTHS[dtype])
        works.setdefault(dtype, []).append(kernel)
    return {dtype: Work.of(one) for dtype, one in works.items()}
