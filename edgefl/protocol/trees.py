"""Trees: nested dicts of tensors, and what is done with them leaf by leaf.

A model's weights are a tree whose first level are its parts: ``{"body": {name: tensor}, "head":
{...}, "buffers": {...}}``. A payload's first level names the parts that byte counts are kept by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

Tree: TypeAlias = Any  # Tensor | dict[str, Tree]; recursive aliases defeat mypy on tensors' methods
Payload: TypeAlias = dict[str, Any]

BUFFERS = "buffers"


def leaves(tree: Tree) -> list[Tensor]:
    """The tensors of a tree, in the order of its dicts."""
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for inner in tree.values() for leaf in leaves(inner)]


def rebuild(tree: Tree, values: Iterable[Tensor]) -> Tree:
    """A tree of the shape of ``tree`` whose leaves are ``values``, in the order of ``leaves``."""
    source = iter(values)

    def walk(node: Tree) -> Tree:
        return next(source) if isinstance(node, Tensor) else {key: walk(inner) for key, inner in node.items()}

    return walk(tree)


def tree_map(function: Callable[..., Tensor], tree: Tree, *others: Tree) -> Tree:
    """``function`` on every leaf of ``tree`` and the leaves of ``others`` in the same places."""
    if isinstance(tree, Tensor):
        return function(tree, *others)
    return {key: tree_map(function, inner, *(other[key] for other in others)) for key, inner in tree.items()}


def flatten(tree: Tree, prefix: str = "") -> dict[str, Tensor]:
    """The leaves by their path, keys joined with "/", for files that hold flat names only."""
    if isinstance(tree, Tensor):
        return {prefix: tree}
    return {
        path: leaf for key, inner in tree.items() for path, leaf in flatten(inner, f"{prefix}/{key}" if prefix else key).items()
    }


def unflatten(flat: Mapping[str, Tensor], empty: Iterable[str] = ()) -> Tree:
    """The tree whose ``flatten`` is ``flat``; ``empty`` are the paths of its empty dicts."""
    tree: dict[str, Any] = {}
    for path, leaf in [*flat.items(), *((path, None) for path in empty)]:
        *folders, last = path.split("/") if path else ["", ""]
        node = tree
        for folder in filter(None, folders):
            node = node.setdefault(folder, {})
        if leaf is not None:
            node[last] = leaf
        elif last:
            node[last] = {}
    return tree


def nbytes(tree: Tree) -> int:
    """The bytes of a tree's values."""
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(tree))


def bytes_by_part(payload: Payload) -> dict[str, int]:
    """The bytes of a payload's values, by its first level."""
    return {part: nbytes(tree) for part, tree in payload.items()}


def weighted_mean(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """The mean of trees of one shape, weighted by ``weights`` over their sum.

    Summed in the order given, so that a caller who sorts gets the same bits every time.

    Raises:
        ValueError: there is nothing to average, or the weights do not sum to more than 0.
    """
    total = sum(weights)
    if not trees or total <= 0:
        raise ValueError("a mean needs at least one tree and a positive total weight")
    columns = [leaves(tree) for tree in trees]
    if not columns[0]:
        return trees[0]
    sums = [leaf * (weights[0] / total) for leaf in columns[0]]
    for column, weight in zip(columns[1:], weights[1:], strict=True):
        torch._foreach_add_(sums, column, alpha=weight / total)
    return rebuild(trees[0], sums)
