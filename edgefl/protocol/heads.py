"""Heads that the server makes, and sends to all clients; heads that are trained on features alone."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.protocol.nets import Net, Predictor, cross_entropy
from edgefl.protocol.own_models import unchanged
from edgefl.protocol.training import GradientStep, NetObjective, trainer
from edgefl.protocol.trees import BUFFERS, Tree, tree_map
from edgefl.protocol.values import Batch, Exchange, Fold, Method, When

DELIVER = "deliver"
"""The name of the exchange in which clients receive a head that was changed."""


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
    deliver = delivery(DELIVER, exchange.when, kept=kept)
    return replace(base, exchanges=(*base.exchanges, exchange, deliver))


def tuned_head(
    net: Net,
    head: Tree,
    features: Tensor,
    labels: Tensor,
    *,
    lr: float,
    epochs: int,
    batch_size: int,
    seed: int,
) -> Tree:
    """The head, in its type, after SGD with momentum 0.9 on the cross-entropy of features (n, l) and labels.

    Features are float64, and so is the training; ``seed`` is that of their order.
    """
    above = replace(
        net,
        features=lambda weights, x, train: (x, weights[BUFFERS]),  # noqa: ARG005
        loss=cross_entropy,
        terms=(),
        # Those are of clients' training.
        temperature=1.0,
        sample_temperature=None,
    )
    optimizer = Sgd(lr=lr, momentum=0.9)
    step = GradientStep(NetObjective(above), optimizer, ("head",))
    wide = tree_map(lambda leaf: leaf.to(torch.float64), head)
    carry = trainer({"head": wide, BUFFERS: {}}, optimizer, ("head",), lr)
    generator = torch.Generator().manual_seed(seed)
    with torch.enable_grad():
        for _ in range(epochs):
            order = torch.randperm(len(labels), generator=generator).to(labels.device)
            for places in torch.split(order, batch_size):
                carry = step(carry, Batch(features[places], labels[places]))
    return tree_map(lambda leaf, old: leaf.to(old.dtype), carry["weights"]["head"], head)
