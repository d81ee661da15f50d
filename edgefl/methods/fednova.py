"""FedNova: averaging of normalised updates (Wang et al. 2020, Equations 5-9).

Clients that take more steps move further, and would pull the average towards their own objectives. FedNova
averages w - w_k per effective step instead, and moves by the mean number of them::

    w <- w - tau * sum_k p_k (w - w_k) / a_k,  tau = sum_k p_k a_k

p_k is the policy's weight, by samples or equal. Over a base that counts all clients the same, such as
SCAFFOLD, tau still has the policy's.

a_k is the weight of the local gradients in w - w_k, divided by the learning rate: K steps for plain SGD, more
with momentum (``effective_steps``), fewer with the proximal term (mu / 2) * ||w_k - w||^2 that ``mu`` adds:
(1 - (1 - lr mu)^K) / (lr mu) without momentum. A term that a base such as FedProx adds counts as part of the
local objective. Equal a_k leave the uploads as they are, bit for bit; buffers are averaged.

The paper's clients send d_k = (w - w_k) / a_k and a_k. Here they send w_k: the server knows the steps and the
rate that it set, and with them a_k. The authors' code takes tau = sum_k p_k K where mu is not 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from edgefl.core.components import AnyMethod
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import NonNegative
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Ctx,
    Method,
    Site,
    Tree,
    anchored,
    effective_steps,
    extended,
    incompatible,
    only_sgd,
    parts_of,
    proximal_term,
    shared_parts,
    training_phase,
    tree_map,
)


class Params(MethodParams):
    mu: Annotated[NonNegative, Field(description="strength of the pull towards the received weights")] = 0.0
    base: Annotated[AnyMethod, Field(description="the method whose updates are normalised")] = "fedavg"

    def build(self, site: Site) -> Method:
        """The base, its merge given updates of equal length.

        Raises:
            UserError: the base averages no trained part or trains in several phases, is FedDyn, or the
                clients' optimizer is not SGD.
        """
        optimizer = only_sgd("fednova", site.local.optimizer)
        net = site.net.with_term(proximal_term(site.net, self.mu)) if self.mu else site.net
        base = site.base(net)
        parts = shared_parts("fednova", base, self.base, net)
        training_phase("fednova", base, self.base)
        incompatible("fednova", base, net, {"feddyn": "its server adds up the clients' moves as they are"})
        if self.mu:
            base = anchored(base, net, net.trained)

        def arrivals(server: Tree, given: Sequence[Arrival]) -> Sequence[Arrival]:  # noqa: ARG001 - as extensions are called
            lengths = [gradients_in_move(optimizer, self.mu, each.ctx) for each in given]
            if len(set(lengths)) == 1:
                return given
            pairs, total = list(zip(given, lengths, strict=True)), sum(each.weight for each in given)
            mean = sum(each.weight * length for each, length in pairs) / total
            return [_moved(each, parts, mean / length) for each, length in pairs]

        return extended(base, "fednova", arrivals=arrivals)


def _moved(arrival: Arrival, parts: Sequence[str], factor: float) -> Arrival:
    """The arrival with its move from what it updates times a factor."""
    received, upload = parts_of(arrival.received, parts), parts_of(arrival.upload, parts)
    moved = tree_map(lambda old, new: old + factor * (new - old), received, upload)
    return replace(arrival, upload={**arrival.upload, **moved})


def gradients_in_move(optimizer: Sgd, mu: float, ctx: Ctx) -> float:
    """a_k: the weight of a job's local gradients in w - w_k, divided by the learning rate."""
    if not mu:
        return float(effective_steps(optimizer, ctx.steps))
    moved = momentum = 0.0
    for _ in range(ctx.steps):
        # Of local gradients that are all 1, the pull back included.
        gradient = 1 - ctx.lr * mu * moved
        momentum = optimizer.momentum * momentum + gradient
        moved += gradient + optimizer.momentum * momentum if optimizer.nesterov else momentum
    return moved
