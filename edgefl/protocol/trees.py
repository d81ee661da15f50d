"""Trees: nested dicts of tensors, and functions that work on them leaf by leaf.

``leaves``, ``tree_map``, ``rebuild``, ``structure`` and ``matched`` also take lists and tuples among the
dicts, and leaves of any type.

A model's weights are a tree whose first level are its parts: ``{"body": {name: tensor}, "head":
{...}, "buffers": {...}}``. A payload's first level names the parts that byte counts are kept by.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

Tree: TypeAlias = Any  # Tensor | dict[str, Tree]; recursive aliases defeat mypy on tensors' methods
Payload: TypeAlias = dict[str, Any]

BUFFERS = "buffers"
_NODES = (dict, list, tuple)


def leaves(tree: Tree) -> list[Any]:
    """The leaves of a tree, in the order of its dicts, lists and tuples."""
    if not isinstance(tree, _NODES):
        return [tree]
    collected: list[Any] = []
    _collect(tree, collected)
    return collected


def _collect(node: Tree, collected: list[Any]) -> None:
    # Written out, because torch's own pytree takes longer than a small model's step.
    for inner in node.values() if isinstance(node, dict) else node:
        if isinstance(inner, _NODES):
            _collect(inner, collected)
        else:
            collected.append(inner)


def tree_map(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """``function`` on every leaf of ``tree`` and the leaves of ``others`` in the same places.

    With others, all are nested dicts.

    Raises:
        KeyError: another tree lacks a key of ``tree``.
    """
    if others:
        if not isinstance(tree, dict):
            return function(tree, *others)
        return {
            key: tree_map(function, inner, *(other[key] for other in others)) for key, inner in tree.items()
        }
    if isinstance(tree, dict):
        return {
            key: tree_map(function, inner) if isinstance(inner, _NODES) else function(inner)
            for key, inner in tree.items()
        }
    if not isinstance(tree, _NODES):
        return function(tree)
    items = [tree_map(function, inner) if isinstance(inner, _NODES) else function(inner) for inner in tree]
    if isinstance(tree, list):
        return items
    return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)


def rebuild(tree: Tree, values: Iterable[Any]) -> Tree:
    """A tree of the shape of ``tree`` whose leaves are ``values``, in the order of ``leaves``."""
    source = iter(values)
    return tree_map(lambda _: next(source), tree)


def parts_of(tree: Tree, parts: Iterable[str]) -> Tree:
    """Some parts of a tree."""
    return {part: tree[part] for part in parts}


def zeros(tree: Tree, parts: Iterable[str]) -> Tree:
    """Zeros of the shapes of some parts of a tree."""
    return tree_map(torch.zeros_like, parts_of(tree, parts))


def structure(tree: Tree) -> Tree:
    """The tree with None for every leaf: equal for trees of equal keys, in whatever order."""
    return tree_map(lambda _: None, tree)


def matched(tree: Tree, other: Tree) -> list[Any]:
    """The leaves of ``other`` in the order that ``tree`` has them in.

    Leaves are matched by their keys, never by the order of a dict: a tree read from a file may have another.

    Raises:
        KeyError: the trees' keys differ.
    """
    if not isinstance(tree, _NODES):
        return [other]
    collected: list[Any] = []
    _match(tree, other, collected)
    return collected


def _match(node: Tree, other: Tree, collected: list[Any]) -> None:
    if isinstance(node, dict):
        if node.keys() != other.keys():
            raise KeyError(f"one tree has {sorted(node)}, another {sorted(other)}")
        pairs: Iterable[Any] = ((inner, other[key]) for key, inner in node.items())
    else:
        pairs = zip(node, other, strict=True)
    for inner, twin in pairs:
        if isinstance(inner, _NODES):
            _match(inner, twin, collected)
        else:
            collected.append(twin)


def unstacked(tree: Tree | None, count: int) -> list[Any]:
    """A tree for each of the ``count`` rows that a tree's tensors have; None for each if it is None."""
    if tree is None:
        return [None] * count
    unbound = [leaf.unbind() for leaf in leaves(tree)]
    return [rebuild(tree, (rows[place] for rows in unbound)) for place in range(count)]


def identical(tree: Tree, other: Tree) -> bool:
    """Whether two trees hold the very same leaves under the same keys."""
    if structure(tree) != structure(other):
        return False
    return all(one is twin for one, twin in zip(leaves(tree), matched(tree, other), strict=True))


def shapes(tree: Tree) -> Tree:
    """The tree with (shape, type) for every tensor, and None for other leaves."""
    return tree_map(lambda leaf: (leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else None, tree)


def paths(tree: Tree, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The leaves of nested dicts, empty dicts among them, each with the keys that lead to it."""
    if not isinstance(tree, dict) or not tree:
        yield prefix, tree
        return
    for key, inner in tree.items():
        yield from paths(inner, (*prefix, key))


def counterparts(payload: Tree, reference: Tree | None) -> list[Tensor | None]:
    """For each of ``leaves(payload)`` the tensor of its path, shape and type in ``reference``, if any."""
    others = dict(paths(reference))
    pairs = ((leaf, others.get(path)) for path, leaf in paths(payload) if isinstance(leaf, Tensor))
    return [other if shapes(other) == shapes(leaf) else None for leaf, other in pairs]


def flatten(tree: Tree) -> dict[str, Tensor]:
    """The leaves by their path, keys joined with "/", for files that hold flat names only.

    Raises:
        ValueError: a key is no text, empty or holds a "/", so that its path would not lead back to it.
    """
    flat = {}
    for path, leaf in paths(tree):
        for key in path:
            if not isinstance(key, str) or not key or "/" in key:
                raise ValueError(f"a key of a saved tree must be a name without '/', not {key!r}")
        if not isinstance(leaf, dict):
            flat["/".join(path)] = leaf
    return flat


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
    """The bytes of a tree's tensors."""
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(tree))


def bytes_by_part(payload: Payload) -> dict[str, int]:
    """The bytes of a payload's tensors, by its first level."""
    return {part: nbytes(tree) for part, tree in payload.items()}


def weighted_mean(trees: Sequence[Tree], weights: Sequence[float]) -> Tree:
    """The mean of trees of the same keys, weighted by ``weights`` over their sum.

    Summed in the order given, so that a caller who sorts gets the same bits every time.

    Raises:
        KeyError: the trees' keys differ.
        ValueError: there are no trees, or the weights do not sum to more than 0.
    """
    total = sum(weights)
    if not trees or total <= 0:
        raise ValueError("a mean needs at least one tree and a positive total weight")
    first = trees[0]
    sums = [leaf * (weights[0] / total) for leaf in leaves(first)]
    for tree, weight in zip(trees[1:], weights[1:], strict=True):
        values = matched(first, tree)
        if sums:
            torch._foreach_add_(sums, values, alpha=weight / total)
    return rebuild(first, sums)
