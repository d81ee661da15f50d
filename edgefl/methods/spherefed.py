"""SphereFed: a fixed orthonormal head on normalised features, calibrated once in closed form.

SphereFed: Hyperspherical Federated Learning, Equations 4-12. The head W (C x l, no bias) is drawn once by
QR and never trained; f = F(x) / ||F(x)||; a client minimises (1 / C) * ||W f - onehot(y)||^2. Only the body
travels. After the last round every client makes one pass over its plain data and sends U_k = sum f onehot(y)^T
(l x C) and V_k = sum f f^T (l x l); the server solves W* = [(sum V_k + ridge I)^-1 sum U_k]^T (free-form
calibration, FFC).

What travels besides the body: W once to every client before the first round ("announce"), U and V once
("calibrate"), and the calibrated head once ("deliver").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from edgefl.core.errors import UserError
from edgefl.core.params import Component, Strict
from edgefl.core.steps import Passes
from edgefl.protocol import (
    Arrival,
    Batch,
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
)


class Params(Strict):
    """SphereFed's parameters."""

    calibrate: Annotated[bool, Field(description="whether FFC is done after the last round")] = True
    ridge: Annotated[float, Field(ge=0, description="added to the diagonal of the Gram matrix; the paper's lambda")] = 0.0
    base: Annotated[Component, Field(description="what merges the body")] = Component(name="fedavg")


def build(params: Params, site: Site) -> Method:
    """The base method on a net with a fixed head, and the exchanges around it."""
    net = _sphere(site.net)
    base = site.base(net)

    def server(initial: Tree) -> Tree:
        return {"base": base.server(initial), "head": _orthonormal(initial["head"], net)}

    def client(initial: Tree) -> Tree:
        return {**(base.client(initial) or {}), "head": _orthonormal(initial["head"], net)}

    def predictor(state: Tree) -> Predictor:
        body = base.personal_model(state["base"], {"head": state["head"]})
        return Predictor(body.weights, net.logits)

    around = [*_calibration(net, params.ridge), _deliver()] if params.calibrate else []
    return Method(
        server=server,
        client=client,
        exchanges=(_announce(), *(_lifted(exchange) for exchange in base.exchanges), *around),
        global_model=predictor,
        personal_model=lambda state, _: predictor(state),
    )


def _sphere(net: Net) -> Net:
    """The net with normalised features, a bias-free head that is not trained, and squared error."""
    if net.classes > net.feature_width:
        raise UserError(
            f"spherefed needs at least as many features as classes: {net.name} has {net.feature_width} for {net.classes}",
            hint="take a model with wider features",
        )

    def init(seed: int) -> Tree:
        weights = net.init(seed)
        width = {"weight": weights["head"]["weight"].new_empty(net.classes, net.feature_width).zero_()}
        generator = None if width["weight"].is_meta else torch.Generator().manual_seed(seed)
        return {**weights, "head": {"weight": width["weight"].normal_(generator=generator)}}

    def features(weights: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:  # noqa: FBT001 - Net's signature
        found, buffers = net.features(weights, x, train)
        return F.normalize(found, dim=-1), buffers

    return replace(
        net,
        init=init,
        features=features,
        head=lambda head, found: F.linear(found, head["weight"]),
        trained=tuple(part for part in net.trained if part != "head"),
        loss=_squared_error,
    )


def _squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """(1 / C) * ||z - onehot(y)||^2, batch mean (Equation 6)."""
    return F.mse_loss(logits, F.one_hot(labels, logits.shape[-1]).to(logits.dtype))


def _orthonormal(head: Tree, net: Net) -> Tree:
    """C orthonormal rows of width l, from the QR factors of the random head's transpose."""
    q, r = torch.linalg.qr(head["weight"].mT.to(torch.float64))
    # Fixing the signs makes the factorisation unique, so that LAPACK's choice does not matter.
    rows = (q * torch.sign(torch.diagonal(r))).mT
    return {"weight": rows[: net.classes].to(head["weight"].dtype).contiguous()}


def _lifted(exchange: Exchange) -> Exchange:
    """The base's exchange on the "base" part of the server state; the client's state keeps its head."""
    return replace(
        exchange,
        down=lambda server, client: exchange.down(server["base"], client),
        merge=lambda server, arrivals: {**server, "base": exchange.merge(server["base"], arrivals)},
    )


def _handed_over(name: str, when: When) -> Exchange:
    """Everybody receives the head and keeps it."""
    fold = Fold(
        start=lambda payload, state, ctx: {"state": {**(state or {}), "head": payload["head"]}},  # noqa: ARG005
        phases=(),
        finish=lambda carry, ctx: ({}, carry["state"]),  # noqa: ARG005
    )
    return Exchange(
        name,
        down=lambda server, client: {"head": server["head"]},  # noqa: ARG005
        work=fold,
        merge=lambda server, arrivals: server,  # noqa: ARG005
        when=when,
        who="all",
        stateful=True,
    )


def _announce() -> Exchange:
    return _handed_over("announce", When("start"))


def _deliver() -> Exchange:
    return _handed_over("deliver", When("end"))


def _calibration(net: Net, ridge: float) -> list[Exchange]:
    width, classes = net.feature_width, net.classes

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001
        some = next(iter(payload["body"].values()))
        weights = {part: payload.get(part, {}) for part in net.parts()}
        return {"weights": weights, "gram": {"u": some.new_zeros(width, classes), "v": some.new_zeros(width, width)}}

    def step(carry: Carry, batch: Batch) -> Carry:
        with torch.no_grad():
            found, _ = net.features(carry["weights"], batch.x, False)
            gram = carry["gram"]
            u = gram["u"] + found.mT @ F.one_hot(batch.y, classes).to(found.dtype)
            return {**carry, "gram": {"u": u, "v": gram["v"] + found.mT @ found}}

    def merge(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
        u = sum(one.upload["gram"]["u"].to(torch.float64) for one in arrivals)
        v = sum(one.upload["gram"]["v"].to(torch.float64) for one in arrivals)
        head = solve(torch.as_tensor(u), torch.as_tensor(v), ridge)
        return {**server, "head": {"weight": head.to(server["head"]["weight"].dtype)}}

    finish: Callable[[Carry, Ctx], tuple[Payload, None]] = lambda carry, ctx: ({"gram": carry["gram"]}, None)  # noqa: ARG005, E731
    fold = Fold(start, (Phase("calibrate", step, Passes(epochs=1), data="plain"),), finish)
    down = lambda server, client: {part: tree for part, tree in server["base"].items() if part != "head"}  # noqa: ARG005, E731
    return [Exchange("calibrate", down, fold, merge, when=When("end"), who="all")]


def solve(u: Tensor, v: Tensor, ridge: float) -> Tensor:
    """The calibrated head (C, l) of summed U (l, C) and V (l, l), both float64 (Equations 10 and 12).

    Without a ridge the Hermitian pseudo-inverse is taken: one dead feature makes V singular.
    """
    if ridge:
        return torch.linalg.solve(v + ridge * torch.eye(len(v), dtype=v.dtype), u).mT.contiguous()
    return (torch.linalg.pinv(v, hermitian=True) @ u).mT.contiguous()
