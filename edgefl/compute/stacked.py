"""Functions over stacks: trees some of whose tensors hold one value a client.

A ``Stack`` is a leaf whose tensor has a first dimension C that counts clients. ``over`` calls a function
under ``vmap`` on trees with such leaves; other leaves are the same for all clients and are passed as they
are. What the function returns is a tree of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from edgefl.protocol import leaves, rebuild, structure, tree_map

# Numbers in a row, two vector registers of them.
_SHORT = 32


class Stack:
    """One tensor for each client, stacked along the first dimension (C, ...)."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor) -> None:
        self.value = value


def stack(trees: Sequence[Any]) -> Any:
    """One tree of trees of one shape; a tensor that all of them share is kept as it is.

    Raises:
        ValueError: two trees differ in something that is no tensor.
    """
    found = []
    for same in zip(*map(leaves, trees), strict=True):
        leaf = same[0]
        if all(one is leaf for one in same):
            found.append(leaf)
        elif isinstance(leaf, Tensor):
            found.append(Stack(torch.stack(same)))
        elif all(one == leaf for one in same):
            found.append(leaf)
        else:
            raise ValueError(f"clients that differ in {leaf!r} cannot be stacked")
    return rebuild(trees[0], found)


def over(function: Callable[..., Any], *trees: Any) -> Any:
    """``function`` of every client's trees at once.

    Args:
        function: pure but for what it writes into stacked tensors in place.
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
    # No randomness: what is drawn inside would depend on a client's place in the group.
    values = iter(torch.vmap(one)(*stacks))
    return tree_map(lambda leaf: Stack(_real(next(values))) if _own(leaf, same) else leaf, returned[0])


def _own(leaf: Any, same: set[int]) -> bool:
    """Whether a leaf that came back is a tensor of each client's own."""
    return isinstance(leaf, Tensor) and id(leaf) not in same


def _real(value: Tensor) -> Tensor:
    """A tensor that can be written to: vmap returns what no client's data went into expanded."""
    if not value.dim() or value.stride(0):
        return value
    own = _turned(value)
    return own.contiguous() if own is value else own


def chosen(tree: Any, places: Sequence[int]) -> Any:
    """The tree of some clients alone: copies of their rows."""
    return tree_map(lambda leaf: Stack(leaf.value[places]) if isinstance(leaf, Stack) else leaf, tree)


def put_back(tree: Any, places: Sequence[int], part: Any, count: int) -> Any:
    """The tree of ``count`` clients with some clients' rows replaced; stacks are written in place.

    Leaves that are no tensors, the same places in both trees, stay as they are in ``tree``.
    """
    found = []
    for old, new in zip(leaves(tree), leaves(part), strict=True):
        own = old
        if isinstance(new, (Stack, Tensor)) and new is not old:
            own = old if isinstance(old, Stack) else spread(old, count)
            own.value[places] = unwrapped(new)
        found.append(own)
    return rebuild(tree, found)


def aligned(tree: Any, numbers: Sequence[Sequence[Any]], part: Any, count: int) -> tuple[Any, Any]:
    """A tree and that of ``count`` of its clients, with tensors in the same places.

    Args:
        tree: of all clients.
        numbers: for each client, what stands in the places of ``tree`` that are no tensors.
        part: of some of them; a step may have made a tensor of a number, or a number of a tensor.
        count: how many they are.

    Raises:
        ValueError: they differ in more than that.
    """
    if structure(tree) != structure(part):
        raise ValueError("the keys differ")
    own, mine, theirs = zip(*numbers, strict=True), [], []
    for old, new in zip(leaves(tree), leaves(part), strict=True):
        one, other = old, new
        if not _tensors(old):
            numbered = next(own)
            one = _numbered(numbered, new) if _tensors(new) else old
        elif not _tensors(new):
            other = _numbered([new] * count, old)
        if _tensors(one):
            one, other = _promoted(one, other)
        mine.append(one)
        theirs.append(other)
    return rebuild(tree, mine), rebuild(part, theirs)


