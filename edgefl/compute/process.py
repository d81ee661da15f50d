"""How this process trains: torch's threads, and what its allocator does with freed memory."""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# glibc's mallopt parameters, from malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGEST_KEPT_BYTES = 32 * 2**20
_KEPT_BYTES = 256 * 2**20


@contextmanager
def one_thread() -> Iterator[None]:
    """Sets torch to one intra-operator thread, and restores the number at the end."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def keep_freed_memory() -> None:
    """Makes glibc keep the memory that training frees, for the next step.

    By default it returns activations of a megabyte to the system at once, and every step of a small
    convolutional network pays for hundreds of fresh pages. Other allocators are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
