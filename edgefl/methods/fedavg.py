"""FedAvg: train everything locally, average it at the server (McMahan et al. 2017, Algorithm 1).

w <- sum_k p_k w_k with p_k = n_k over the samples of the round's participants; momentum restarts every
round; batch norm's running statistics travel and are averaged with the weights.

``averaging`` is the general form that its variants differ from: which parts travel (the others stay with
the client as its state) and what a step minimises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from edgefl.core.params import Strict
from edgefl.protocol import (
    BUFFERS,
    Arrival,
    Carry,
    Ctx,
    Exchange,
    Fold,
    Method,
    Payload,
    Phase,
    Predictor,
    Site,
    Tree,
    plain_objective,
    sgd,
    trainer,
    weighted_mean,
)
from edgefl.protocol.training import Objective


class Params(Strict):
    """FedAvg has no parameters of its own."""


def build(params: Params, site: Site) -> Method:  # noqa: ARG001 - every method is built the same way
    """FedAvg on the site's net."""
    train = training(site, plain_objective(site.net))
    return averaging(site, train, shared=(*site.net.trained, BUFFERS), neutral={})


def training(site: Site, objective: Objective) -> Phase:
    """The scenario's local training on single views of the training data."""
    return Phase("train", sgd(objective, site.local.optimizer, site.net.trained), site.local.passes)


def averaging(
    site: Site,
    train: Phase,
    *,
    shared: Sequence[str],
    own: Sequence[str] = (),
    anchored: Sequence[str] = (),
    neutral: dict[str, object] | None = None,
) -> Method:
    """Local training, and averaging of the parts that travel.

    Args:
        site: net and local training.
        train: the phase that trains; see ``training``.
        shared: the parts that travel and are averaged; the others are the client's state.
        own: shared parts of which a client also keeps what it trained, for its own model.
        anchored: received parts that the objective reads, under the carry's "anchor".
        neutral: see ``Method``.
    """
    net, parts = site.net, site.net.parts()
    kept = tuple(part for part, names in parts.items() if names and (part not in shared or part in own))
    trains_kept = any(part in net.trained or part == BUFFERS for part in kept)

    def down(server: Tree, client: int) -> Payload:  # noqa: ARG001 - all clients receive the same
        return {part: server[part] for part in shared}

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        carry = trainer(whole(parts, state or {}, payload), site.local.optimizer, net.trained, ctx.lr)
        return {**carry, "anchor": {part: payload[part] for part in anchored}} if anchored else carry

    def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree | None]:  # noqa: ARG001
        weights = carry["weights"]
        state = {part: weights[part] for part in kept} if trains_kept else None
        return {part: weights[part] for part in shared}, state

    def merge(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
        if not shared:
            return server
        return weighted_mean([one.upload for one in arrivals], [one.weight for one in arrivals])

    def personal(server: Tree, state: Tree | None) -> Predictor:
        return Predictor(whole(parts, server, state or {}), net.logits)

    fold = Fold(start, (train,), finish)
    return Method(
        server=lambda initial: {part: initial[part] for part in shared},
        client=lambda initial: {part: initial[part] for part in kept} if kept else None,
        exchanges=(Exchange("train", down, fold, merge, stateful=trains_kept),),
        global_model=None if kept else (lambda server: personal(server, None)),
        personal_model=personal,
        neutral=neutral,
    )


def whole(parts: Iterable[str], base: Tree, over: Tree) -> Tree:
    """All of a model's parts in the order of ``parts``; what ``over`` has stands for what ``base`` has."""
    pool = {**base, **over}
    return {part: pool.get(part, {}) for part in parts}
