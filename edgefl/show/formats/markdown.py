"""Tables in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.console import RenderableType

from edgefl.show.table import Line, Table, parts
from edgefl.show.texts import visible

# What begins or ends something within a line, mathematics, mentions and references of GitHub's among it.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>|~&$#@]")
# What would make a paragraph a list, a heading or code.
_BEGINNING = re.compile(r"^(\d*)(?=[-+=.)])")


def markdown(view: RenderableType) -> str:
    """Its tables, and each line as a paragraph."""
    blocks = [
        "\n".join(_table(one)) if isinstance(one, Table) else _paragraph(one.text)
        for one in parts(view)
        if isinstance(one, Table) or (isinstance(one, Line) and one.text)
    ]
    return "\n\n".join(blocks) + "\n"


def _paragraph(text: str) -> str:
    return _BEGINNING.sub(r"\1\\", escaped(text).strip(" "))


def _table(table: Table) -> Iterable[str]:
    yield _line(map(_cell, table.heads))
    yield _line(":--" if one.left else "--:" for one in table.columns)
    for row in table.rows:
        yield _line(_cell(str(cell)) for cell in row)


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