def _numbered(values: Sequence[Any], like: Stack | Tensor) -> Stack:
    """Each client's number as a tensor like another's."""
    if not all(isinstance(value, (int, float)) for value in values):
        raise ValueError(f"{values[0]!r} stands where others have a tensor")
    row = _row(like)
    numbers = row.new_tensor(values).view(-1, *[1] * row.dim())
    return Stack(numbers.expand(-1, *row.shape).clone())


def _promoted(one: Any, other: Any) -> tuple[Any, Any]:
    """Two leaves with tensors, in a type that holds the numbers of both."""
    first, second = _row(one), _row(other)
    if first.shape != second.shape:
        raise ValueError(f"a tensor is {tuple(second.shape)}, not {tuple(first.shape)}")
    if first.dtype == second.dtype:
        return one, other
    dtype = torch.promote_types(first.dtype, second.dtype)

    def promoted(leaf: Any) -> Any:
        return Stack(leaf.value.to(dtype)) if isinstance(leaf, Stack) else leaf.to(dtype)

    return promoted(one), promoted(other)


def _tensors(leaf: Any) -> bool:
    return isinstance(leaf, (Stack, Tensor))


def _row(leaf: Stack | Tensor) -> Tensor:
    return leaf.value[0] if isinstance(leaf, Stack) else leaf


def spread(tree: Any, count: int) -> Any:
    """The tree with a copy for each of ``count`` clients of every tensor that they share."""
    return tree_map(
        lambda leaf: Stack(leaf.expand(count, *leaf.shape).clone()) if isinstance(leaf, Tensor) else leaf,
        tree,
    )


def turned(tree: Any) -> Any:
    """The tree with stacked matrices (C, m, n) laid out in memory as (C, n, m), but for those of few rows.

    A linear layer multiplies by its weight's transpose, and the weight's gradient comes out as one.
    """
    return tree_map(lambda leaf: Stack(_turned(leaf.value)) if isinstance(leaf, Stack) else leaf, tree)


def _turned(value: Tensor) -> Tensor:
    matrix = value.dim() == 3  # noqa: PLR2004 - clients and a matrix
    return value.mT.contiguous().mT if matrix and turns(*value.shape[1:]) else value


def turns(high: int, wide: int) -> bool:
    """Whether a stacked matrix lies transposed in memory: where its columns are not short.

    Batched products on a CPU take up to three times as long where a matrix's rows in memory are short and the
    other side is longer; with more than a few vector registers to a row it makes no difference.
    """
    return high >= min(wide, _SHORT)


def rows(tree: Any, count: int) -> Any:
    """The tree of plain tensors (C, ...), row after row; what all clients share is expanded, not copied."""
    return tree_map(
        lambda leaf: leaf.value.contiguous() if isinstance(leaf, Stack) else leaf.expand(count, *leaf.shape),
        tree,
    )


def unwrapped(tree: Any) -> Any:
    """The tree with the stacks' tensors in the stacks' places."""
    return tree_map(lambda leaf: leaf.value if isinstance(leaf, Stack) else leaf, tree)


def wrapped(tree: Any) -> Any:
    """The tree with every tensor, all of which are stacked, as a ``Stack``."""
    return tree_map(lambda leaf: Stack(leaf) if isinstance(leaf, Tensor) else leaf, tree)


def fixed(tree: Any) -> list[Any]:
    """The leaves that are neither stacks nor tensors, such as a step counter."""
    return [leaf for leaf in leaves(tree) if not isinstance(leaf, (Stack, Tensor))]


def with_fixed(tree: Any, values: Sequence[Any]) -> Any:
    """The tree with other leaves in the places that ``fixed`` lists."""
    source = iter(values)
    return tree_map(lambda leaf: leaf if isinstance(leaf, (Stack, Tensor)) else next(source), tree)
