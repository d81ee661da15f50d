"""Files: written whole or not at all, and over no others unasked; and the folder of caches."""

import hashlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from edgefl.core.errors import RunError, UserError

_OTHER = "choose another --out"


def atomically(files: Mapping[Path, bytes]) -> None:
    """Writes files, of which none gets its final name before all are written; see ``replacing``."""
    with ExitStack() as stack:
        for path, content in files.items():
            temporary = stack.enter_context(replacing(path))
            temporary.write_bytes(content)
            on_disk(temporary)


def cache_folder() -> Path:
    """The folder for what can be downloaded or computed again; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "edgefl"


def on_disk(path: Path) -> None:
    """Waits until a file's content, or a directory's names, would outlast a power cut."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def all_on_disk(paths: Iterable[Path]) -> None:
    """``on_disk`` for many files: at once, since file systems write what is asked for together in one go."""
    with ThreadPoolExecutor(32) as threads:
        list(threads.map(on_disk, paths))


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that is renamed to ``path`` at the end, and removed on failure.

    A link stays: what it leads to is replaced. The file has the mode of any new file, whoever writes it. A
    ``RunError`` says why it cannot be written; an existing file is unchanged then.
    """
    # Unique to the thread, so that two writers of one path do not mix their output.
    file = Path(os.path.realpath(path))
    temporary = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        temporary.touch()
        mode = stat.S_IMODE(temporary.stat().st_mode)
        yield temporary
        # Libraries replace it with a file that only its owner may read.
        temporary.chmod(mode)
        temporary.replace(file)
    except OSError as error:
        raise RunError(f"cannot write {path.name}: {error.strerror or error}", where=str(path)) from error
    finally:
        # Where it could not be made, it cannot be removed either.
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_free(*paths: Path, force: bool) -> None:
    """Refuses to replace files that exist."""
    for path in paths:
        if path.exists() and not force:
            raise _refused(f"{path} exists", f"{_OTHER}, or overwrite it with --force")


def check_out(path: Path, example: str, *, force: bool, suffixes: Sequence[str]) -> None:
    """Refuses, before a run is read, a file that could not be written, or has another suffix."""
    if path.is_dir():
        raise _refused(f"{path} is a folder", f"try --out {path / example}")
    if path.exists() and not path.is_file():
        raise _refused(f"{path} is not a regular file", _OTHER)
    if path.suffix.lower() not in suffixes:
        ends = f"{path.name} must end in {' or '.join(suffixes)}"
        raise _refused(ends, f"try --out {path.parent / example}")
    if not path.parent.is_dir():
        raise _refused(f"there is no folder {path.parent}", f"mkdir -p {path.parent}")
    check_free(path, force=force)


def _refused(what: str, hint: str) -> UserError:
    return UserError(what, where="--out", hint=hint)
