"""FedProto: clients share the mean feature of each class, their prototypes (Tan et al. 2022, Algorithm 1).

A client minimises the base's objective plus lambda * mean_i ||f_i - G_{y_i}||^2, G (C x l) being the
server's prototypes; a class without one adds 0. After training it sends the means of its features by class
under its final weights, and how many samples each is of. The server averages, G_c = sum_k n_kc G_kc / n_c
(without the second 1 / |N_c| that is printed), and keeps the old prototype of a class that nobody sent. A
model predicts the class of the nearest prototype, or by its head. On the base ``local``, which is the
paper's method, nothing else travels, and models may differ in all but l.

Prototypes are gathered in a pass of their own over the client's data; a job that stops early may send counts
of 0. The authors' code averages clients alike, takes the mean of the squares over l too, so that its lambda
of 1 is 1 / l here (the default is that of 100 features), and gathers prototypes while the weights still move.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Carry,
    Ctx,
    Method,
    Net,
    Payload,
    Predictor,
    Seen,
    Site,
    Tree,
    add_product,
    extended,
    gathering,
    leaves,
    needs_plain_model,
    one_hot,
    summed,
)


class Params(MethodParams):
    NEUTRAL: ClassVar = {"strength": 0.0, "predict": "head", "base": {"name": "fedavg"}}

    strength: Annotated[float, Field(ge=0, description="lambda, of the pull towards prototypes")] = 0.01
    predict: Annotated[
        Literal["prototype", "head"], Field(description="by the nearest prototype, or by the head")
    ] = "prototype"
    base: Annotated[AnyMethod, Field(description="what it is added to")] = "local"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base changes the features that prototypes are means of."""
        net = site.net
        if not self.strength and self.predict == "head":
            return site.base(net)

        def term(seen: Seen, carry: Carry) -> Tensor:
            means, known = (carry["fedproto"][key][seen.y] for key in ("means", "known"))
            away = (seen.features - means).square().sum(dim=-1)
            loss: Tensor = self.strength * (known * away).mean()
            return loss

        def server(initial: Tree) -> Tree:
            some = leaves(initial)[0]
            return {
                "means": some.new_zeros(net.classes, net.feature_width),
                "known": some.new_zeros(net.classes),
            }

        def start(carry: Carry, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - as extensions start
            sums = {key: torch.zeros_like(payload["fedproto"][to]) for key, to in _SUMS.items()}
            return {**carry, "fedproto": payload["fedproto"], "prototypes": sums}

        base = site.base(net.with_term(term) if self.strength else net)
        method = extended(
            base,
            "fedproto",
            server=server,
            down=lambda state, client: state["fedproto"],  # noqa: ARG005 - as extensions send
            start=start,
            phases=[gathering(net, "prototypes", _add)],
            finish=_finish,
            merge=_merge,
            # A prototype is no update of the one that was received, so there is nothing to re-express.
            stale=False,
        )
        needs_plain_model("fedproto", base, self.base, net)
        return _by_prototypes(net, method) if self.predict == "prototype" else method


_SUMS = {"sums": "means", "counts": "known"}


def _add(gathered: Tree, features: Tensor, labels: Tensor) -> None:
    member = one_hot(labels, len(gathered["counts"]), features)
    add_product(gathered["sums"], member.mT, features)
    gathered["counts"].add_(member.sum(dim=0))


def _finish(carry: Carry, ctx: Ctx) -> tuple[Payload, None]:  # noqa: ARG001 - as extensions finish
    sums, counts = carry["prototypes"]["sums"], carry["prototypes"]["counts"]
    return {"means": sums / counts.clamp(min=1)[:, None], "counts": counts}, None


def _merge(merged: Tree, server: Tree, arrivals: Sequence[Arrival]) -> Tree:
    old, sent = server["fedproto"], [each.upload["fedproto"] for each in arrivals]
    counts = summed([one["counts"] for one in sent])
    sums = summed([one["counts"][:, None] * one["means"] for one in sent])
    means = (sums / counts.clamp(min=1)[:, None]).to(old["means"].dtype)
    there = counts > 0
    known = torch.maximum(old["known"], there.to(old["known"].dtype))
    return {**merged, "fedproto": {"means": torch.where(there[:, None], means, old["means"]), "known": known}}


def _by_prototypes(net: Net, method: Method) -> Method:
    """The method whose models predict the class of the nearest prototype."""

    def nearest(weights: Tree, x: Tensor) -> Tensor:
        features, _ = net.features(weights, x, False)
        prototypes = weights["fedproto"]
        away = (features[:, None] - prototypes["means"]).square().sum(dim=-1)
        # Classes without a prototype are further away than all others.
        return -torch.where(prototypes["known"] > 0, away, away.amax(dim=-1, keepdim=True) + 1)

    def by(model: Callable[..., Predictor]) -> Callable[..., Predictor]:
        def predictor(server: Tree, *state: Any) -> Predictor:
            weights = model(server, *state).weights
            return Predictor({**weights, "fedproto": server["fedproto"]}, nearest)

        return predictor

    common = method.global_model
    return replace(
        method, personal_model=by(method.personal_model), global_model=None if common is None else by(common)
    )
