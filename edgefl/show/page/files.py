"""The file that a page is written to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from edgefl.core.files import atomically
from edgefl.show.page.html import GENERATOR

SUFFIXES = (".html", ".htm")

# A page is known by its first bytes.
_HEAD = 8192
_LONGEST_NAME = 100


def named_after(folders: Sequence[Path]) -> str:
    """The name of a page of these runs: the first folder's, and how many more there are."""
    return f"{stem_of(folders[0])}{f'-and-{len(folders) - 1}-more' if len(folders) > 1 else ''}.html"


def stem_of(folder: Path) -> str:
    """The name of a file that is made of a folder, without its suffix."""
    return re.sub(r"[^\w.-]+", "-", folder.resolve().name).strip("-.")[:_LONGEST_NAME] or "runs"


def is_page(path: Path) -> bool:
    """Whether edgefl made a file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(_HEAD)


def write(path: Path, text: str) -> int:
    """Writes a page, and returns its size in bytes.

    Raises:
        RunError: it cannot be written; a page that is there is unchanged.
    """
    content = text.encode("utf-8")
    atomically(path, content)
    return len(content)
