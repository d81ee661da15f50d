"""Trees as safetensors files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from edgefl.core.errors import RunError, UserError
from edgefl.core.files import replacing, sha256_of
from edgefl.protocol.trees import Tree, flatten, paths, unflatten


def write_tree(path: Path, tree: Tree) -> str:
    """A tree of tensors as one safetensors file, whole or not at all.

    Returns:
        The file's SHA-256, in hexadecimal.

    Raises:
        RunError: it cannot be written; a file that was there is as it was.
    """
    leaves: dict[str, Any] = {}
    storages: set[int] = set()
    for name, leaf in flatten(tree).items():
        # The format refuses tensors that share memory, and a state may hold one tensor in two places.
        shared = leaf.untyped_storage().data_ptr() in storages
        leaves[name] = leaf.clone() if shared else leaf.contiguous()
        storages.add(leaf.untyped_storage().data_ptr())
    # A flat file has no other place for empty dicts.
    empty = ["/".join(keys) for keys, leaf in paths(tree) if isinstance(leaf, dict)]
    try:
        with replacing(path) as temporary:
            save_file(leaves, temporary, metadata={"empty": json.dumps(empty)})
            return sha256_of(temporary)
    except SafetensorError as error:
        raise RunError(f"cannot write {path.name}: {error}", where=str(path)) from error


def read_tree(path: Path, sha256: str | None = None) -> Tree:
    """The tree that ``write_tree`` wrote.

    Args:
        path: the file.
        sha256: what ``write_tree`` returned; None if the content is not to be compared.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        if sha256 not in {None, sha256_of(path)}:
            raise UserError(f"{path.name} is damaged: its content is not what was written", where=str(path))
        with safe_open(path, framework="pt") as file:
            empty = json.loads((file.metadata() or {}).get("empty", "[]"))
            return unflatten({name: file.get_tensor(name) for name in file.keys()}, empty)  # noqa: SIM118 - no dict
    except (OSError, SafetensorError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{path.name} cannot be read: {error}", where=str(path)) from error
