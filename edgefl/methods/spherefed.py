"""SphereFed: a fixed orthonormal head on normalised features, calibrated once in closed form.

SphereFed: Hyperspherical Federated Learning, Equations 4-12. The head W (C x l, no bias) is drawn once by
QR and never trained; f = F(x) / ||F(x)||; a client minimises (1 / C) * ||W f - onehot(y)||^2. Only the body
travels. After the last round every client makes one pass over its plain data and sends
U_k = sum f onehot(y)^T (l x C) and V_k = sum f f^T (l x l); the server solves
W* = [(sum V_k + ridge I)^-1 sum U_k]^T (free-form calibration, FFC).

Sent besides the body: W once to every client before the first round ("announce"), U and V once ("calibrate"),
and the calibrated head once ("deliver").
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
    add_product,
)


class Params(Strict):
    """SphereFed's parameters."""

    calibrate: Annotated[bool, Field(description="whether FFC is done after the last round")] = True
    ridge: Annotated[
        float, Field(ge=0, description="added to the Gram matrix's diagonal; the paper's lambda")
    ] = 0.0
    base: Annotated[Component, Field(description="what merges the body")] = Component(name="fedavg")


def build(params: Params, site: Site) -> Method:
    """The base method on a net with a fixed head, and the exchanges around it.

    Raises:
        UserError: the net has fewer features than classes or no body to train, or the base leaves the body
            with its clients, so that there are no common features to calibrate a head on.
    """
    net = _sphere(site.net)
    base = site.base(net)
    if "body" in (base.client(net.on_meta()) or {}):
        raise UserError(
            f"spherefed needs a base that shares the body, and {params.base.name} leaves it with its clients",
            hint="use fedavg or fedprox as the base",
        )

    def server(initial: Tree) -> Tree:
        fixed = _fixed_head(initial)
        return {**base.server(fixed), "head": fixed["head"]}

    def client(initial: Tree) -> Tree:
        fixed = _fixed_head(initial)
        return {**(base.client(fixed) or {}), "head": fixed["head"]}

    def predictor(state: Tree) -> Predictor:
        return base.personal_model(state, {"head": state["head"]})

    def body(state: Tree, client: int) -> Payload:  # noqa: ARG001 - all clients receive the same
        return {part: tree for part, tree in predictor(state).weights.items() if part != "head"}

    around = [_calibrate(net, params.ridge, body), _deliver()] if params.calibrate else []
    return Method(
        server=server,
        client=client,
        exchanges=(_announce(), *base.exchanges, *around),
        global_model=predictor,
        personal_model=lambda state, _: predictor(state),
    )


def _sphere(net: Net) -> Net:
    """The net with normalised features, a bias-free head that is not trained, and squared error."""
    if net.classes > net.feature_width:
        raise UserError(
            f"spherefed needs at least as many features as classes: "
            f"{net.name} has {net.feature_width} for {net.classes}",
            hint="use a model with wider features",
        )
    if not net.parts()["body"]:
        raise UserError(
            f"spherefed trains the body alone, and {net.name} has none",
            hint="use a model with hidden layers",
        )

    def features(weights: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:  # noqa: FBT001 - Net's signature
        raw, buffers = net.features(weights, x, train)
        return F.normalize(raw, dim=-1), buffers

    return replace(
        net,
        init=lambda seed: _fixed_head(net.init(seed)),
        features=features,
        head=lambda head, features: F.linear(features, head["weight"]),
        trained=tuple(part for part in net.trained if part != "head"),
        loss=_squared_error,
    )


def _squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """(1 / C) * ||z - onehot(y)||^2, batch mean (Equation 6)."""
    return F.mse_loss(logits, F.one_hot(labels, logits.shape[-1]).to(logits.dtype))


def _fixed_head(weights: Tree) -> Tree:
    """The weights with the head that is never trained: C orthonormal rows of width l, without bias.

    They are the QR factors of the random head's transpose.
    """
    random = weights["head"]["weight"]
    q, r = torch.linalg.qr(random.mT.to(torch.float64))
    # With fixed signs the factorisation is unique, whatever LAPACK chooses.
    rows = (q * torch.sign(torch.diagonal(r))).mT
    return {**weights, "head": {"weight": rows.to(random.dtype).contiguous()}}


def _delivery(name: str, when: When) -> Exchange:
    """Every client receives the head and keeps it."""
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
    return _delivery("announce", When("start"))


def _deliver() -> Exchange:
    return _delivery("deliver", When("end"))


def _calibrate(net: Net, ridge: float, body: Callable[[Tree, int], Payload]) -> Exchange:
    """FFC: every client sends U and V over its plain data, and the server solves for the head."""
    width, classes = net.feature_width, net.classes

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001
        some = next(iter(payload["body"].values()))
        gram = {"u": some.new_zeros(width, classes), "v": some.new_zeros(width, width)}
        return {"weights": payload, "gram": gram}

    def step(carry: Carry, batch: Batch) -> Carry:
        with torch.no_grad():
            features, _ = net.features(carry["weights"], batch.x, False)
            # In place: V alone is larger than a small model, and a second one would set the memory peak.
            labels = F.one_hot(batch.y, classes).to(features.dtype)
            add_product(carry["gram"]["u"], features.mT, labels)
            add_product(carry["gram"]["v"], features.mT, features)
        return carry

    def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, None]:  # noqa: ARG001
        return {"gram": carry["gram"]}, None

    def merge(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
        u, v = (_total([each.upload["gram"][name] for each in arrivals]) for name in ("u", "v"))
        return {**server, "head": {"weight": solve(u, v, ridge).to(server["head"]["weight"].dtype)}}

    fold = Fold(start, (Phase("calibrate", step, Passes(epochs=1), data="plain"),), finish)
    return Exchange("calibrate", body, fold, merge, when=When("end"), who="all")


def _total(matrices: Sequence[Tensor]) -> Tensor:
    """The sum in float64, as a running sum: hundreds of V would not fit in memory at once."""
    total = torch.zeros_like(matrices[0], dtype=torch.float64)
    for matrix in matrices:
        total += matrix
    return total


def solve(u: Tensor, v: Tensor, ridge: float) -> Tensor:
    """The calibrated head (C, l) of summed U (l, C) and V (l, l), both float64 (Equations 10 and 12).

    Without a ridge it uses the Hermitian pseudo-inverse, because one dead feature makes V singular.
    """
    if ridge:
        head: Tensor = torch.linalg.solve(v + ridge * torch.eye(len(v), dtype=v.dtype, device=v.device), u)
    else:
        head = torch.linalg.pinv(v, hermitian=True) @ u
    return head.mT.contiguous()
