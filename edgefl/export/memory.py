"""The memory that one call of an exported model needs: its weights, and the results that live at once."""

from __future__ import annotations

from typing import NamedTuple

from edgefl.export.kernels import Count
from edgefl.export.model import Graph


class Needs(NamedTuple):
    """Bytes by what they hold.

    Attributes:
        weights: of all constants, as they are stored.
        activations: the most that inputs and results take at once, in the graph's order; nothing but what is
            fused or a view is computed in the place of something else. A runtime's own code and its copies of
            weights in other layouts come on top.
    """

    weights: int
    activations: int


def needs(graph: Graph, dtype: str | None = None) -> Needs:
    """The memory of one call.

    Args:
        graph: the graph at its batch size.
        dtype: the number type of everything; None is each tensor's own.

    Raises:
        UserError: a shape is not known.
    """
    count = Count(graph, dtype)

    def size(name: str) -> int:
        value = graph.value(name)
        return value.count * count.width(value)

    homes = {one.name: place for place, one in enumerate(one for one in graph.inputs if one is not None)}
    sizes = {place: size(name) for name, place in homes.items()}
    born, last = dict.fromkeys(sizes, 0), dict.fromkeys(sizes, 0)
    for step, node in enumerate(graph.nodes):
        for name in node.inputs:
            if name in homes:
                last[homes[name]] = step
        results = [name for name in node.outputs if name and name not in graph.fixed]
        for name in results:
            home = homes.get(node.inputs[0]) if count.is_free(node) and node.inputs else None
            if home is None:
                home = len(sizes)
                sizes[home], born[home] = size(name), step
            else:
                # Joined to its neighbours, a float between two integers is never there.
                sizes[home] = min(sizes[home], size(name))
            homes[name], last[home] = home, len(graph.nodes) if name in graph.outputs else step
    steps = range(len(graph.nodes) + 1)
    alive = [sum(sizes[one] for one in sizes if born[one] <= step <= last[one]) for step in steps]
    return Needs(sum(map(size, graph.constants)), max(alive))
