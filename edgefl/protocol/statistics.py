"""Statistics of frozen features, which all clients gather in one pass over their data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from edgefl.core.errors import UserError
from edgefl.core.steps import Passes
from edgefl.protocol.aggregation import starting
from edgefl.protocol.nets import Carry, Net, transformed
from edgefl.protocol.trees import Payload, Tree, leaves
from edgefl.protocol.values import Arrival, Batch, Ctx, Exchange, Fold, Phase, When

# Rows of a batch that blocks of one class each waste at most.
_BLOCKED = 64


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
        phase: see ``gathering``; the exchange has its name.
        shapes: of the statistics, which begin at zero.
        finish: (statistics, ctx) -> upload and client state, see ``Fold``.
        stateful: whether ``finish`` returns a state.

    Raises:
        UserError: the net has no body.
    """
    if not net.parts()["body"]:
        what = (
            f"the exchange {phase.name!r} gathers statistics of a body's features, and {net.name} has no body"
        )
        raise UserError(what, hint="use a model with hidden layers")

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - a fold's signature
        model, some = starting(net, payload, state), leaves(payload["body"])[0]
        weights = {part: tree for part, tree in model.items() if part != "head"}
        return {"weights": weights, phase.name: {key: some.new_zeros(shape) for key, shape in shapes.items()}}

    fold = Fold(start, (phase,), lambda carry, ctx: finish(carry[phase.name], ctx))
    return Exchange(phase.name, sending(net, "head"), fold, merge, when, who="all", stateful=stateful)


def sending(net: Net, *without: str) -> Callable[[Tree, int], Payload]:
    """Sends what the server has of the model."""
    parts = [part for part in net.parts() if part not in without]
    return lambda server, client: {part: server[part] for part in parts if part in server}  # noqa: ARG005


def summed(matrices: Sequence[Tensor]) -> Tensor:
    """The sum in float64, as a running sum: hundreds of V would not fit in memory at once."""
    total = torch.zeros_like(matrices[0], dtype=torch.float64)
    for matrix in matrices:
        total += matrix
    return total


def add_moments(moments: Tree, features: Tensor, labels: Tensor) -> None:
    """Adds a batch to counts (C,), means (C, l) and sums of squares around them (C, l, l), in place.

    The pairwise update of Chan et al. 1983: sums of squares around 0 would lose covariances to rounding. A
    class's m samples x_i around their mean, u_i, and n samples around d less than it have n m / (n + m) d d^T
    besides both sums; since the u_i sum to 0, that is in the sum of squares of u_i + sqrt(n / (n + m)) d.
    """
    member = one_hot(labels, len(moments["counts"]), features)
    counts, before = member.sum(dim=0), moments["counts"]
    means = (member.mT @ features) / counts.clamp(min=1)[:, None]
    both = (before + counts).clamp(min=1)
    away = means - moments["means"]
    shift = (before / both).sqrt()[:, None] * away - means
    _add_squares(moments["scatter"], features + shift.index_select(0, labels), labels)
    moments["means"].add_((counts / both)[:, None] * away)
    moments["counts"].add_(counts)


def _add_squares(total: Tensor, rows: Tensor, labels: Tensor) -> None:
    """Adds to the matrix of each class (C, l, l) the products x x^T of its rows (B, l), in place.

    Rows are multiplied in blocks, each of one class and filled up with zeros, so that shapes do not depend on
    labels: 2 (B + _BLOCKED) l^2 operations at most, of which 2 B l^2 are not on zeros. Every class's product
    with all rows would take C times as many; one product for each row, many more passes over l x l numbers.
    """
    classes, width = len(total), rows.shape[-1]
    size = max(1, _BLOCKED // classes)
    blocks = (len(rows) + min(len(rows), classes) * (size - 1)) // size
    member = one_hot(labels, classes, labels)
    filled = (member.sum(dim=0) + (size - 1)).div(size, rounding_mode="floor")
    nth = (member.cumsum(dim=0) - 1).gather(1, labels[:, None])[:, 0]
    place = (filled.cumsum(dim=0) - filled).index_select(0, labels) * size + nth
    packed = rows.new_zeros(blocks * size, width).index_copy(0, place, rows)
    owner = labels.new_zeros(blocks).index_copy(0, place.div(size, rounding_mode="floor"), labels)
    for block, label in zip(torch.split(packed, size), torch.split(owner, 1), strict=True):
        total.index_add_(0, label, (block.mT @ block)[None])


def pooled_moments(clients: Sequence[Tree]) -> Tree:
    """Counts (C,), means (C, l) and covariances (C, l, l) of all clients' samples together, in float64."""
    wide = [{key: one[key].to(torch.float64) for key in ("counts", "means")} for one in clients]
    counts = summed([one["counts"] for one in wide])
    means = summed([one["counts"][:, None] * one["means"] for one in wide]) / counts.clamp(min=1)[:, None]
    scatter = torch.zeros_like(clients[0]["covariances"], dtype=torch.float64)
    for one, sent in zip(wide, clients, strict=True):
        away = one["counts"].sqrt()[:, None] * (one["means"] - means)
        within = (one["counts"] - 1).clamp(min=0)[:, None, None]
        scatter += within * sent["covariances"] + away[:, :, None] * away[:, None]
    return {
        "counts": counts,
        "means": means,
        "covariances": scatter / (counts - 1).clamp(min=1)[:, None, None],
    }
