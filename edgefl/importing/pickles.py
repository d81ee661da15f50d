"""Pickles of plain data: dicts, lists, text, integers, floats, booleans and None, and nothing else.

A pickle is a program, and can call any function of the machine that reads it. Here only the opcodes that
build plain data are known; each that would import, call or restore anything else is refused by what it asks
for. ``pickle.Unpickler`` itself, which is written in C, allocates what a file claims to hold before that is
read, and a table as large as the largest index that a file names. Its twin in Python does neither, so that
one is restricted here.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable
from io import BytesIO
from typing import Any, ClassVar, NoReturn

from edgefl.core.errors import UserError, short

_PLAIN = (
    *("PROTO", "FRAME", "STOP", "MARK"),
    *("NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"),
    *("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("DICT", "EMPTY_DICT", "SETITEM", "SETITEMS", "LIST", "EMPTY_LIST", "APPEND", "APPENDS"),
    *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
)
_NAMED = ("GLOBAL", "STACK_GLOBAL", "INST")
_EXTENSIONS = ("EXT1", "EXT2", "EXT4")
_WHOLE = ("INT", "LONG", "LONG1", "LONG4")
_BITS = 64

Step = Callable[[Any], None]


class _RefusedError(Exception):
    """The pickle is not plain data; the message says what it asks for."""


def _code(name: str) -> int:
    opcode: bytes = getattr(pickle, name)
    return opcode[0]


def _refusing(name: str) -> Step:
    def refuse(_: Any) -> NoReturn:
        raise _RefusedError(f"the pickle uses the opcode {name}")

    return refuse


def _short(step: Step) -> Step:
    def read(reader: Any) -> None:
        step(reader)
        if reader.stack[-1].bit_length() > _BITS:
            raise _RefusedError(f"the pickle has an integer of more than {_BITS} bits")

    return read


def _extension(_: Any) -> NoReturn:
    raise _RefusedError("the pickle asks for a class of the extension registry")


def _steps() -> dict[int, Step]:
    known: dict[int, Step] = pickle._Unpickler.dispatch  # noqa: SLF001 - see above; it has been there since 3.0
    steps = {ord(one.code): _refusing(one.name) for one in pickletools.opcodes}
    steps |= {_code(name): known[_code(name)] for name in (*_PLAIN, *_NAMED)}
    steps |= {_code(name): _short(known[_code(name)]) for name in _WHOLE}
    return steps | {_code(name): _extension for name in _EXTENSIONS}


class _Reader(pickle._Unpickler):  # noqa: SLF001
    stack: list[Any]
    dispatch: ClassVar[dict[int, Step]] = _steps()

    def find_class(self, module: str, name: str) -> NoReturn:
        raise _RefusedError(f"the pickle asks for {short(f'{module}.{name}')}")


def load(content: bytes, file: str) -> Any:
    """The plain data of a pickle.

    Args:
        content: the pickle, of any protocol.
        file: its name, for messages.

    Raises:
        UserError: it is not a pickle, is cut off, or asks for anything but plain data.
    """
    try:
        return _Reader(BytesIO(content), encoding="utf-8").load()
    except _RefusedError as error:
        raise UserError(
            str(error),
            where=file,
            hint="only dict, list, int, float, str, bool and None are read; nothing in the file was executed",
        ) from None
    except (EOFError, IndexError) as error:
        raise UserError("not a pickle, or cut off", where=file) from error
    # Of a damaged program anything can follow.
    except Exception as error:
        raise UserError("not a valid pickle", where=file) from error
