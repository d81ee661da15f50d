"""What a terminal shows, as HTML for a notebook, whose fonts and colours it keeps."""

from __future__ import annotations

from html import escape

from rich.console import RenderableType

from edgefl.show.table import Line, Table, parts

# Of Rich's words for styles, those that views use; the colours are read on white and on black.
_STYLES = {
    "bold": "font-weight:bold",
    "dim": "opacity:.7",
    "italic": "font-style:italic",
    "red": "color:#d83a2b",
    "yellow": "color:#b26a00",
}


def html(view: RenderableType) -> str:
    """A view's tables and lines; of a table that is too wide for a terminal, one with all columns."""
    return f'<div style="overflow-x:auto">{"".join(map(_block, parts(view)))}</div>'


def _block(block: Table | Line) -> str:
    if isinstance(block, Table):
        return _table(block)
    return _element("div", escape(block.text), _STYLES.get(block.style, "")) if block.text else ""


def _table(table: Table) -> str:
    caption = _element("caption", escape(table.title), "text-align:left") if table.title else ""
    head = "".join(_cell("th", one.head, left=one.left) for one in table.columns)
    columns = [(one.left, one.left and place >= table.names) for place, one in enumerate(table.columns)]
    body = ""
    for row in table.rows:
        cells = (
            _cell("td", str(cell), left=left, wraps=wraps, style=str(getattr(cell, "style", "")))
            for cell, (left, wraps) in zip(row, columns, strict=True)
        )
        body += _element("tr", "".join(cells))
    return _element(
        "table", f"{caption}<thead>{_element('tr', head)}</thead><tbody>{body}</tbody>", "margin:.5em 0"
    )


def _cell(tag: str, text: str, *, left: bool = True, wraps: bool = False, style: str = "") -> str:
    """A cell, whose line ends and indentation stay."""
    side, space = "left" if left else "right", "pre-wrap" if wraps else "pre"
    css = f"text-align:{side};vertical-align:top;white-space:{space}"
    return _element(tag, escape(text), ";".join([css, *([_STYLES[style]] if style else [])]))


def _element(tag: str, content: str, css: str = "") -> str:
    start = f'{tag} style="{css}"' if css else tag
    return f"<{start}>{content}</{tag}>"
