"""A view's tables and lines in the languages of papers, notebooks and spreadsheets."""

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from typing import Any, TextIO

from rich.console import RenderableType

from edgefl.show.table import Line, Table, parts, visible

# Of Markdown, what begins or ends something within a line, mathematics, mentions and references of GitHub's
# among it; and what would make a paragraph a list, a heading or code.
_MARKDOWN = re.compile(r"[\\`*_{}\[\]<>|~&$#@]")
_BEGINNING = re.compile(r"^(\d*)(?=[-+=.)])")


def markdown(view: RenderableType) -> str:
    """In GitHub's Markdown: its tables, and each line as a paragraph."""
    blocks = [
        "\n".join(_rows_in_markdown(one))
        if isinstance(one, Table)
        else _BEGINNING.sub(r"\1\\", _in_markdown(one.text).strip(" "))
        for one in parts(view)
        if isinstance(one, Table) or one.text
    ]
    return "\n\n".join(blocks) + "\n"


def _rows_in_markdown(table: Table) -> Iterator[str]:
    rule = [":--" if one.left else "--:" for one in table.columns]
    rows: list[Sequence[Any]] = [table.heads, *table.rows]
    head, *others = ([_cell_in_markdown(str(cell)) for cell in row] for row in rows)
    yield from (f"| {' | '.join(cells)} |" for cells in (head, rule, *others))


def _cell_in_markdown(text: str) -> str:
    """A cell, which cannot have several lines nor begin with spaces."""
    lines = ((line, len(line) - len(line.lstrip(" "))) for line in text.split("\n"))
    return "<br>".join(f"{'&ensp;' * indent}{_in_markdown(line.strip(' '))}" for line, indent in lines)


def _in_markdown(text: str) -> str:
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", visible(text).replace("\n", " "))


# A bracket or a star after \\ would be its argument, and the signs of comparison have no glyphs in LaTeX's
# first encoding. Other than ASCII by code point, since some of it looks like ASCII.
LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}", "`": r"\char96{}", "'": r"\char39{}",
    "[": "{[}", "]": "{]}", "*": "{*}",
    chr(0xB1): r"$\pm$", chr(0xD7): r"$\times$", chr(0xB7): r"$\cdot$", chr(0xB5): r"$\mu$",
    chr(0x3BC): r"$\mu$", chr(0xB2): r"$^2$", chr(0xB0): r"$^\circ$", chr(0x2192): r"$\rightarrow$",
    chr(0x2264): r"$\leq$", chr(0x2265): r"$\geq$", chr(0x2013): "--", chr(0x2014): "---",
    chr(0x2026): r"\ldots{}",
}  # fmt: skip
"""What stands for characters that LaTeX would not show as they are; two hyphens would be a dash, too."""
_ANY = re.compile("|".join([*map(re.escape, LATEX), "-(?=-)"]))


def latex(view: RenderableType) -> str:
    """Its tables as ``tabular`` environments; its lines, which a caption may want, as comments.

    Letters beyond Latin ones need XeLaTeX or LuaLaTeX and a font that has them.
    """
    blocks = list(parts(view))
    tables = ["\n".join(_lines_in_latex(one)) for one in blocks if isinstance(one, Table)]
    notes = [f"% {one.text.replace(chr(10), ' ')}" for one in blocks if isinstance(one, Line) and one.text]
    return "\n\n".join(tables) + "\n" + "".join(f"{note}\n" for note in notes)


def _lines_in_latex(table: Table) -> Iterator[str]:
    yield r"% \usepackage{booktabs}"
    yield rf"\begin{{tabular}}{{{''.join('l' if one.left else 'r' for one in table.columns)}}}"
    yield r"\toprule"
    yield f"{' & '.join(map(_head_in_latex, table.heads))} \\\\"
    yield r"\midrule"
    for label, *cells in (map(str, row) for row in table.rows):
        name = r"\quad " * label.startswith(" ") + _in_latex(label.strip(" "))
        yield f"{' & '.join([name, *map(_cell_in_latex, cells)])} \\\\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _head_in_latex(text: str) -> str:
    first, *others = map(_in_latex, text.split("\n"))
    return r" \\ ".join([rf"\shortstack[r]{{{first}", *others]) + "}" if others else first


def _cell_in_latex(text: str) -> str:
    """A figure; the room of a mark that others of its column have stays empty."""
    return ("--" if text == "-" else _in_latex(text.strip(" "))) + r"\phantom{ *}" * text.endswith("  ")


def _in_latex(text: str) -> str:
    return _ANY.sub(lambda found: LATEX.get(found[0], "-{}"), visible(text).replace("\n", " "))


# Of Rich's words for styles, those that views use; the colours are read on white and on black.
_STYLES = {
    "bold": "font-weight:bold",
    "dim": "opacity:.7",
    "italic": "font-style:italic",
    "red": "color:#d83a2b",
    "yellow": "color:#b26a00",
}


def notebook_html(view: RenderableType) -> str:
    """For a notebook, whose fonts and colours it keeps; of a table too wide for a terminal, all columns."""
    return f'<div style="overflow-x:auto">{"".join(map(_block_in_html, parts(view)))}</div>'


def _block_in_html(block: Table | Line) -> str:
    if isinstance(block, Line):
        return _element("div", escape(block.text), _STYLES.get(block.style, "")) if block.text else ""
    caption = _element("caption", escape(block.title), "text-align:left") if block.title else ""
    head = "".join(_cell_in_html("th", one.head, left=one.left) for one in block.columns)
    columns = [(one.left, one.left and place >= block.names) for place, one in enumerate(block.columns)]
    body = ""
    for row in block.rows:
        cells = (
            _cell_in_html("td", str(cell), left=left, wraps=wraps, style=str(getattr(cell, "style", "")))
            for cell, (left, wraps) in zip(row, columns, strict=True)
        )
        body += _element("tr", "".join(cells))
    content = f"{caption}<thead>{_element('tr', head)}</thead><tbody>{body}</tbody>"
    return _element("table", content, "margin:.5em 0")


def _cell_in_html(tag: str, text: str, *, left: bool, wraps: bool = False, style: str = "") -> str:
    """A cell, whose line ends and indentation stay."""
    side, space = "left" if left else "right", "pre-wrap" if wraps else "pre"
    css = f"text-align:{side};vertical-align:top;white-space:{space}"
    return _element(tag, escape(text), f"{css};{_STYLES[style]}" if style else css)


def _element(tag: str, content: str, css: str = "") -> str:
    start = f'{tag} style="{css}"' if css else tag
    return f"<{start}>{content}</{tag}>"


# What makes a spreadsheet read a cell as a formula: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write_csv(stream: TextIO, heads: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Writes a line of headings and one for each row after RFC 4180, safe to open in a spreadsheet.

    The stream must not translate line ends, which are CR LF.
    """
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerows(map(csv_cell, row) for row in chain([heads], rows))


def csv_cell(value: Any) -> Any:
    """What stands in a cell of comma-separated values.

    Numbers are written in full; None, NaN and infinities are empty, booleans "true" and "false", lists and
    mappings JSON. A text that a spreadsheet would read as a formula has an apostrophe before it.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, (bool, Mapping, list, tuple)):
        return json.dumps(value)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value
