"""Statistics of frozen features, which clients gather in one pass, and linear heads solved from them.

Fast Federated Calibration (FFC; Dong et al. 2022, SphereFed, Equations 6-12): of a client's features f (l,)
and one-hot labels e (C,), U_k = sum f e^T (l x C) and V_k = sum f f^T (l x l). The head that minimises
sum ||W f - e||^2 + ridge ||W||^2 over the data of all clients is

    W* = [(sum_k V_k + ridge I)^-1 sum_k U_k]^T    (C x l),

without a bias. It needs a body that clients share, and no special loss (Appendix C.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

import torch
from pydantic import Field, PlainValidator, WithJsonSchema
from torch import Tensor
from torch.nn import functional as F

from edgefl.core.errors import UserError
from edgefl.core.params import Component, NonNegative, Strict
from edgefl.core.steps import Passes
from edgefl.core.training import Local
from edgefl.protocol.aggregation import starting
from edgefl.protocol.nets import Carry, Net, Predictor, transformed
from edgefl.protocol.own_models import fine_tuning, own_model, unchanged, with_own_model
from edgefl.protocol.requirements import needs_plain_model
from edgefl.protocol.training import add_product
from edgefl.protocol.trees import Payload, Tree, identical, leaves
from edgefl.protocol.values import Arrival, Batch, Ctx, Exchange, Fold, Method, Phase, When


def _calibration(value: Any) -> Any:
    if value not in _WORDS and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError(f"calibrate must be {', '.join(_WORDS)} or a number of rounds, not {value!r}")
    return value


_WORDS = ("once", "never", "personal", "personal_sgd")

Calibration: TypeAlias = Annotated[
    Literal["once", "never", "personal", "personal_sgd"] | int,
    PlainValidator(_calibration),
    WithJsonSchema({"anyOf": [{"enum": list(_WORDS)}, {"type": "integer", "exclusiveMinimum": 0}]}),
]
"""When a head is calibrated, and whose: see ``calibrated``."""

OWN = "calibrated"
"""The key of a client's own calibrated head in its state."""

_DELIVER = "deliver"


def check_features(
    net: Net, base: Method, name: str, of: Component, *, head: bool = True, calibrated: bool = True
) -> None:
    """Refuses a base without common features under a linear head that can be replaced.

    Args:
        net: what the base was built on.
        base: the base, built.
        name: of the method that calibrates.
        of: the base, as the scenario names it.
        head: whether the head must be common too; else clients get their own.
        calibrated: whether the method calibrates at all; else the body alone must be common.

    Raises:
        UserError: the base leaves bodies or heads with its clients, changes features or head or calibrates
            it, or the net's head is not linear.
    """
    initial = net.on_meta()
    server = base.server(initial)
    for part, wanted in (("body", True), ("head", head and calibrated and "head" in net.trained)):
        if wanted and part not in server:
            raise UserError(
                f"{name} needs a base that shares the {part}, and {of.name} leaves it with its clients",
                hint=f"choose a base that shares the {part}, such as fedavg",
            )
    needs_plain_model(name, base, of, net)
    if not calibrated:
        return
    if any(exchange.name == _DELIVER for exchange in base.exchanges):
        raise UserError(
            f"{name} would calibrate the head that {of.name} calibrates already", hint="choose one of the two"
        )
    if not head:
        # Fresh tensors for the client, so that its own are told from the server's.
        model = base.personal_model(server, base.client(net.on_meta()))
        if not identical(model.weights["body"], server["body"]):
            raise UserError(
                f"{name} gives clients heads for the shared body, and {of.name} gives each its own body",
                hint="calibrate once instead",
            )
    found = {(key, tuple(leaf.shape)) for key, leaf in initial["head"].items()}
    if found - {("bias", (net.classes,))} != {("weight", (net.classes, net.feature_width))}:
        raise UserError(f"{name} needs a linear head, and {net.name} has another", hint="use another model")


def one_hot(labels: Tensor, classes: int, like: Tensor) -> Tensor:
    """Labels (B,) as rows of zeros and a one (B, C), of another tensor's type."""
    if transformed():
        # Under nested transforms torch's own reads the labels' values.
        found = labels.unsqueeze(-1) == torch.arange(classes, device=labels.device)
        return found.to(like.dtype)
    return F.one_hot(labels, classes).to(like.dtype)


