"""Trees as safetensors files."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from edgefl.core.errors import RunError, UserError
from edgefl.core.files import replacing, sha256_of
from edgefl.protocol.trees import Tree, flatten, matched, paths, rebuild, structure, unflatten

# In a file's metadata: the tree's keys in order, as JSON; null stands for a tensor.
_ORDER = "order"


def write_tree(path: Path, tree: Tree) -> str:
    """A tree of tensors as one safetensors file, whole or not at all.

    It outlasts a power cut once ``edgefl.core.files.on_disk`` was called for it and for its directory.

    Returns:
        The file's SHA-256, in hexadecimal.

    Raises:
        RunError: it cannot be written; a file that was there is as it was.
    """
    leaves: dict[str, Any] = {}
    storages: set[int] = set()
    try:
        flat = flatten(tree)
    except ValueError as error:
        hint = "what methods send and keep is saved: name its parts by text, such as str(label)"
        raise RunError(f"cannot write {path.name}: {error}", where=str(path), hint=hint) from error
    for name, leaf in flat.items():
        # The format refuses tensors that share memory, and a state may hold one tensor in two places.
        shared = leaf.untyped_storage().data_ptr() in storages
        leaves[name] = leaf.clone() if shared else leaf.contiguous()
        storages.add(leaf.untyped_storage().data_ptr())
    try:
        with replacing(path) as temporary:
            save_file(leaves, temporary, metadata={_ORDER: json.dumps(structure(tree))})
            return sha256_of(temporary)
    except SafetensorError as error:
        raise RunError(f"cannot write {path.name}: {error}", where=str(path)) from error


def read_tree(path: Path, sha256: str | None = None) -> Tree:
    """The tree that ``write_tree`` wrote, its keys in the same order, in memory of its own.

    A file has another order of keys, and its tensors are mapped at odd addresses. Without the order and a
    copy, sums over leaves and kernels would give other bits than for the tree that was written.

    Args:
        sha256: what ``write_tree`` returned; None if the content is not to be compared.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        if sha256 not in {None, sha256_of(path)}:
            raise UserError(f"{path.name} is damaged: its content is not what was written", where=str(path))
        with safe_open(path, framework="pt") as file:
            flat = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - no dict
            order = (file.metadata() or {}).get(_ORDER)
        if order is None:
            return unflatten(flat)
        keys = json.loads(order)
        empty = ["/".join(place) for place, leaf in paths(keys) if isinstance(leaf, dict)]
        return rebuild(keys, matched(keys, unflatten(flat, empty)))
    except (OSError, SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"{path.name} cannot be read: {error}", where=str(path)) from error
