"""Parts of a model that every client makes for itself after the last round, for its personal model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from edgefl.core.optimizers import Optimizer
from edgefl.core.steps import Passes
from edgefl.protocol.aggregation import starting
from edgefl.protocol.composition import beside
from edgefl.protocol.nets import Carry, Net, Predictor
from edgefl.protocol.training import GradientStep, NetObjective, trainer
from edgefl.protocol.trees import Payload, Tree, leaves, tree_map
from edgefl.protocol.values import Arrival, Ctx, Exchange, Fold, Method, Phase, When


def with_own_model(base: Method, net: Net, name: str, parts: Sequence[str], exchange: Exchange) -> Method:
    """The base with an exchange that gives each client parts of a model of its own.

    Until then a client's personal model is the base's.

    Args:
        net: what the base was built on.
        name: of the method; the key of ``own_model`` in the client's state.
        parts: which the exchange's ``finish`` returns as ``own_model``.
    """

    def client(initial: Tree) -> Tree:
        names = net.parts()
        empty = {part: {key: torch.zeros_like(initial[part][key]) for key in names[part]} for part in parts}
        return beside(base.client(initial) or {}, name, own_model(empty, known=False))

    def personal(server: Tree, state: Any) -> Predictor:
        model = base.personal_model(server, state)
        known, own = state[name]["known"] > 0, state[name]["model"]
        common = {part: model.weights[part] for part in own}
        mixed = tree_map(lambda mine, theirs: torch.where(known, mine, theirs), own, common)
        return Predictor({**model.weights, **mixed}, model.logits)

    exchanges = (*base.exchanges, exchange)
    return replace(base, client=client, exchanges=exchanges, personal_model=personal)


def own_model(parts: Tree, *, known: bool = True) -> Tree:
    """A client's state with parts of its own, or with room for them."""
    return {"model": parts, "known": torch.full_like(leaves(parts)[0].flatten()[0], float(known))}


def fine_tuning(
    net: Net,
    optimizer: Optimizer,
    phase: tuple[str, Passes],
    down: Callable[[Tree, int], Payload],
    *,
    name: str,
    trained: Sequence[str],
    kept: Sequence[str],
) -> Exchange:
    """An exchange in which all clients train parts of the final model, on the net's loss alone.

    Args:
        phase: the name of the exchange and its phase, and the length.
        name: see ``with_own_model``.
    """
    step = GradientStep(NetObjective(replace(net, terms=())), optimizer, tuple(trained))

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        return trainer(starting(net, payload, state), optimizer, trained, ctx.lr)

    def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree]:  # noqa: ARG001 - a fold's signature
        return {}, {name: own_model({part: carry["weights"][part] for part in kept})}

    fold = Fold(start, (Phase(phase[0], step, phase[1]),), finish)
    return Exchange(phase[0], down, fold, unchanged, When("end"), who="all", stateful=True)


def unchanged(server: Tree, arrivals: Sequence[Arrival]) -> Tree:  # noqa: ARG001 - a merge's signature
    """A merge that changes nothing."""
    return server
