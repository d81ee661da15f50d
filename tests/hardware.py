"""Hardware by hand: the accelerator of SphereFed's Figure 5, whatever its file says, and products."""

from plans import sourced

from edgefl.core.cost import DENSE, Kernel
from edgefl.core.devices.systolic import Systolic


def array(
    *, rows=32, columns=64, clock="100 MHz", dataflow="os", bandwidth="12.8 GB/s", on_chip="0 B", **changes
) -> Systolic:
    """32 x 64 cells at 100 MHz and 12.8 GB/s, 64 lanes beside them, nothing kept on the chip; 5 W and 9 W."""
    given = {
        "title": "an array",
        "category": "fpga",
        "kind": "systolic",
        "rows": sourced(rows),
        "columns": sourced(columns),
        "clock_rate": sourced(clock),
        "dataflow": dataflow,
        "dtypes_supported": ["fp32"],
        "memory_bandwidth": sourced(bandwidth),
        "bandwidth_efficiency": sourced(1.0),
        "on_chip_memory": sourced(on_chip),
        "launch_overhead": sourced("0 s"),
        "special_unit": {"lanes": sourced(64)},
        "memory": sourced("1 GB"),
        "reserved_memory": sourced("0 B"),
        "power": {"idle": sourced("5 W"), "active": sourced("9 W")},
    }
    return Systolic.model_validate({**given, **changes})


def product(m, n, k, groups=1, kind=DENSE) -> Kernel:
    """A forward product with operands of its size."""
    words = groups * (m * k + k * n + m * n)
    return Kernel("mm", kind, "forward", "body", m, n, k, groups, 2 * groups * m * n * k, 4 * words)
