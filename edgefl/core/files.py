"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgefl.core.errors import RunError


def atomically(path: Path, content: bytes) -> None:
    """Writes a file, whole or not at all.

    Raises:
        RunError: it cannot be written; a file that was there is as it was.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
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
        raise RunError(f"cannot write {path.name}: {error}", where=str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
