"""Trees some of whose tensors hold one value per client.

A ``Stack`` is a leaf whose tensor has a first dimension C that counts clients. ``over`` calls a function
under ``vmap`` on trees with such leaves; all clients share the other leaves, which are passed unchanged. The
result is a tree of the same kind.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from edgefl.protocol import leaves, rebuild, structure, tree_map

# Numbers in a row: two vector registers.
_SHORT = 32


class Stack:
    """One tensor for each client, stacked along the first dimension (C, ...)."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor) -> None:
        self.value = value


def stack(trees: Sequence[Any]) -> Any:
    """One tree from trees of one structure; a tensor that all of them share is kept.

    Raises:
        ValueError: two trees differ in a leaf that is not a tensor.
    """
    stacked = []
    for same in zip(*map(leaves, trees), strict=True):
        leaf = same[0]
        if all(one is leaf for one in same):
            stacked.append(leaf)
        elif isinstance(leaf, Tensor):
            stacked.append(Stack(torch.stack(same)))
        elif all(one == leaf for one in same):
            stacked.append(leaf)
        else:
            raise ValueError(f"clients cannot be stacked: {leaf!r} is not the same for all")
    return rebuild(trees[0], stacked)


def over(function: Callable[..., Any], *trees: Any) -> Any:
    """``function`` of every client's trees at once.

    Args:
        function: pure, except that it may write to stacked tensors in place.
        trees: its arguments, with ``Stack`` leaves where clients differ; at least one of them.
    """
    given = leaves(trees)
    same = {id(leaf) for leaf in given if isinstance(leaf, Tensor)}
    returned: list[Any] = []

    def one(*values: Tensor) -> tuple[Tensor, ...]:
        source = iter(values)
        each = rebuild(trees, (next(source) if isinstance(leaf, Stack) else leaf for leaf in given))
        returned.append(function(*each))
        return tuple(leaf for leaf in leaves(returned[0]) if _own(leaf, same))

    stacks = [leaf.value for leaf in given if isinstance(leaf, Stack)]
    # vmap refuses randomness: draws would depend on a client's place in the group.
    values = iter(torch.vmap(one)(*stacks))
    return tree_map(lambda leaf: Stack(_real(next(values))) if _own(leaf, same) else leaf, returned[0])


def _own(leaf: Any, same: set[int]) -> bool:
    """Whether a returned leaf is a tensor of each client's own."""
    return isinstance(leaf, Tensor) and id(leaf) not in same


def _real(value: Tensor) -> Tensor:
    """A tensor that can be written to: vmap expands results that no client's data went into."""
    if not value.dim() or value.stride(0):
        return value
    own = _turned(value)
    return own.contiguous() if own is value else own


def chosen(tree: Any, places: Sequence[int]) -> Any:
    """The tree of some clients: copies of their rows."""
    return tree_map(lambda leaf: Stack(leaf.value[places]) if isinstance(leaf, Stack) else leaf, tree)


def put_back(tree: Any, places: Sequence[int], part: Any, count: int) -> Any:
    """The tree of ``count`` clients with some clients' rows replaced; stacks are written in place.

    Leaves that are not tensors, which are at the same places in both trees, stay those of ``tree``.
    """
    found = []
    for old, new in zip(leaves(tree), leaves(part), strict=True):
        own = old
        if isinstance(new, (Stack, Tensor)) and new is not old:
            own = old if isinstance(old, Stack) else spread(old, count)
            own.value[places] = unwrapped(new)
        found.append(own)
    return rebuild(tree, found)


def kinds(tree: Any) -> list[Any]:
    """The keys of a tree, and each leaf's shape and type for one client; None for what is no tensor."""
    rows = (leaf.value[0] if isinstance(leaf, Stack) else leaf for leaf in leaves(tree))
    return [structure(tree), *((row.shape, row.dtype) if isinstance(row, Tensor) else None for row in rows)]


def spread(tree: Any, count: int) -> Any:
    """The tree with every shared tensor copied for each of ``count`` clients."""
    return tree_map(
        lambda leaf: Stack(leaf.expand(count, *leaf.shape).clone()) if isinstance(leaf, Tensor) else leaf,
        tree,
    )


def turned(tree: Any) -> Any:
    """The tree with stacked matrices (C, m, n) laid out in memory as (C, n, m), except those of few rows.

    A linear layer multiplies by its weight's transpose, and the weight's gradient comes out as one.
    """
    return tree_map(lambda leaf: Stack(_turned(leaf.value)) if isinstance(leaf, Stack) else leaf, tree)


def _turned(value: Tensor) -> Tensor:
    matrix = value.dim() == 3  # noqa: PLR2004 - clients and a matrix
    # Unless its columns are short: batched products on a CPU take up to three times as long where a matrix's
    # rows in memory are short and the other side is longer.
    return value.mT.contiguous().mT if matrix and value.size(1) >= min(value.size(2), _SHORT) else value


def rows(tree: Any, count: int) -> Any:
    """The tree of plain tensors (C, ...), row after row; shared tensors are expanded, not copied."""
    return tree_map(
        lambda leaf: leaf.value.contiguous() if isinstance(leaf, Stack) else leaf.expand(count, *leaf.shape),
        tree,
    )


def unwrapped(tree: Any) -> Any:
    """The tree with plain tensors (C, ...) for stacks."""
    return tree_map(lambda leaf: leaf.value if isinstance(leaf, Stack) else leaf, tree)


def wrapped(tree: Any) -> Any:
    """The tree, all of whose tensors are (C, ...), with stacks for them."""
    return tree_map(lambda leaf: Stack(leaf) if isinstance(leaf, Tensor) else leaf, tree)


def fixed(tree: Any) -> list[Any]:
    """The leaves that are not tensors, such as a step counter."""
    return [leaf for leaf in leaves(tree) if not isinstance(leaf, (Stack, Tensor))]


def with_fixed(tree: Any, values: Sequence[Any]) -> Any:
    """The tree with ``values`` for the leaves that ``fixed`` lists."""
    source = iter(values)
    return tree_map(lambda leaf: leaf if isinstance(leaf, (Stack, Tensor)) else next(source), tree)
