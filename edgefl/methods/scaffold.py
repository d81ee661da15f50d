"""SCAFFOLD: control variates against client drift (Karimireddy et al. 2020, Algorithm 1).

Server and clients keep a control variate each, c and c_k, which start at 0. A client corrects every gradient,
before clipping and momentum::

    g <- g - c_k + c
    c_k+ = c_k - c + (w - w_k) / (K * lr)     option II
    c_k+ = the gradient of all its data at w  option I, for one more pass over them

The server merges w <- w + server_lr * mean_S(w_k - w) and c <- c + (|S| / N) * mean_S(c_k+ - c_k), every
client counting the same. Buffers are averaged, never corrected. A client whose upload is dropped as late
keeps its c_k, so that c stays the mean of all c_k.

With momentum, K is how often the K gradients count in w - w_k (``effective_steps``). NIID-Bench corrects the
weights beside the momentum, divides by K itself and starts c at the weights of a random net; its code and
FedNTD's average w by samples, which ``weights: samples`` does. Weight decay is part of the gradients that c_k
estimates.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field

from edgefl.core.components import AnyMethod
from edgefl.core.params import Positive
from edgefl.core.steps import Passes
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Batch,
    Carry,
    Ctx,
    GradientStep,
    Method,
    Payload,
    Phase,
    Site,
    Tree,
    anchored,
    effective_steps,
    extended,
    gradients_of,
    incompatible,
    leaves,
    only_sgd,
    parts_of,
    rebuild,
    shared_parts,
    shifted,
    training_phase,
    tree_map,
    weighted_mean,
    zeros,
)

NAME = "scaffold"


class Params(MethodParams):
    NEUTRAL: ClassVar = {"corrected": False, "weights": "samples", "server_lr": 1.0}

    option: Annotated[
        Literal["I", "II"], Field(description="how a client renews its control variate, as in Algorithm 1")
    ] = "II"
    weights: Annotated[
        Literal["equal", "samples"],
        Field(description="how clients count in w: all the same, or as the server's policy weights them"),
    ] = "equal"
    server_lr: Annotated[Positive, Field(description="the server's step along the clients' mean move")] = 1.0
    corrected: Annotated[
        bool, Field(description="whether gradients are corrected; if not, c and c_k are 0")
    ] = True
    base: Annotated[AnyMethod, Field(description="the method that it corrects")] = "fedavg"

    def build(self, site: Site) -> Method:
        """The base with corrected gradients and its own merge.

        Raises:
            UserError: the base averages no trained part or trains in several phases, is FedDyn, or the
                clients' optimizer is not SGD.
        """
        base = site.base(site.net)
        parts = shared_parts(NAME, base, self.base, site.net)
        incompatible(NAME, base, site.net, {"feddyn": "both correct the drift of clients"})

        def arrivals(server: Tree, given: Sequence[Arrival]) -> Sequence[Arrival]:  # noqa: ARG001 - as extensions are called
            return given if self.weights == "samples" else [replace(each, weight=1.0) for each in given]

        def merge(merged: Tree, server: Tree, given: Sequence[Arrival]) -> Tree:  # noqa: ARG001 - as extensions are called
            if self.server_lr == 1.0:
                return merged
            moved = tree_map(
                lambda old, new: old + self.server_lr * (new - old),
                parts_of(server, parts),
                merged,
            )
            return {**merged, **moved}

        merging = extended(base, NAME, arrivals=arrivals, merge=merge)
        return _corrected(self, site, merging, parts) if self.corrected else merging


def _corrected(params: Params, site: Site, base: Method, parts: Sequence[str]) -> Method:
    """The base with control variates of the shared parts."""
    optimizer, net = only_sgd(NAME, site.local.optimizer), site.net
    train = training_phase(NAME, base, params.base)

    def start(carry: Carry, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - as extensions start
        common, own = payload[NAME]["control"], (state or {})[NAME]["control"]
        shift = tree_map(torch.sub, common, own)
        kept = {"control": own, "shift": shift}
        if params.option == "I":
            kept |= {"gradient": zeros(own, parts), "samples": torch.zeros_like(carry["scalars"]["loss"])}
        return {**shifted(carry, shift, net.trained), NAME: kept}

    def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree]:
        kept = carry[NAME]
        if params.option == "I":
            # A job that ends before this pass keeps its control variate.
            control = tree_map(
                lambda total, old: torch.where(kept["samples"] > 0, total / kept["samples"], old),
                kept["gradient"],
                kept["control"],
            )
        else:
            scale = 1 / (effective_steps(optimizer, ctx.steps) * ctx.lr)
            start, end = (parts_of(carry[key], parts) for key in ("anchor", "weights"))
            control = tree_map(lambda w, w_k, shift: (w - w_k) * scale - shift, start, end, kept["shift"])
        return {"change": tree_map(torch.sub, control, kept["control"])}, {"control": control}

    def merge(merged: Tree, server: Tree, given: Sequence[Arrival]) -> Tree:
        mean = weighted_mean([each.upload[NAME]["change"] for each in given], [1.0] * len(given))
        share = len(given) / site.clients
        control = tree_map(lambda old, change: old + share * change, server[NAME]["control"], mean)
        return {**merged, NAME: {"control": control}}

    def zero(initial: Tree) -> Tree:
        return {"control": zeros(initial, parts)}

    return extended(
        anchored(base, net, parts),
        NAME,
        server=zero,
        client=zero,
        down=lambda server, client: server[NAME],  # noqa: ARG005 - as extensions send
        start=start,
        phases=[_full_gradient(*train, parts)] if params.option == "I" else [],
        finish=finish,
        merge=merge,
        confirmed=True,
    )


def _full_gradient(train: Phase, step: GradientStep, parts: Sequence[str]) -> Phase:
    """A pass over the plain data that sums the gradients at the received weights."""

    def measure(carry: Carry, batch: Batch) -> Carry:
        kept, size = carry[NAME], len(batch.y)
        received = parts_of(carry["anchor"], parts)

        def objective(live: Sequence[torch.Tensor]) -> tuple[torch.Tensor, Tree]:
            return step.objective({**carry["weights"], **rebuild(received, live)}, batch, carry)

        gradients, _, _ = gradients_of(objective, leaves(received))
        total = tree_map(
            lambda one, other: one + size * other, kept["gradient"], rebuild(received, gradients)
        )
        return {**carry, NAME: {**kept, "gradient": total, "samples": kept["samples"] + size}}

    return replace(train, name="control", step=measure, passes=Passes(epochs=1), data="plain", reports=False)
