"""Pickles of plain data.

A pickle is a program, and can call any function of the machine that reads it. As Python's own documentation
recommends, the one way to a function is closed: no name is looked up, and so none can be called.
"""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any, NoReturn

from edgefl.core.errors import UserError, short


class _RefusedError(Exception):
    """The pickle asks for a name."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise _RefusedError(f"the pickle asks for {short(f'{module}.{name}')}")


def load(content: bytes, file: str) -> Any:
    """The plain data of a pickle: dicts, lists, text, numbers and the like.

    Args:
        content: the pickle, of any protocol.
        file: its name, for messages.

    Raises:
        UserError: it is not a pickle, is cut off, or asks for anything but plain data.
    """
    try:
        return _Plain(BytesIO(content), encoding="utf-8").load()
    except _RefusedError as error:
        hint = "only plain data are read; nothing in the file was executed"
        raise UserError(str(error), where=file, hint=hint) from None
    # Of a damaged program anything can follow.
    except Exception as error:
        raise UserError("not a pickle, or damaged or cut off", where=file) from error
