"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from edgefl.core.errors import RunError


def atomically(path: Path, content: bytes) -> None:
    """Writes a file, whole or not at all.

    Raises:
        RunError: it cannot be written; a file that was there is as it was.
    """
    all_atomically({path: content})


def all_atomically(files: Mapping[Path, bytes]) -> None:
    """Writes files that belong together: none takes its name before all are written.

    Raises:
        RunError: one cannot be written; files that were there are as they were.
    """
    with ExitStack() as stack:
        for path, content in files.items():
            temporary = stack.enter_context(replacing(path))
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name that becomes ``path`` at the end; a failure leaves nothing under it."""
    # A name of this thread's own: two writers of one path would mix what they write.
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise RunError(f"cannot write {path.name}: {error.strerror or error}", where=str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
