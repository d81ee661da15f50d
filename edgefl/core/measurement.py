"""One client's exchange done for real: the figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeasuredExchange:
    """What one client's exchange took.

    Attributes:
        steps: how many were done.
        wall_s, cpu_s: seconds of an exchange, the median of several.
        added_bytes: the most that the work added to the process's memory, by the kernel's high-water mark or,
            where there is none, by sampling.
        rss_before_bytes: resident with all libraries loaded, before the model is received.
        rss_after_bytes: resident with the result at hand.
        rss_peak_bytes: the highest sample in between.
    """

    steps: int
    wall_s: float
    cpu_s: float
    added_bytes: int
    rss_before_bytes: int
    rss_after_bytes: int
    rss_peak_bytes: int
