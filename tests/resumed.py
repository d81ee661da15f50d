"""Whether a run that was resumed is the one that was never interrupted, bit for bit."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch
from damage import verify

from edgefl.protocol import Tree, flatten, read_tree
from edgefl.store.locks import LOCK
from edgefl.store.reader import Reader, read
from edgefl.store.schema import COLUMNS, SCHEMA

# Facts of the machine, of the process and of how often it is saved, which a resumed run may have others of.
MACHINE = frozenset(
    {
        "host_wall_s",
        "measures_host_s",
        "data_dir",
        "checkpoint_minutes",
        "resumed",
        "versions",
        "code",
        "engine_asked",
        "engine_used",
    }
)
# Which files there are depends on when a run was interrupted; what they hold is compared by what it is of.
_OF_FILES = frozenset({"versions", "states", "outcomes", "checkpoints", "meta"})
_FOLDERS = ("versions", "states", "outcomes")


def difference(one: Path, other: Path, but: Collection[str] = ()) -> str:
    """The first difference of two runs; empty where they are the same.

    Compared are ``plan.yaml``, all rows but for wall times, the last and the best version, each client's
    state, the event hash and what lies in the folders.
    """
    with read(one) as left, read(other) as right:
        return next(_differences(left, right, MACHINE | set(but)), "")


def same_runs(one: Path, other: Path, but: Collection[str] = ()) -> None:
    """Fails with the first difference of two runs; the arguments are those of ``difference``."""
    found = difference(one, other, but)
    assert not found, found


def _differences(left: Reader, right: Reader, but: Collection[str]) -> Iterator[str]:
    yield from _unequal("meta", _facts(left, but), _facts(right, but))
    if (left.folder / "plan.yaml").read_text() != (right.folder / "plan.yaml").read_text():
        yield "plan.yaml differs"
    for table in (name for kind, name, *_ in SCHEMA if kind == "table"):
        if table not in _OF_FILES:
            yield from _unequal(table, _rows(left, table), _rows(right, table))
    if left.event_hash() != right.event_hash():
        yield f"event hashes {left.event_hash()} and {right.event_hash()}"
    for kind in ("version", "best"):
        yield from _unequal_files(kind, _versions(left, kind), _versions(right, kind))
    yield from _unequal_files("state of client", _states(left), _states(right))
    # A lock's file alone says nothing.
    names = [
        sorted(path.name for path in reader.folder.iterdir() if path.name != LOCK) for reader in (left, right)
    ]
    if names[0] != names[1]:
        yield f"the directories hold {names[0]} and {names[1]}"
    for reader in (left, right):
        yield from verify(reader.folder)
        yield from _unknown_files(reader)


def _facts(reader: Reader, but: Collection[str]) -> dict[str, str]:
    return {key: repr(value) for key, value in reader.meta.items() if key not in but}


def _rows(reader: Reader, table: str) -> dict[str, str]:
    """Rows as text, which tells -0.0 from 0.0 and 1 from 1.0, by their place."""
    names = ", ".join(name for name in COLUMNS[table] if not name.startswith("host_"))
    rows = reader.query(f"SELECT {names} FROM {table} ORDER BY rowid")  # noqa: S608 - our own names
    return {str(place): repr(row) for place, row in enumerate(rows)}


def _unequal(what: str, left: dict[str, str], right: dict[str, str]) -> Iterator[str]:
    for key in {**left, **right}:
        if left.get(key) != right.get(key):
            yield f"{what}, {key}: {left.get(key)} and {right.get(key)}"


def _versions(reader: Reader, kind: str) -> dict[Any, tuple[Path, str]]:
    newest = [row[kind] for row in reader.rows("checkpoints")][-1:]
    rows = [row for row in reader.rows("versions") if row["version"] in newest]
    return {row["version"]: (reader.folder / row["file"], row["sha256"]) for row in rows}


def _states(reader: Reader) -> dict[Any, tuple[Path, str]]:
    """The newest of each client, with the job that wrote it."""
    rows = sorted(reader.rows("states"), key=lambda row: row["job"])
    newest = {row["client"]: row for row in rows}
    return {
        (client, row["job"]): (reader.folder / row["file"], row["sha256"])
        for client, row in sorted(newest.items())
    }


def _unequal_files(
    what: str, left: dict[Any, tuple[Path, str]], right: dict[Any, tuple[Path, str]]
) -> Iterator[str]:
    if left.keys() != right.keys():
        yield f"{what}: {sorted(left)} and {sorted(right)}"
        return
    for key, (path, sha256) in left.items():
        other, other_sha256 = right[key]
        yield from _unequal(f"{what} {key}", bits(read_tree(path)), bits(read_tree(other)))
        if sha256 != other_sha256:
            yield f"{what} {key}: {sha256} and {other_sha256}"


def bits(tree: Tree) -> dict[str, str]:
    """Each tensor of a tree as its type, shape and bytes."""
    return {
        name: f"{leaf.dtype} {tuple(leaf.shape)} {leaf.reshape(-1).view(torch.uint8).numpy().tobytes().hex()}"
        for name, leaf in flatten(tree).items()
    }


def _unknown_files(reader: Reader) -> Iterator[str]:
    """Files that no row refers to."""
    known = {row["file"] for table in _FOLDERS for row in reader.rows(table)}
    for name in _FOLDERS:
        for path in sorted((reader.folder / name).glob("*")):
            if f"{name}/{path.name}" not in known:
                yield f"{name}/{path.name} is known to no row"
