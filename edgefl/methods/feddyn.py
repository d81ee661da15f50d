"""FedDyn: dynamic regularisation (Acar et al. 2021, Algorithm 1).

A client minimises L_k(w_k) - <h_k, w_k> + (alpha / 2) * ||w_k - w||^2, so that its optimum tends to that of
all clients, and renews h_k, its gradient at the model that it trained last::

    h_k <- h_k - alpha (w_k - w)
    h   <- h - (alpha / N) sum_S (w_k - w)
    w   <- mean_S w_k - h / alpha

over the round's participants S of N clients, every one counting the same. All h start at 0. A client whose
upload is dropped as late keeps its h_k, so that h stays the mean of all h_k. Buffers are averaged; parts that
stay with clients are trained as the base does.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import torch
from pydantic import Field

from edgefl.core.components import AnyMethod
from edgefl.core.params import Positive
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Carry,
    Ctx,
    Method,
    Payload,
    Site,
    Tree,
    anchored,
    extended,
    incompatible,
    parts_of,
    proximal_term,
    shared_parts,
    shifted,
    tree_map,
    zeros,
)

NAME = "feddyn"
_OWN_STEP = "its server would take a step beside FedDyn's"


class Params(MethodParams):
    alpha: Annotated[Positive, Field(description="strength of the regularisation")] = 0.01
    base: Annotated[AnyMethod, Field(description="the method that it regularises")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base averages no trained part, changes gradients or moves itself."""
        alpha = self.alpha
        parts = shared_parts(NAME, site.base(site.net), self.base, site.net)
        net = site.net.with_term(proximal_term(site.net, alpha, parts))
        base = site.base(net)
        incompatible(NAME, base, net, {"scaffold": "both correct the drift of clients", "fedopt": _OWN_STEP})

        def start(carry: Carry, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - as extensions start
            shift = tree_map(torch.neg, (state or {})[NAME])
            return {**shifted(carry, shift, net.trained), NAME: shift}

        def finish(carry: Carry, ctx: Ctx) -> tuple[None, Tree]:  # noqa: ARG001 - as extensions finish
            received, trained = ({part: carry[key][part] for part in parts} for key in ("anchor", "weights"))
            return None, tree_map(
                lambda shift, w, w_k: -shift - alpha * (w_k - w), carry[NAME], received, trained
            )

        def arrivals(server: Tree, given: Sequence[Arrival]) -> Sequence[Arrival]:  # noqa: ARG001 - as extensions are called
            return [replace(each, weight=1.0) for each in given]

        def merge(merged: Tree, server: Tree, given: Sequence[Arrival]) -> Tree:
            h = server[NAME]
            for each in given:
                old, new = parts_of(each.received, parts), parts_of(each.upload, parts)
                h = tree_map(lambda h, w, w_k: h - alpha / site.clients * (w_k - w), h, old, new)
            moved = tree_map(lambda mean, h: mean - h / alpha, parts_of(merged, parts), h)
            return {**merged, **moved, NAME: h}

        return extended(
            anchored(base, net, parts),
            NAME,
            server=lambda initial: zeros(initial, parts),
            client=lambda initial: zeros(initial, parts),
            start=start,
            finish=finish,
            arrivals=arrivals,
            merge=merge,
            confirmed=True,
            stale=False,
        )
