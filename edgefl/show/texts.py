"""Text that any output can show, in lines in which no word is broken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import pairwise

from rich.cells import cell_len, chop_cells

# All but the newline; a lone surrogate is a byte of a file's name that is no UTF-8.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

# Where a line may end: at spaces, but not between a number and its unit, nor within a duration, nor before a
# slash. Where that is not enough: behind the hyphens, underscores and slashes of a name, but not in an
# exponent or a rate.
_SPACE = re.compile(r"(?<!\d)(?<!\d min)(?<!\d h) +(?!/ )|(?<=\d) +(?![^\W\d_]|/ )")
_JOINT = re.compile(r"(?<=[^\s(_/-][-_/])(?<!\de-)(?!s\b)(?=[^\s_/-])")


def visible(text: str) -> str:
    """The text with a tab as a space and other control characters as escapes; newlines stay."""
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return " " if found[0] == "\t" else found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def longest_word(text: str) -> int:
    """The cells of the longest part of a text that should not be broken, with its line's indentation."""
    lines = ((_indent(line), _words(line)) for line in text.split("\n"))
    parts = ((indent, part) for indent, words in lines for word in words for part in _parts(word.rstrip(" ")))
    return max(indent + cell_len(part) for indent, part in parts)


def longest_line(text: str) -> int:
    """The cells of the longest line."""
    return max(cell_len(line.rstrip(" ")) for line in text.split("\n"))


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` cells; only a word that is longer by itself is broken."""
    return [part for line in text.split("\n") for part in _wrapped(line, max(width, 1))]


def _wrapped(line: str, width: int) -> list[str]:
    indent = min(_indent(line), width // 2)
    room = width - indent
    return [" " * indent + part.rstrip(" ") for part in _filled(_words(line), room, _broken)]


def _broken(word: str, room: int) -> list[str]:
    """A name that is too long, in lines that end behind its hyphens."""
    # A cell of two columns does not fit into one.
    return _filled(_parts(word), room, lambda part, room: chop_cells(part, max(room, 2)))


def _filled(parts: Iterable[str], room: int, broken: Callable[[str, int], list[str]]) -> list[str]:
    """Parts in lines, as many in each as fit; spaces behind the last do not count."""
    lines = [""]
    for part in parts:
        joined = lines[-1] + part
        if cell_len(joined.rstrip(" ")) <= room:
            lines[-1] = joined
            continue
        pieces = [part] if cell_len(part.rstrip(" ")) <= room else broken(part, room)
        lines = [*lines, *pieces] if lines[-1] else pieces
    return lines


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _words(line: str) -> list[str]:
    """The words, each with the spaces behind it."""
    line = line.strip(" ")
    ends = [0, *(gap.end() for gap in _SPACE.finditer(line)), len(line)]
    return [line[start:end] for start, end in pairwise(ends)]


def _parts(word: str) -> list[str]:
    return _JOINT.split(word)


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
