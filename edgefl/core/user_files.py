"""Data files that users name in scenarios and fleets."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from pydantic_core import PydanticCustomError

from edgefl.core.catalogue import user_folders
from edgefl.core.errors import short


def found(file: str) -> Path:
    """The absolute path of a file.

    Args:
        file: its path, relative to the working directory or to a directory on EDGEFL_PATH.

    Raises:
        PydanticCustomError: there is none.
    """
    for folder in (Path(), *user_folders()):
        # A name that is too long, or the home of nobody, is no file either.
        with suppress(OSError, RuntimeError):
            path = folder / Path(file).expanduser()
            if path.is_file():
                return path.absolute()
    context = {
        "what": f"no file {short(file)!r}",
        "hint": "give a path relative to the working directory or to a directory on EDGEFL_PATH",
    }
    raise PydanticCustomError("unknown_name", "{what}", context)
