"""What a terminal shows, as HTML for a notebook, whose fonts and colours it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.show.tables import Column, Grid, Heading, Labelled, Line

# Of Rich's words for styles, those that views use; the colours are read on white and on black.
_STYLES = {
    "bold": "font-weight:bold",
    "dim": "opacity:.7",
    "italic": "font-style:italic",
    "red": "color:#d83a2b",
    "yellow": "color:#b26a00",
}
_TEXT = Column("", left=True)


def html(view: RenderableType) -> str:
    """A view's tables and lines; of a table that is too wide for a terminal, one with all columns."""
    return f'<div style="overflow-x:auto">{"".join(_blocks(view))}</div>'


def _blocks(view: RenderableType) -> Iterator[str]:
    if isinstance(view, Group):
        for part in view.renderables:
            yield from _blocks(part)
    elif isinstance(view, Grid):
        yield _table(view)
    elif isinstance(view, Labelled):
        rows = (
            _element("tr", _cell("th", label.strip()) + _cell("td", text))
            for label, text in view.lines.items()
        )
        yield _element("table", "".join(rows))
    elif isinstance(view, Heading):
        yield _element("h4", escape(view.text))
    elif isinstance(view, Line):
        if view.text:
            yield _element("div", escape(view.text), _STYLES.get(view.style, ""))
    elif isinstance(view, Text | str):
        yield from _blocks(Line(str(view), str(getattr(view, "style", ""))))
    else:
        yield from _blocks(view.__rich__())  # type: ignore[union-attr]


def _table(grid: Grid) -> str:
    columns, rows, title, _ = grid.parts
    caption = _element("caption", escape(title), "text-align:left") if title else ""
    head = "".join(_cell("th", one.head, one) for one in columns)
    lines = [
        "".join(_cell("td", cell.plain, one, str(cell.style)) for one, cell in zip(columns, row, strict=True))
        for row in rows
    ]
    body = "".join(_element("tr", line) for line in lines)
    return _element(
        "table", f"{caption}<thead>{_element('tr', head)}</thead><tbody>{body}</tbody>", "margin:.5em 0"
    )


def _cell(tag: str, text: str, column: Column = _TEXT, style: str = "") -> str:
    """A cell, whose line ends and indentation stay; texts wrap, names and figures do not."""
    side = "left" if column.left else "right"
    space = "pre-wrap" if column.left and not column.names and tag == "td" else "pre"
    css = f"text-align:{side};vertical-align:top;white-space:{space}"
    return _element(tag, escape(text), ";".join([css, *([_STYLES[style]] if style else [])]))


def _element(tag: str, content: str, css: str = "") -> str:
    start = f'{tag} style="{css}"' if css else tag
    return f"<{start}>{content}</{tag}>"
