"""CSV files that records name and whose content, not their name, they keep as text.

The content is part of a run's identity, and a run that is read back needs no file. A record with a ``file``
and ``rows`` is written as::

    @model_validator(mode="before")
    @classmethod
    def _content(cls, value: Any) -> Any:
        return kept(value, of_file, of_rows, cls.model_fields)

``of_file`` makes the rows of a file's text, and ``of_rows`` makes them of such rows, in one canonical form;
both raise ``RowError`` for a mistake. ``file_rows`` is for a record whose files are named otherwise.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from edgefl.core.errors import UserError
from edgefl.core.user_files import found
from edgefl.core.yamls import text_of


class CsvLine(NamedTuple):
    """A line of a CSV file.

    Attributes:
        fields: without the spaces around them.
        number: 1-based; of a record of several lines, that of the last.
    """

    fields: list[str]
    number: int


class RowError(ValueError):
    """A row is wrong; ``line`` is where in its file it is."""

    def __init__(self, what: str, line: int) -> None:
        """Takes the message and the line."""
        super().__init__(what)
        self.line = line


def lines(text: str) -> Iterator[CsvLine]:
    """The lines of a CSV text that are not empty.

    Raises:
        RowError: one is no CSV.
    """
    reader = csv.reader(text.splitlines())
    try:
        for fields in reader:
            if fields:
                yield CsvLine([field.strip() for field in fields], reader.line_num)
    except csv.Error as error:
        raise RowError(f"not valid CSV: {error}", reader.line_num) from None


def finite(text: str) -> float:
    """A decimal number.

    Raises:
        ValueError: it is none, or is infinite.
    """
    value = float(text)
    if not math.isfinite(value) or "_" in text:
        raise ValueError(text)
    return value


def kept(
    value: Any, of_file: Callable[[str], str], of_rows: Callable[[str], str], known: Container[str]
) -> Any:
    """A record's plain data with ``rows`` in canonical form in place of the file.

    Data with a key that is not known is left as it is: pydantic tells it.

    Raises:
        ValueError: both ``file`` and ``rows`` are given, or neither, or rows are wrong.
        PydanticCustomError: there is no such file.
        UserError: the file is wrong.
    """
    if not isinstance(value, dict) or any(key not in known for key in value):
        return value
    file, rows = value.get("file"), value.get("rows")
    if (file is None) == (rows is None):
        raise ValueError("give either 'file' or 'rows'")
    if isinstance(file, str):
        return {**value, "file": None, "rows": file_rows(file, of_file)}
    return {**value, "rows": of_rows(rows)} if isinstance(rows, str) else value


def file_rows(file: str, of_file: Callable[[str], str]) -> str:
    """What ``of_file`` makes of a file's text; its mistakes are placed at FILE:LINE.

    Args:
        file: its path, relative to the working directory or to a directory on EDGEFL_PATH.
        of_file: a function of the module's top level, so that its answers can be cached.

    Raises:
        PydanticCustomError: there is no such file.
        UserError: the file is wrong.
    """
    path = found(file)
    return _placed(text_of(path), str(path), of_file)


@lru_cache(maxsize=4)
def _placed(text: str, file: str, of_file: Callable[[str], str]) -> str:
    """Cached, as the runs of a sweep share files."""
    try:
        return of_file(text)
    except RowError as error:
        raise UserError(str(error), where=f"{file}:{error.line}") from None
