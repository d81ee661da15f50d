"""Files of figures: what they may be called, what is written into them, and how ours are known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUFFIXES = (".pdf", ".svg", ".png")

METADATA: Mapping[str, Mapping[str, Any]] = {
    "pdf": {"Creator": "edgefl", "CreationDate": None},
    "svg": {"Creator": "edgefl", "Date": None},
    "png": {"Software": "edgefl"},
}
"""What Matplotlib writes into a file of each type: no date, so that the same runs give the same bytes."""

# By which a figure is known as one of ours, in each type of file.
_MARKS = (b"/Creator (edgefl)", b"<dc:title>edgefl</dc:title>", b"Software\0edgefl")
# Figures are smaller.
_MOST_BYTES = 100_000_000


def is_figure(path: Path) -> bool:
    """Whether edgefl made a file.

    Raises:
        OSError: it cannot be read.
    """
    content = b"" if path.stat().st_size > _MOST_BYTES else path.read_bytes()
    return any(mark in content for mark in _MARKS)
