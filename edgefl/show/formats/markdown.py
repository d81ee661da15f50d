"""Tables in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from edgefl.show.formats.texts import TextTable, TextTables
from edgefl.show.texts import visible

# What begins or ends something within a line, mathematics, mentions and references of GitHub's among it.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~&$#@]")
# What would make a paragraph a list, a heading or code.
_BEGINNING = re.compile(r"^(\d*)(?=[-+=.)])")


def markdown(found: TextTables) -> str:
    """The tables, and each note as a paragraph."""
    blocks = ["\n".join(_table(table)) for table in found.tables]
    return "\n\n".join([*blocks, *(_paragraph(note.text) for note in found.notes)]) + "\n"


def _paragraph(text: str) -> str:
    return _BEGINNING.sub(r"\1\\", escaped(text).strip(" "))


def _table(table: TextTable) -> Iterable[str]:
    yield _line(map(_cell, table.heads))
    yield _line([":--", *["--:"] * (len(table.heads) - 1)])
    for row in table.rows:
        yield _line(map(_cell, row))


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """A cell, which cannot have several lines nor begin with spaces."""
    return "<br>".join(f"{'&ensp;' * _indent(line)}{escaped(line.strip(' '))}" for line in text.split("\n"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def escaped(text: str) -> str:
    """A text that Markdown shows as it is."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", visible(text).replace("\n", " "))
