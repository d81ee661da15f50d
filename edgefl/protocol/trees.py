"""Trees: nested dicts of tensors, and what is done with them leaf by leaf.

A model's weights are a tree whose first level are its parts: ``{"body": {name: tensor}, "head":
{...}, "buffers": {...}}``. A payload's first level names the parts that byte counts are kept by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


def flatten(tree: Tree) -> dict[str, Tensor]:
    """The leaves by their path, keys joined with "/", for files that hold flat names only.

    Raises:
        ValueError: a key is empty or holds a "/", so that its path would not lead back to it.
    """
    return {"/".join(path): leaf for path, leaf in _paths(tree, ())}


def _paths(tree: Tree, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Tensor]]:
    if isinstance(tree, Tensor):
        yield path, tree
        return
    for key, inner in tree.items():
        if not key or "/" in key:
            raise ValueError(f"the key {key!r} cannot stand in a path")
        yield from _paths(inner, (*path, key))


def unflatten(flat: Mapping[str, Tensor], empty: Iterable[str] = ()) -> Tree:
    """The tree whose ``flatten`` is ``flat``; ``empty`` are the paths of its empty dicts."""
    if "" in flat:
        return flat[""]
    tree: dict[str, Any] = {}
    for path, leaf in flat.items():
        *folders, last = path.split("/")
        _folder(tree, folders)[last] = leaf
    for path in filter(None, empty):
        _folder(tree, path.split("/"))
    return tree


def _folder(tree: dict[str, Any], path: Iterable[str]) -> dict[str, Any]:
    for key in path:
        tree = tree.setdefault(key, {})
    return tree


def nbytes(tree: Tree) -> int:
    """The bytes of a tree's values."""
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(tree))


def bytes_by_part(payload: Payload) -> dict[str, int]:
    """The bytes of a payload's values, by its first level."""
    return {part: nbytes(tree) for part, tree in payload.items()}


def weighted_mean(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """The mean of trees of one shape, weighted by ``weights`` over their sum.

    Summed in the order given, so that a caller who sorts gets the same bits every time. Leaves are matched by
    their keys, never by the order of a dict: a tree read back from a file may have another.

    Raises:
        KeyError: the trees' keys differ.
        ValueError: there is nothing to average, or the weights do not sum to more than 0.
    """
    total = sum(weights)
    if not trees or total <= 0:
        raise ValueError("a mean needs at least one tree and a positive total weight")
    first = trees[0]
    sums = [leaf * (weights[0] / total) for leaf in leaves(first)]
    for tree, weight in zip(trees[1:], weights[1:], strict=True):
        matched = _in_order_of(first, tree)
        if sums:
            torch._foreach_add_(sums, matched, alpha=weight / total)
    return rebuild(first, sums)


def _in_order_of(first: Tree, other: Tree) -> list[Tensor]:
    """The leaves of ``other`` in the order that ``first`` has them in."""
    if isinstance(first, Tensor):
        return [other]
    if first.keys() != other.keys():
        raise KeyError(f"one tree has {sorted(first)}, another {sorted(other)}")
    return [leaf for key, inner in first.items() for leaf in _in_order_of(inner, other[key])]