def gathering(net: Net, key: str, add: Callable[[Any, Tensor, Tensor], None]) -> Phase:
    """A pass over a client's plain data, as it is, with the weights frozen.

    Args:
        net: the net.
        key: of the statistics in the carry; the phase's name.
        add: (statistics, features (B, l), labels (B,)) -> None; adds a batch in place.
    """

    def step(carry: Carry, batch: Batch) -> Carry:
        with torch.no_grad():
            features, _ = net.features(carry["weights"], batch.x, False)
            add(carry[key], features, batch.y)
        return carry

    return Phase(key, step, Passes(epochs=1), data="plain", reports=False)


def collection(
    net: Net,
    phase: Phase,
    shapes: Mapping[str, Sequence[int]],
    finish: Callable[[Any, Ctx], tuple[Payload, Tree | None]],
    merge: Callable[[Tree, Sequence[Arrival]], Tree],
    when: When,
    *,
    stateful: bool = False,
) -> Exchange:
    """An exchange in which all clients receive the body and gather statistics of its features.

    Args:
        net: the net.
        phase: see ``gathering``; the exchange has its name.
        shapes: of the statistics, which begin at zero.
        finish: (statistics, ctx) -> upload and client state, see ``Fold``.
        merge: see ``Exchange``.
        when: the exchange happens.
        stateful: whether ``finish`` returns a state.
    """

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - a fold's signature
        model, some = starting(net, payload, state), leaves(payload["body"])[0]
        weights = {part: tree for part, tree in model.items() if part != "head"}
        return {"weights": weights, phase.name: {key: some.new_zeros(shape) for key, shape in shapes.items()}}

    fold = Fold(start, (phase,), lambda carry, ctx: finish(carry[phase.name], ctx))
    return Exchange(phase.name, _sending(net, "head"), fold, merge, when, who="all", stateful=stateful)


def _sending(net: Net, *without: str) -> Callable[[Tree, int], Payload]:
    """Sends what the server has of the model."""
    parts = [part for part in net.parts() if part not in without]
    return lambda server, client: {part: server[part] for part in parts if part in server}  # noqa: ARG005


def delivery(name: str, when: When, *, kept: bool) -> Exchange:
    """An exchange in which all clients receive the server's head; ``kept`` says whether in their state."""
    fold = Fold(
        start=lambda payload, state, ctx: dict(payload),  # noqa: ARG005
        phases=(),
        finish=lambda carry, ctx: ({}, {"head": carry["head"]} if kept else None),  # noqa: ARG005
    )
    return Exchange(
        name,
        down=lambda server, client: {"head": server["head"]},  # noqa: ARG005
        work=fold,
        merge=unchanged,
        when=when,
        who="all",
        stateful=kept,
    )


def announced(base: Method, net: Net, fixed: Callable[[Tree], Tree]) -> Method:
    """The base with a head that nobody trains, and that all clients receive before the first round.

    Args:
        base: the base, which shares all other parts of the model.
        net: what it was built on.
        fixed: initial weights -> those with the head.
    """

    def server(initial: Tree) -> Tree:
        weights = fixed(initial)
        return {**base.server(weights), "head": weights["head"]}

    def client(initial: Tree) -> Tree:
        weights = fixed(initial)
        return {**(base.client(weights) or {}), "head": weights["head"]}

    def global_model(server: Tree) -> Predictor:
        return Predictor({part: server[part] for part in net.parts()}, net.logits)

    exchanges = (delivery("announce", When("start"), kept=True), *base.exchanges)
    return replace(base, server=server, client=client, exchanges=exchanges, global_model=global_model)


def delivered(base: Method, net: Net, exchange: Exchange) -> Method:
    """The base with an exchange that changes the server's head, and one that delivers it ("deliver")."""
    kept = "head" in (base.client(net.on_meta()) or {})
    deliver = delivery(_DELIVER, exchange.when, kept=kept)
    return replace(base, exchanges=(*base.exchanges, exchange, deliver), neutral=None)


class CalibrationParams(Strict):
    """When a head is calibrated, and how."""

    calibrate: Annotated[
        Calibration,
        Field(
            description="once (after the last round), every so many rounds, never, or for each client: "
            "personal (by FFC) or personal_sgd (by local training of the head)"
        ),
    ] = "once"
    ridge: Annotated[NonNegative, Field(description="added to V's diagonal; the paper's lambda")] = 0.0


