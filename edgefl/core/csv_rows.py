"""CSV: how all of it is read, and files that records name and whose content they keep as text.

The content is part of a run's identity, and a run that is read back needs no file. Paths are relative to the
working directory or to a directory on EDGEFL_PATH.
"""

import csv
from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache
from io import StringIO
from typing import Any

from pydantic import TypeAdapter, ValidationError

from edgefl.core.catalogue import user_file
from edgefl.core.errors import UserError, short
from edgefl.core.yamls import text_of


class RowError(ValueError):
    """A row is wrong; ``line`` is where in its file it is, or which of rows without a file."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


def read_csv(text: str, row: Any, *, others: bool = False) -> tuple[list[str], list[Any], list[int]]:
    """The table of a CSV text, whose first line names the columns, in any order and case.

    Gives the names of all columns, in lower case; what each line has in those that are known; and the lines'
    numbers. A ``RowError`` says what is wrong. Blanks around fields and empty lines mean nothing.

    Args:
        row: what a line has, a TypedDict: of columns that need not be there, at least one is.
        others: whether there may be other columns.
    """
    check: TypeAdapter[Any] = TypeAdapter(row)
    reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
    rows, lines = list[Any](), list[int]()
    try:
        names = [name.strip().lower() for name in reader.fieldnames or ()]
        _check_names(names, row, others=others)
        reader.fieldnames = names
        for fields in reader:
            if None in fields or None in fields.values():
                given = [one for one in [*fields.values(), *fields.pop(None, [])] if isinstance(one, str)]
                raise RowError(f"{short(','.join(given))!r} must be {','.join(names)}", reader.line_num)
            rows.append(check.validate_python(fields))
            lines.append(reader.line_num)
    except csv.Error as error:
        raise RowError(f"not valid CSV: {error}", reader.reader.line_num) from None
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        what = wrong["msg"].removeprefix("Value error, ")
        raise RowError(f"{wrong['loc'][0]} {short(wrong['input'])!r}: {what}", reader.line_num) from None
    if not rows:
        raise RowError("there are no rows after the first line", 1)
    return names, rows, lines


def csv_text(header: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV, the names of their columns first."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _check_names(names: list[str], row: Any, *, others: bool) -> None:
    known = list(row.__annotations__)
    needed = [name for name in known if name in row.__required_keys__]
    found = [name for name in names if name in known]
    whole = set(needed) <= set(found) and found and len(set(found)) == len(found)
    if not whole or (len(found) < len(names) and not others):
        any_of = f"name, between commas, one or more of {', '.join(known)}"
        what = f"be {','.join(needed)}" if needed else any_of
        raise RowError(f"the first line must {what}", 1)


def kept(
    value: Any, of_file: Callable[[str], str], of_rows: Callable[[str], str], known: Container[str]
) -> Any:
    """For a record's validator: its plain data, with ``rows`` in canonical form in place of the ``file``.

    ``of_file`` makes rows of a file's text, ``of_rows`` of such rows; both raise ``RowError``. Data with an
    unknown key are left as they are: pydantic tells it.
    """
    if not isinstance(value, dict) or any(key not in known for key in value):
        return value
    file, rows = value.get("file"), value.get("rows")
    if (file is None) == (rows is None):
        raise ValueError("give either 'file' or 'rows'")
    if isinstance(file, str):
        return {**value, "file": None, "rows": file_rows(file, of_file)}
    return {**value, "rows": of_rows(rows)} if isinstance(rows, str) else value


def file_rows(file: str, of_file: Callable[..., Any], *settings: Any) -> Any:
    """What ``of_file``, a function of a module's top level, makes of a file's text and of ``settings``."""
    path = user_file(file)
    return rows_of(text_of(path), str(path), of_file, *settings)


@lru_cache(maxsize=64)
def rows_of(text: str, file: str, of_file: Callable[..., Any], *settings: Any) -> Any:
    """As ``file_rows``, of a text; cached, as the runs of a sweep share files. Mistakes are at FILE:LINE."""
    try:
        return of_file(text, *settings)
    except RowError as error:
        raise UserError(str(error), where=f"{file}:{error.line}") from None
