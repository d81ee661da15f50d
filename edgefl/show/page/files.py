"""The file that a page is written to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from edgefl.core.files import atomically

SUFFIXES = (".html", ".htm")

_LONGEST_NAME = 100


def page_name(folders: Sequence[Path]) -> str:
    """The name of a page of these runs: the first folder's, and how many more there are."""
    return f"{stem_of(folders[0])}{f'-and-{len(folders) - 1}-more' if len(folders) > 1 else ''}.html"


def stem_of(folder: Path) -> str:
    """The name of a file that is made of a folder, without its suffix."""
    return re.sub(r"[^\w.-]+", "-", folder.resolve().name).strip("-.")[:_LONGEST_NAME] or "runs"


def write_page(path: Path, text: str) -> int:
    """Writes a page, and returns its size in bytes.

    Raises:
        RunError: it cannot be written; a page that is there is unchanged.
    """
    content = text.encode("utf-8")
    atomically(path, content)
    return len(content)
