"""Tables in LaTeX, for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.console import RenderableType

from edgefl.show.table import Line, Table, parts
from edgefl.show.texts import visible

PREAMBLE = r"% \usepackage{booktabs}"

# A bracket or a star after \\ would be its argument, and the signs of comparison have no glyphs in LaTeX's
# first encoding. Other than ASCII by code point, since some of it looks like ASCII.
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#",
    "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\char34{}", "`": r"\char96{}", "'": r"\char39{}",
    "[": "{[}", "]": "{]}", "*": "{*}",
    chr(0xB1): r"$\pm$", chr(0xD7): r"$\times$", chr(0xB7): r"$\cdot$", chr(0xB5): r"$\mu$",
    chr(0x3BC): r"$\mu$", chr(0xB2): r"$^2$", chr(0xB0): r"$^\circ$", chr(0x2192): r"$\rightarrow$",
    chr(0x2264): r"$\leq$", chr(0x2265): r"$\geq$", chr(0x2013): "--", chr(0x2014): "---",
    chr(0x2026): r"\ldots{}",
}  # fmt: skip
# Two hyphens would be a dash.
_HYPHEN = "-{}"
_ANY = re.compile("|".join([*map(re.escape, _SPECIAL), "-(?=-)"]))
_EN_DASH = {"-": "--"}
_ROOM = r"\phantom{ *}"


def latex(view: RenderableType) -> str:
    """Its tables as ``tabular`` environments; its lines, which a caption may want, as comments.

    Letters beyond Latin ones need XeLaTeX or LuaLaTeX and a font that has them.
    """
    blocks = list(parts(view))
    tables = ["\n".join([PREAMBLE, *_table(one)]) for one in blocks if isinstance(one, Table)]
    notes = [f"% {one.text.replace(chr(10), ' ')}" for one in blocks if isinstance(one, Line) and one.text]
    return "\n\n".join(tables) + "\n" + "".join(f"{note}\n" for note in notes)


def _table(table: Table) -> Iterator[str]:
    yield rf"\begin{{tabular}}{{{''.join('l' if one.left else 'r' for one in table.columns)}}}"
    yield r"\toprule"
    yield _line(map(_head, table.heads))
    yield r"\midrule"
    for label, *cells in (map(str, row) for row in table.rows):
        yield _line([_label(label), *map(_cell, cells)])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _line(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _head(text: str) -> str:
    first, *others = map(escaped, text.split("\n"))
    return r" \\ ".join([rf"\shortstack[r]{{{first}", *others]) + "}" if others else first


def _cell(text: str) -> str:
    """A figure; the room of a mark that others of its column have stays empty."""
    return (_EN_DASH.get(text) or escaped(text.strip(" "))) + _ROOM * text.endswith("  ")


def _label(text: str) -> str:
    return r"\quad " * text.startswith(" ") + escaped(text.strip(" "))


def escaped(text: str) -> str:
    """A text that LaTeX shows as it is."""
    return _ANY.sub(lambda found: _SPECIAL.get(found[0], _HYPHEN), visible(text).replace("\n", " "))
