"""How this process's allocator treats freed memory."""

from __future__ import annotations

import ctypes
import sys

# glibc's mallopt parameters, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT_BYTES = 32 * 2**20
_KEPT_BYTES = 256 * 2**20


def keep_freed_memory() -> None:
    """Has glibc keep what training frees, for the next step to take.

    By default it gives activations of a megabyte back to the system at once, and every step of a small
    convolutional network pays for some hundred fresh pages. Other allocators are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
