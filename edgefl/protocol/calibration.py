"""Linear heads solved in closed form from statistics of frozen features.

Fast Federated Calibration (FFC; Dong et al. 2022, SphereFed, Equations 6-12): of a client's features f (l,)
and one-hot labels e (C,), U_k = sum f e^T (l x C) and V_k = sum f f^T (l x l). The head that minimises
sum ||W f - e||^2 + ridge ||W||^2 over the data of all clients is

    W* = [(sum_k V_k + ridge I)^-1 sum_k U_k]^T    (C x l),

without a bias. It needs a body that clients share, and no special loss (Appendix C.3).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, TypeAlias

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.errors import UserError
from edgefl.core.params import Component, NonNegative
from edgefl.core.scenario import LocalTraining
from edgefl.protocol.heads import DELIVER, delivered
from edgefl.protocol.nets import Net
from edgefl.protocol.own_models import fine_tuning, own_model, unchanged, with_own_model
from edgefl.protocol.requirements import needs_plain_model
from edgefl.protocol.statistics import collection, gathering, one_hot, sending, summed
from edgefl.protocol.training import add_product
from edgefl.protocol.trees import Payload, Tree, identical
from edgefl.protocol.values import Arrival, Ctx, Exchange, Method, When

_PERSONAL = ("personal", "personal_sgd")

Calibration: TypeAlias = Literal["once", "never", "personal", "personal_sgd"] | Annotated[int, Field(gt=0)]
"""When a head is calibrated, and whose: see ``calibrated``."""

OWN = "calibrated"
"""The key of a client's own calibrated head in its state."""


def check_features(net: Net, base: Method, name: str, of: Component, calibrate: Calibration) -> None:
    """Refuses a base without common features under a linear head that can be replaced.

    Args:
        net: what the base was built on.
        name: of the method that calibrates.
        of: the base, as the scenario names it.
        calibrate: see ``calibrated``. Where clients get heads of their own the body alone must be common, and
            so where nothing is calibrated.

    Raises:
        UserError: the base leaves bodies or heads with its clients, changes features or head or calibrates
            it, or the net's head is not linear.
    """
    initial, personal = net.on_meta(), calibrate in _PERSONAL
    server = base.server(initial)
    common = ["body"] if personal or calibrate == "never" or "head" not in net.trained else ["body", "head"]
    for part in common:
        if part not in server:
            raise UserError(
                f"{name} needs a base that shares the {part}, and {of.name} leaves it with its clients",
                hint=f"choose a base that shares the {part}, such as fedavg",
            )
    needs_plain_model(name, base, of, net)
    if calibrate == "never":
        return
    if any(exchange.name == DELIVER for exchange in base.exchanges):
        raise UserError(
            f"{name} would calibrate the head that {of.name} calibrates already", hint="choose one of the two"
        )
    if personal:
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


class CalibrationParams(Component):
    """When a head is calibrated, and how."""

    calibrate: Annotated[
        Calibration,
        Field(
            description="once (after the last round), every so many rounds, never, or for each client: "
            "personal (by FFC) or personal_sgd (by local training of the head)"
        ),
    ] = "once"
    ridge: Annotated[NonNegative, Field(description="added to V's diagonal; the paper's lambda")] = 0.0


def calibrated(base: Method, net: Net, local: LocalTraining, calibrate: Calibration, ridge: float) -> Method:
    """The base with a head that is calibrated on its features.

    Sends U and V once a calibration ("calibrate"), and the new head to all clients ("deliver"). A personal
    head stays with its client: nothing is sent but the body.

    Args:
        net: what the base was built on.
        calibrate: "once", after the last round; every so many rounds; "personal", for each client on its own
            data after the last round; "personal_sgd", the same by local training of the head alone; "never".
        ridge: added to the diagonal of V.
    """
    if calibrate == "never":
        return base
    if calibrate == "personal_sgd":
        return with_own_model(base, net, OWN, ["head"], _tuning(base, net, local))
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
        return with_own_model(base, net, OWN, ["head"], solving)
    when = When("end") if calibrate == "once" else When("round", every=calibrate)
    return delivered(
        base, net, collection(net, phase, shapes, lambda gram, _: ({"gram": gram}, None), merge, when)
    )


def _add(gram: Tree, features: Tensor, labels: Tensor) -> None:
    # In place: V alone is larger than a small model, and a second one would set the memory peak.
    add_product(gram["u"], features.mT, one_hot(labels, gram["u"].shape[-1], features))
    add_product(gram["v"], features.mT, features)


def solve(u: Tensor, v: Tensor, ridge: float, accuracy: torch.dtype = torch.float64) -> Tensor:
    """The calibrated head (C, l) of summed U (l, C) and V (l, l), in float64 (Equations 10 and 12).

    Without a ridge it uses the Hermitian pseudo-inverse, because one dead feature, or fewer samples than
    features, makes V singular.

    Args:
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


def _tuning(base: Method, net: Net, local: LocalTraining) -> Exchange:
    """After the last round, all clients train the head alone on the frozen body."""
    kept = "head" in (base.client(net.on_meta()) or {})
    still = replace(net, features=lambda weights, x, train: net.features(weights, x, False))  # noqa: ARG005
    send, parts = sending(net, *["head"] * kept), ["head"]
    return fine_tuning(
        still, local.optimizer, ("tune", local.passes), send, name=OWN, trained=parts, kept=parts
    )
