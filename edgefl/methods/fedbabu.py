"""FedBABU: the head stays as it was drawn; the rounds train the body alone, and clients fine-tune at the end.

FedBABU: Toward Enhanced Representation for Federated Image Classification (Oh, Kim, Yun 2022), Algorithm 1:
cross-entropy over the body, the head without an update, its bias included; bodies are merged as the base does
it. The global model under the random head has the paper's initial accuracy. For its personalized accuracy
every client then trains the global model on its own data: the head, the body, or both.

The head is sent once, before the first round ("announce"). After the last one all clients receive the final
body and keep what they make of it ("fine-tune"), at the last round's learning rate and on the net's loss
alone. Until then a client's own model is the global one. Batch norm is in training mode while a client
fine-tunes, as in the authors' code, so that running statistics become the client's own, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field

from edgefl.core.errors import UserError
from edgefl.core.params import Component, Strict
from edgefl.core.steps import Passes
from edgefl.protocol import (
    BUFFERS,
    Carry,
    Ctx,
    Exchange,
    Fold,
    Method,
    Net,
    Payload,
    Phase,
    Predictor,
    Site,
    Tree,
    When,
    delivery,
    needs_trained,
    neutral_over,
    plain_objective,
    sgd,
    starting,
    trainer,
)

_PARTS = {"head": ("head",), "body": ("body",), "all": ("body", "head")}


class Params(Strict):
    """FedBABU's parameters."""

    fine_tune: Annotated[
        int, Field(ge=0, description="epochs of every client's own training after the last round")
    ] = 5
    parts: Annotated[Literal["head", "body", "all"], Field(description="what fine-tuning changes")] = "all"
    train_head: Annotated[
        bool, Field(description="whether the rounds train and share the head too, as the base does")
    ] = False
    base: Annotated[Component, Field(description="what merges the body")] = Component(name="fedavg")


def build(params: Params, site: Site) -> Method:
    """The base on a net with a fixed head, between the head's announcement and the fine-tuning.

    Raises:
        UserError: the net has no body to train, or the base does not share it, or fixes a head itself.
    """
    needs_trained("fedbabu", site.net, "body", "head")
    net = site.net
    if not params.train_head:
        net = replace(net, trained=tuple(part for part in net.trained if part != "head"))
    base = site.base(net)
    _check(params, site, base)
    method = base if params.train_head else _announced(base)
    if params.fine_tune:
        method = _tuned(method, net, params, site)
    return replace(method, neutral=neutral_over(params.base, base, train_head=True, fine_tune=0))


def _check(params: Params, site: Site, base: Method) -> None:
    if params.train_head:
        fits = base.global_model is not None
        why = "needs a base with a global model, and {} leaves parts of it with its clients"
    elif "body" in (base.client(site.net.on_meta()) or {}):
        fits, why = False, "needs a base that shares the body, and {} leaves it with its clients"
    else:
        fits, why = base.global_model is None, "fixes the head, and {} has another fixed head"
    if not fits:
        raise UserError("fedbabu " + why.format(params.base.name), hint="use fedavg as the base")


def _announced(base: Method) -> Method:
    """The base, whose clients receive the fixed head before the first round."""

    def server(initial: Tree) -> Tree:
        return {**base.server(initial), "head": initial["head"]}

    def global_model(server: Tree) -> Predictor:
        return base.personal_model(server, None)

    return replace(
        base,
        server=server,
        exchanges=(delivery("announce", When("start"), kept=True), *base.exchanges),
        global_model=global_model,
        personal_model=lambda server, _: global_model(server),
    )


def _tuned(method: Method, net: Net, params: Params, site: Site) -> Method:
    """The method, after whose last round every client trains its global model."""
    optimizer, trained = site.local.optimizer, _PARTS[params.parts]
    step = sgd(plain_objective(replace(net, terms=())), optimizer, trained)

    def client(initial: Tree) -> Tree:
        own = {part: initial[part] for part in (*trained, BUFFERS)}
        tuned = next(iter(initial["body"].values())).new_zeros(())
        return {**(method.client(initial) or {}), "fedbabu": {"model": own, "tuned": tuned}}

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        return trainer(starting(net, payload, state), optimizer, trained, ctx.lr)

    def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree]:  # noqa: ARG001
        own = {part: carry["weights"][part] for part in (*trained, BUFFERS)}
        return {}, {"fedbabu": {"model": own, "tuned": torch.ones_like(carry["scalars"]["loss"])}}

    def personal_model(server: Tree, state: Tree | None) -> Predictor:
        shared = method.personal_model(server, state)
        if state is None or not state["fedbabu"]["tuned"]:
            return shared
        return replace(shared, weights=starting(net, state["fedbabu"]["model"], shared.weights))

    exchange = Exchange(
        "fine-tune",
        down=lambda server, client: {part: server[part] for part in (*net.trained, BUFFERS)},  # noqa: ARG005
        work=Fold(start, (Phase("fine-tune", step, Passes(epochs=params.fine_tune)),), finish),
        merge=lambda server, arrivals: server,  # noqa: ARG005
        when=When("end"),
        who="all",
        stateful=True,
    )
    return replace(
        method, client=client, exchanges=(*method.exchanges, exchange), personal_model=personal_model
    )
