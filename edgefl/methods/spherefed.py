"""SphereFed: a fixed orthonormal head on normalised features, calibrated once in closed form.

SphereFed: Hyperspherical Federated Learning (Dong et al. 2022), Equations 4-12. The head W (C x l, no bias)
is made once and never trained; f = F(x) / ||F(x)||; a client minimises (1 / C) * ||W f - onehot(y)||^2. Only
the body travels, and the base merges it. After the last round the head is calibrated (FFC; see
``edgefl.protocol.calibration``).

Sent besides the body: W once to every client before the first round ("announce"), U and V ("calibrate"), and
the calibrated head ("deliver").

Its variants: heads by Gram-Schmidt (Section 5.3), by Tammes (Appendix D) or at random (Table 3); the loss
CE(s * W f) with a scale s (Table 3); features as they are; calibration every so many rounds (Appendix C.2);
heads of the clients' own, by FFC or by SGD on their data (Appendix B).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn import functional as F

from edgefl.core.components import AnyMethod
from edgefl.core.errors import UserError
from edgefl.core.params import Positive
from edgefl.methods import MethodParams
from edgefl.protocol import (
    CalibrationParams,
    Method,
    Net,
    Site,
    Tree,
    announced,
    calibrated,
    check_features,
    cross_entropy,
    needs_trained,
    one_hot,
)
from edgefl.protocol.fixed_heads import HEADS


class Params(CalibrationParams, MethodParams):
    NEUTRAL: ClassVar = {
        "head": "trained",
        "loss": "cross_entropy",
        "scale": 1.0,
        "normalise": False,
        "calibrate": "never",
    }

    head: Annotated[
        Literal["qr", "gram_schmidt", "tammes", "random", "trained"],
        Field(description="how the fixed head is made; trained is the model's own, trained and shared"),
    ] = "qr"
    loss: Annotated[Literal["mse", "cross_entropy"], Field(description="what a client minimises")] = "mse"
    scale: Annotated[Positive, Field(description="s, what cross-entropy multiplies the logits by")] = 1.0
    normalise: Annotated[bool, Field(description="whether features have unit length")] = True
    base: Annotated[AnyMethod, Field(description="what merges the body")] = "fedavg"

    @model_validator(mode="after")
    def _scaled(self) -> "Params":
        if self.scale != 1 and self.loss == "mse":
            raise ValueError("a scale needs loss: cross_entropy")
        return self

    def build(self, site: Site) -> Method:
        """The base method on a net with a fixed head, and the exchanges around it.

        Raises:
            UserError: the net has fewer features than classes or no body to train, or the base leaves the
                body with its clients, so that there are no common features to calibrate a head on.
        """
        net = _sphere(site.net, self)
        base = site.base(net)
        check_features(net, base, "spherefed", self.base, self.calibrate)
        fixed = self.head != "trained"
        method = announced(base, net, lambda initial: _fixed(initial, self.head)) if fixed else base
        return calibrated(method, net, site.local, self.calibrate, self.ridge)


def _sphere(net: Net, params: Params) -> Net:
    """The net with unit features, a bias-free head that is not trained, and the loss."""
    if params.head in {"qr", "gram_schmidt"} and net.classes > net.feature_width:
        raise UserError(
            f"spherefed needs at least as many features as classes: "
            f"{net.name} has {net.feature_width} for {net.classes}",
            hint="use a model with wider features, or head: tammes",
        )
    needs_trained("spherefed", net, "body")
    changes: dict[str, Any] = {"loss": _loss(net.loss, params)}
    if params.normalise:
        changes["features"] = _normalised(net)
    if params.head != "trained":
        changes["init"] = lambda seed: _fixed(net.init(seed), params.head)
        changes["head"] = lambda head, features: F.linear(features, head["weight"])
        changes["trained"] = tuple(part for part in net.trained if part != "head")
    return replace(net, **changes)


def _normalised(net: Net) -> Callable[[Tree, Tensor, bool], tuple[Tensor, Tree]]:
    def features(weights: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:  # noqa: FBT001 - Net's signature
        raw, buffers = net.features(weights, x, train)
        return F.normalize(raw, dim=-1), buffers

    return features


def _loss(plain: Callable[[Tensor, Tensor], Tensor], params: Params) -> Callable[[Tensor, Tensor], Tensor]:
    if params.loss == "mse":
        return _squared_error
    if params.scale == 1:
        return plain
    return lambda logits, labels: cross_entropy(params.scale * logits, labels)


def _squared_error(logits: Tensor, labels: Tensor) -> Tensor:
    """(1 / C) * ||z - onehot(y)||^2, batch mean (Equation 6)."""
    return F.mse_loss(logits, one_hot(labels, logits.shape[-1], logits))


def _fixed(weights: Tree, head: str) -> Tree:
    """The weights with the head that is never trained, without bias."""
    random = weights["head"]["weight"]
    rows = HEADS[head](random.to(torch.float64))
    return {**weights, "head": {"weight": rows.to(random.dtype).contiguous()}}
