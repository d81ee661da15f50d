"""FedOpt (FedAdam, FedYogi, FedAdagrad, FedAvgM): an optimizer's step along the clients' mean move D.

FedAvgM is Hsu et al. 2019, Section 4.3; FedAdagrad, FedAdam and FedYogi are Reddi et al. 2021, Algorithm 2::

    avgm                 v <- beta1 v + D,               w <- w + lr v
    adagrad, adam, yogi  m <- beta1 m + (1 - beta1) D,   w <- w + lr m / (sqrt(v) + eps)
        adagrad          v <- v + D^2
        adam             v <- beta2 v + (1 - beta2) D^2
        yogi             v <- v - (1 - beta2) D^2 sign(v - D^2)

D = merged - w is how far the base's merge moves the shared trained parts; buffers are merged, not optimised.
As in the papers, no bias is corrected, and v starts at eps^2. Flower 1.17 corrects it one step off.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.core.params import Positive, Share
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Method,
    Site,
    Tree,
    extended,
    incompatible,
    parts_of,
    shared_parts,
    tree_map,
    zeros,
)

NAME = "fedopt"


class Params(MethodParams):
    NEUTRAL: ClassVar = {"optimizer": "avgm", "lr": 1.0, "beta1": 0.0}

    optimizer: Annotated[
        Literal["avgm", "adagrad", "adam", "yogi"], Field(description="the server's optimizer")
    ] = "adam"
    lr: Annotated[
        Positive | None, Field(description="the server's learning rate; null is 1 for avgm, else 0.01")
    ] = None
    beta1: Annotated[
        Share | None, Field(description="decay of the mean move; null is 0.9, and 0 for adagrad")
    ] = None
    beta2: Annotated[Share, Field(description="decay of the squared moves, for adam and yogi")] = 0.99
    eps: Annotated[Positive, Field(description="how adaptive it is: added to the root of v")] = 1e-3
    base: Annotated[AnyMethod, Field(description="the method whose merge gives the move")] = "fedavg"

    @property
    def rate(self) -> float:
        return self.lr or (1.0 if self.optimizer == "avgm" else 0.01)

    @property
    def decay(self) -> float:
        """beta1."""
        return self.beta1 if self.beta1 is not None else 0.0 if self.optimizer == "adagrad" else 0.9

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base averages no trained part, or is FedDyn."""
        base = site.base(site.net)
        parts = shared_parts(NAME, base, self.base, site.net)
        incompatible(NAME, base, site.net, {"feddyn": "it has a step of the server of its own"})

        def server(initial: Tree) -> Tree:
            state = {"mean": zeros(initial, parts)} if self.decay else {}
            if self.optimizer != "avgm":
                state["square"] = tree_map(lambda zero: zero + self.eps**2, zeros(initial, parts))
            return state

        def merge(merged: Tree, server: Tree, arrivals: Sequence[Arrival]) -> Tree:  # noqa: ARG001 - as extensions are called
            state, trained = server.get(NAME, {}), parts_of(merged, parts)
            move = tree_map(torch.sub, trained, parts_of(server, parts))
            kept = {name: tree_map(partial(_RULES[name], self), state[name], move) for name in state}
            step = kept.get("mean", move)
            if "square" in kept:
                step = tree_map(lambda mean, square: mean / (square.sqrt() + self.eps), step, kept["square"])
            # Where the step is the move, the merged weights stay as they are to the bit.
            moved = tree_map(lambda new, step, move: new + (self.rate * step - move), trained, step, move)
            return {**merged, **moved, **({NAME: kept} if kept else {})}

        stateful = self.decay or self.optimizer != "avgm"
        return extended(base, NAME, server=server if stateful else None, merge=merge)


def _mean(params: Params, mean: Tensor, move: Tensor) -> Tensor:
    share = 1.0 if params.optimizer == "avgm" else 1 - params.decay
    return params.decay * mean + share * move


def _square(params: Params, square: Tensor, move: Tensor) -> Tensor:
    new = move.square()
    if params.optimizer == "adagrad":
        return square + new
    if params.optimizer == "adam":
        return params.beta2 * square + (1 - params.beta2) * new
    return square - (1 - params.beta2) * new * torch.sign(square - new)


_RULES = {"mean": _mean, "square": _square}
