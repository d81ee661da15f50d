"""Comma-separated values after RFC 4180, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

# What makes a spreadsheet read a cell as a formula: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write(stream: TextIO, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a line of headings and one for each row; lines end in CR LF.

    Args:
        stream: without translation of line ends.
        heads: the columns' names.
        rows: their values, as ``cell`` takes them.
    """
    add(stream, [list(map(cell, heads))])
    add(stream, (list(map(cell, row)) for row in rows))


def add(stream: TextIO, rows: Iterable[Sequence[Any]]) -> None:
    """Writes rows of what ``cell`` gives, of numbers, and of None, which is empty; all at once."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\r\n").writerows(rows)
    stream.write(buffer.getvalue())


def cell(value: Any) -> Any:
    """What stands in a cell.

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