def calibrated(base: Method, net: Net, local: Local, calibrate: Calibration, ridge: float) -> Method:
    """The base with a head that is calibrated on its features.

    Sends U and V once a calibration ("calibrate"), and the new head to all clients ("deliver"). A personal
    head stays with its client: nothing is sent but the body.

    Args:
        base: the base; see ``check_features``.
        net: what it was built on.
        local: the clients' training settings.
        calibrate: "once", after the last round; every so many rounds; "personal", for each client on its own
            data after the last round; "personal_sgd", the same by local training of the head alone; "never".
        ridge: added to the diagonal of V.
    """
    if calibrate == "never":
        return base
    if calibrate == "personal_sgd":
        return _with_own_head(base, net, _tuning(base, net, local))
    width, classes = net.feature_width, net.classes
    phase = gathering(net, "calibrate", _add)
    shapes = {"u": (width, classes), "v": (width, width)}

    def own(gram: Tree, ctx: Ctx) -> tuple[Payload, Tree]:  # noqa: ARG001 - a fold's signature
        return {}, {OWN: own_model({"head": _head(net, gram["u"], gram["v"], ridge, gram["v"].dtype)})}

    def merge(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
        uploads = [each.upload["gram"] for each in arrivals]
        u, v = (summed([each[key] for each in uploads]) for key in ("u", "v"))
        return {**server, "head": _head(net, u, v, ridge, uploads[0]["v"].dtype)}

    if calibrate == "personal":
        solving = collection(net, phase, shapes, own, unchanged, When("end"), stateful=True)
        return _with_own_head(base, net, solving)
    when = When("end") if calibrate == "once" else When("round", every=calibrate)
    return delivered(
        base, net, collection(net, phase, shapes, lambda gram, _: ({"gram": gram}, None), merge, when)
    )


def _add(gram: Tree, features: Tensor, labels: Tensor) -> None:
    # In place: V alone is larger than a small model, and a second one would set the memory peak.
    add_product(gram["u"], features.mT, one_hot(labels, gram["u"].shape[-1], features))
    add_product(gram["v"], features.mT, features)


def summed(matrices: Sequence[Tensor]) -> Tensor:
    """The sum in float64, as a running sum: hundreds of V would not fit in memory at once."""
    total = torch.zeros_like(matrices[0], dtype=torch.float64)
    for matrix in matrices:
        total += matrix
    return total


def solve(u: Tensor, v: Tensor, ridge: float, accuracy: torch.dtype = torch.float64) -> Tensor:
    """The calibrated head (C, l) of summed U (l, C) and V (l, l), in float64 (Equations 10 and 12).

    Without a ridge it uses the Hermitian pseudo-inverse, because one dead feature, or fewer samples than
    features, makes V singular.

    Args:
        u: (l, C).
        v: (l, l).
        ridge: added to V's diagonal.
        accuracy: the type in which V was accumulated: eigenvalues below its rounding error count as 0.
    """
    values, vectors = torch.linalg.eigh(v.to(torch.float64))
    if ridge:
        # V has no negative eigenvalues but by rounding.
        inverse = (values.clamp(min=0) + ridge).reciprocal()
    else:
        least = values.abs().amax() * (len(v) * torch.finfo(accuracy).eps)
        inverse = torch.where(values > least, values, torch.inf).reciprocal()
    head: Tensor = ((vectors * inverse) @ (vectors.mT @ u.to(torch.float64))).mT.contiguous()
    return head


def _head(net: Net, u: Tensor, v: Tensor, ridge: float, dtype: torch.dtype) -> Tree:
    """The solution as the net's head of a type, with a bias of 0 if it has one."""
    weight = solve(u, v, ridge, dtype).to(dtype)
    names = net.parts()["head"]
    return {name: weight if name == "weight" else weight.new_zeros(net.classes) for name in names}


def _with_own_head(base: Method, net: Net, exchange: Exchange) -> Method:
    return with_own_model(base, net, OWN, ["head"], exchange)


def _tuning(base: Method, net: Net, local: Local) -> Exchange:
    """After the last round, all clients train the head alone on the frozen body."""
    kept = "head" in (base.client(net.on_meta()) or {})
    still = replace(net, features=lambda weights, x, train: net.features(weights, x, False))  # noqa: ARG005
    send, parts = _sending(net, *["head"] * kept), ["head"]
    return fine_tuning(
        still, local.optimizer, ("tune", local.passes), send, name=OWN, trained=parts, kept=parts
    )
