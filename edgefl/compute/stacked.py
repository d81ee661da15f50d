"""Trees some of whose tensors hold one value per client.

A ``Stack`` is a leaf whose tensor has a first dimension C that counts clients. ``over`` calls a function
under ``vmap`` on trees with such leaves; all clients share the other leaves, which are passed unchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from edgefl.protocol import Carry, leaves, rebuild, tree_map
from edgefl.protocol.trees import matched, shapes

# Numbers in a row: two vector registers.
_SHORT = 32


@dataclass(slots=True, eq=False)
class Stack:
    value: Tensor  # (C, ...)


_TENSORS = (Stack, Tensor)


def stack(trees: Sequence[Any]) -> Any:
    """One tree from trees of one structure; a leaf that all of them share is kept."""
    each = zip(*map(leaves, trees), strict=True)
    found = (same[0] if all(one is same[0] for one in same) else Stack(torch.stack(same)) for same in each)
    return rebuild(trees[0], found)


def over(function: Callable[..., Any], *trees: Any) -> Any:
    """``function`` of every client's trees at once; it is pure, but may write to stacked tensors in place."""
    given = leaves(trees)
    same = {id(leaf) for leaf in given if isinstance(leaf, Tensor)}
    returned: list[Any] = []

    def own(leaf: Any) -> bool:
        return isinstance(leaf, Tensor) and id(leaf) not in same

    def one(*values: Tensor) -> tuple[Tensor, ...]:
        source = iter(values)
        each = rebuild(trees, (next(source) if isinstance(leaf, Stack) else leaf for leaf in given))
        returned.append(function(*each))
        return tuple(filter(own, leaves(returned[0])))

    stacks = [leaf.value for leaf in given if isinstance(leaf, Stack)]
    # vmap refuses randomness: draws would depend on a client's place in the group.
    values = iter(torch.vmap(one)(*stacks))
    return tree_map(lambda leaf: Stack(_real(next(values))) if own(leaf) else leaf, returned[0])


def _real(value: Tensor) -> Tensor:
    """A tensor that can be written to: vmap expands results that no client's data went into."""
    own = value if value.stride(0) else _turned(value)
    return own if own.stride(0) else own.contiguous()


def chosen(tree: Any, places: Sequence[int], count: int) -> Any:
    """The tree of some of ``count`` clients: copies of their rows; of all clients, the tree itself."""
    return tree if len(places) == count else _each(lambda value: value[places], tree)


class Carries:
    """The carries of all clients of a group.

    Leaves that are not tensors, such as Adam's step counter, are equal for all clients at the start. Where
    steps change them, only clients whose leaves agree go together.
    """

    def __init__(self, carry: Carry, count: int) -> None:
        self.carry = carry
        # Of each client.
        self.fixed = [tuple(fixed(carry))] * count

    def of(self, places: Sequence[int]) -> Carry:
        """The carry of clients whose fixed leaves agree."""
        own, carry = iter(self.fixed[places[0]]), chosen(self.carry, places, len(self.fixed))
        found: Carry = tree_map(lambda leaf: leaf if isinstance(leaf, _TENSORS) else next(own), carry)
        return found

    def keep(self, places: Sequence[int], carry: Carry) -> None:
        """Takes over the carry of some clients after steps; stacks are written in place."""
        after: Any = carry
        if len(places) < len(self.fixed):
            kept, after = [], matched(self.carry, carry)
            for old, new in zip(leaves(self.carry), after, strict=True):
                own = old
                if isinstance(new, _TENSORS) and new is not old:
                    own = old if isinstance(old, Stack) else spread(old, len(self.fixed))
                    own.value[places] = unwrapped(new)
                kept.append(own)
            carry = rebuild(self.carry, kept)
        self.carry, numbers = carry, tuple(fixed(after))
        for place in places:
            self.fixed[place] = numbers


def kinds(tree: Any) -> Any:
    """The tree with (shape, type) for one client's tensors, and None for other leaves."""
    return shapes(tree_map(lambda leaf: leaf.value[0] if isinstance(leaf, Stack) else leaf, tree))


def spread(tree: Any, count: int) -> Any:
    """The tree with every tensor copied for each of ``count`` clients."""
    return tree_map(lambda leaf: Stack(leaf.clone()), rows(tree, count))


def turned(tree: Any) -> Any:
    """The tree with stacked matrices (C, m, n) laid out in memory as (C, n, m), except those of few rows."""
    return _each(_turned, tree)


def _each(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    return tree_map(lambda leaf: Stack(function(leaf.value)) if isinstance(leaf, Stack) else leaf, tree)


def _turned(value: Tensor) -> Tensor:
    matrix = value.dim() == 3  # noqa: PLR2004 - clients and a matrix
    # A linear layer multiplies by its weight's transpose, and the weight's gradient comes out as one.
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
    return [leaf for leaf in leaves(tree) if not isinstance(leaf, _TENSORS)]
