"""Text that any output can show, of many the first ones, and what is said of runs that are not done."""

from __future__ import annotations

import re
from collections.abc import Sequence

# All but the newline; a lone surrogate is a byte of a file's name that is no UTF-8.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with a tab as a space and other control characters as escapes; newlines stay."""
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return " " if found[0] == "\t" else found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def cut(texts: Sequence[str], most: int, more: str = "more") -> list[str]:
    """The first texts, and how many others there are."""
    left = len(texts) - most
    return [*texts[:most], *([f"and {left:,} {more}"] if left > 0 else [])]


def listed(texts: Sequence[str], most: int, apart: str = ", ") -> str:
    """The same in a line."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return apart.join(texts[:most]) + more


STANDS = {
    "running": "is still running",
    "killed": "was killed",
    "interrupted": "was interrupted",
    "failed": "failed",
}
"""What to say of a run that is not done, by its status."""


def unfinished(name: str, status: str, reason: str) -> str:
    """What became of a run that is not done."""
    if status == "failed":
        return f"{name} failed" + (f": {reason}" if reason else "")
    return f"{name} {STANDS[status]}: these are its figures so far"
