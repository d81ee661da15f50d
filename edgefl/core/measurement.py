"""One client's exchange done for real: the figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredExchange:
    """What one client's exchange took.

    Attributes:
        device: torch's name of the device.
        steps: how many were done.
        wall_s, cpu_s: seconds of an exchange, the median of several.
        first_wall_s: seconds of the first exchange, which also loads the libraries' code.
        added_bytes: the most that the work added to the process's memory, by the kernel's high-water mark or,
            where there is none, by sampling.
        rss_before_bytes: resident with all libraries loaded, before the model is received.
        rss_after_bytes: resident with the result at hand.
        rss_peak_bytes: the highest sample in between.
        uss_before_bytes, uss_after_bytes, uss_peak_bytes: the same of unshared memory, sampled less often.
        high_water_added_bytes: the rise of the kernel's high-water mark; None where there is none.
        maxrss_added_bytes: the rise of ``ru_maxrss``, which a large start-up hides.
        cuda_before_bytes, cuda_peak_bytes: the CUDA allocator's; None on other devices.
    """

    device: str
    steps: int
    wall_s: float
    cpu_s: float
    first_wall_s: float
    added_bytes: int
    rss_before_bytes: int
    rss_after_bytes: int
    rss_peak_bytes: int
    uss_before_bytes: int
    uss_after_bytes: int
    uss_peak_bytes: int
    high_water_added_bytes: int | None
    maxrss_added_bytes: int
    cuda_before_bytes: int | None
    cuda_peak_bytes: int | None
