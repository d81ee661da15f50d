"""How this process's allocator treats freed memory."""

import ctypes
import sys

# glibc's mallopt parameters, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT_BYTES = 32 * 2**20
_KEPT_BYTES = 256 * 2**20


def keep_freed_memory() -> None:
    """Makes glibc keep the memory that training frees, for the next step.

    By default it returns activations of a megabyte to the system at once, and every step of a small
    convolutional network pays for hundreds of fresh pages. Other allocators are left alone.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
