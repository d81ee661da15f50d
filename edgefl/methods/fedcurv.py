"""FedCurv: a pull towards other clients' optima along what matters to them (Shoham et al. 2019, Equation 3).

After training, client k estimates the diagonal u_k of its Fisher information at its weights w_k: the mean
over s samples of (d log p(y | x) / d w)^2, sample by sample, in evaluation mode; -log p is the loss that the
base trains on, at its temperature, such as SphereFed's squared error. It sends u_k and
v_k = u_k * w_k beside w_k, and receives the sums U and V over the last round's participants. Without its own
share in them, it minimises::

    CE + penalty * (<U - u_k, w^2> - 2 <V - v_k, w>)
        = CE + penalty * sum_(j != k) (w - w_j)^T diag(u_j) (w - w_j), up to a constant.

There is no penalty in the first round. The samples are drawn anew in every round, as training draws them; a
client with fewer than s goes through its own again, and a job that ends early has fewer or none. One byte
tells a client whether U has a share of its own: it may have been left out of the last round, or have come too
late. The authors' code squares the gradient of a batch's mean loss, and adds up every client that ever took
part.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.core.params import NonNegative
from edgefl.core.steps import Passes
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Batch,
    Carry,
    Ctx,
    Method,
    Net,
    Payload,
    Phase,
    Seen,
    Site,
    Tree,
    extended,
    fit_loss,
    leaves,
    parts_of,
    shared_parts,
    trained_net,
    tree_map,
    zeros,
)

NAME = "fedcurv"
# Of how many samples the gradients are held at once, each as large as the model.
_TOGETHER = 8


class Params(MethodParams):
    NEUTRAL: ClassVar = {"penalty": 0.0}

    penalty: Annotated[NonNegative, Field(description="strength of the pull, the paper's lambda")] = 1.0
    samples: Annotated[int, Field(gt=0, description="how many samples the Fisher information is of")] = 500
    base: Annotated[AnyMethod, Field(description="the method that it pulls")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base averages no trained part."""
        plain = site.base(site.net)
        parts = shared_parts(NAME, plain, self.base, site.net)
        if not self.penalty:
            return plain

        def pull(seen: Seen, carry: Carry) -> Tensor:
            trees = carry[NAME]["others"]["fisher"], carry[NAME]["others"]["product"], seen.weights
            lists = (leaves(parts_of(tree, parts)) for tree in trees)
            sums = [((u * w - 2 * v) * w).sum() for u, v, w in zip(*lists, strict=True)]
            return self.penalty * torch.stack(sums).sum()

        def start(carry: Carry, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - as extensions start
            sums, own = payload[NAME], (state or {})[NAME]
            others = tree_map(lambda total, mine: total - sums["included"] * mine, sums["sums"], own)
            seen = torch.zeros_like(carry["scalars"]["loss"])
            return {
                **carry,
                NAME: {"others": others, "squares": zeros(carry["weights"], parts), "seen": seen},
            }

        def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree]:  # noqa: ARG001 - as extensions finish
            kept, trained = carry[NAME], parts_of(carry["weights"], parts)
            fisher = tree_map(lambda total: total / kept["seen"].clamp(min=1), kept["squares"])
            own = {"fisher": fisher, "product": tree_map(torch.mul, fisher, trained)}
            return {"own": own}, own

        def merge(merged: Tree, server: Tree, given: Sequence[Arrival]) -> Tree:
            sums = reduce(partial(tree_map, torch.add), [each.upload[NAME]["own"] for each in given])
            included = torch.zeros_like(server[NAME]["included"])
            included[[each.ctx.client for each in given]] = True
            return {**merged, NAME: {"sums": sums, "included": included}}

        def none(initial: Tree) -> Tree:
            return {name: zeros(initial, parts) for name in ("fisher", "product")}

        def server(initial: Tree) -> Tree:
            some = leaves(parts_of(initial, parts))[0]
            return {"sums": none(initial), "included": some.new_zeros(site.clients, dtype=torch.bool)}

        def down(server: Tree, client: int) -> Payload:
            # A client is told whether the sums have a share of its own.
            return {**server[NAME], "included": server[NAME]["included"][client]}

        return extended(
            site.base(site.net.with_term(pull)),
            NAME,
            server=server,
            client=none,
            down=down,
            start=start,
            phases=[_fisher(self, site.local.size, trained_net(plain, site.net), parts)],
            finish=finish,
            merge=merge,
            stale=False,
        )


def _fisher(params: Params, batch_size: int, net: Net, parts: Sequence[str]) -> Phase:
    """The phase that sums the squared gradients of single samples at the trained weights."""

    def measure(carry: Carry, batch: Batch) -> Carry:
        kept, trained = carry[NAME], parts_of(carry["weights"], parts)

        def loss(live: Tree, x: Tensor, y: Tensor) -> Tensor:
            weights = {**carry["weights"], **live}
            features, _ = net.features(weights, x.unsqueeze(0), False)
            return fit_loss(net, net.head(weights["head"], features), y.unsqueeze(0), carry)

        squares = kept["squares"]
        for few in zip(torch.split(batch.x, _TOGETHER), torch.split(batch.y, _TOGETHER), strict=True):
            gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(trained, *few)
            squares = tree_map(lambda total, each: total + each.square().sum(0), squares, gradients)
        return {**carry, NAME: {**kept, "squares": squares, "seen": kept["seen"] + len(batch.y)}}

    steps = -(-params.samples // batch_size)
    return Phase("fisher", measure, Passes(steps=steps), reports=False)
