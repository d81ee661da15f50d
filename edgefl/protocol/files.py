"""Trees as safetensors files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from edgefl.core.errors import RunError, UserError
from edgefl.core.files import replacing
from edgefl.protocol.trees import Tree, flatten, unflatten


def write_tree(path: Path, tree: Tree) -> None:
    """A tree of tensors as one safetensors file, whole or not at all.

    Raises:
        RunError: it cannot be written; a file that was there is as it was.
    """
    leaves: dict[str, Any] = {}
    storages: set[int] = set()
    for name, leaf in flatten(tree).items():
        # The format refuses tensors that share memory; a state may well hold one tensor in two places.
        shared = leaf.untyped_storage().data_ptr() in storages
        leaves[name] = leaf.clone() if shared else leaf.contiguous()
        storages.add(leaf.untyped_storage().data_ptr())
    try:
        with replacing(path) as temporary:
            save_file(leaves, temporary, metadata={"empty": json.dumps(_empty(tree))})
    except SafetensorError as error:
        raise RunError(f"cannot write {path.name}: {error}", where=str(path)) from error


def read_tree(path: Path) -> Tree:
    """The tree that ``write_tree`` wrote.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            empty = json.loads((file.metadata() or {}).get("empty", "[]"))
            return unflatten({name: file.get_tensor(name) for name in file.keys()}, empty)  # noqa: SIM118 - no dict
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path.name} cannot be read: {error}", where=str(path)) from error


def _empty(tree: Tree, prefix: str = "") -> list[str]:
    """The paths of a tree's empty dicts, which a flat file has no other place for."""
    if not isinstance(tree, dict):
        return []
    if not tree:
        return [prefix]
    return [
        path for key, inner in tree.items() for path in _empty(inner, f"{prefix}/{key}" if prefix else key)
    ]
