"""The model that a client trained last, beside the one that it receives."""

from collections.abc import Callable

import torch

from edgefl.protocol.aggregation import starting
from edgefl.protocol.composition import extended
from edgefl.protocol.nets import Carry, Net
from edgefl.protocol.trees import Payload, Tree, leaves, tree_map
from edgefl.protocol.values import TRAIN, Ctx, Method


def with_previous(base: Method, name: str, net: Net, kept: Callable[[Tree], Tree]) -> Method:
    """The base whose objective can compare with the received and with the client's previous model.

    ``carry[name]`` has both, as "received" and "previous": frozen copies of what ``kept`` takes of them.
    Where a client takes part for the first time, the previous model is the received one. ``state[name]`` has
    the "model" that the client trained last and the "round" in which it received what that began as, an int64
    scalar; -1 before the first.

    Args:
        name: of the extending method.
        kept: weights -> those that are compared.
    """
    (exchange,) = (each for each in base.exchanges if each.name == TRAIN)

    def client(initial: Tree) -> Tree:
        # What the first job of all starts from: a base may begin with other weights than the net.
        model = kept(starting(net, exchange.down(base.server(initial), 0), base.client(initial)))
        return {"model": model, "round": leaves(model)[0].new_full((), -1, dtype=torch.int64)}

    def start(carry: Carry, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - as extensions start
        received, own = kept(starting(net, payload, state)), (state or {})[name]
        first = own["round"] < 0
        previous = tree_map(lambda mine, new: torch.where(first, new, mine), own["model"], received)
        return {**carry, name: {"received": received, "previous": previous}}

    def finish(carry: Carry, ctx: Ctx) -> tuple[None, Tree]:
        model = kept(carry["weights"])
        return None, {"model": model, "round": leaves(model)[0].new_zeros((), dtype=torch.int64) + ctx.round}

    return extended(base, name, client=client, start=start, finish=finish)
