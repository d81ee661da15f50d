"""FedClassAvg: only the classifier travels; bodies stay with their clients and may differ.

FedClassAvg: Local Representation Learning for Personalized Federated Learning on Heterogeneous Neural
Networks, Equations 3-5. A client overwrites its head with the received one and trains everything on two
augmented views x', x'': SupCon(f', f'') + CE(W f', y) + rho * ||W_k - W||_2. The server averages heads by
samples. A client's own model is its body under the head that it trained, before that is overwritten.
``share_body`` is the paper's "+weight": every part travels, and nothing stays.

What the paper leaves open: the contrastive temperature (0.07 here, and unit-length features, as in Khosla et
al. 2020, which it cites); cross-entropy is on the first view. The norm has no gradient at 0, where 0 is used.
"""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from edgefl.core.params import Component, Strict
from edgefl.protocol import (
    BUFFERS,
    Batch,
    Carry,
    Method,
    Phase,
    Seen,
    Site,
    Tree,
    anchored,
    averaging,
    leaves,
    plain_objective,
    sgd,
)
from edgefl.protocol import (
    fit as fitted,
)


class Params(Strict):
    """FedClassAvg's parameters."""

    share_body: Annotated[bool, Field(description="whether the body travels too, the paper's +weight")] = (
        False
    )
    rho: Annotated[float, Field(ge=0, description="strength of the pull towards the received head")] = 0.1
    contrastive: Annotated[
        float, Field(ge=0, description="weight of the contrastive term; 0 leaves it and its second view out")
    ] = 1.0
    contrastive_temperature: Annotated[
        float, Field(gt=0, description="what the contrastive term divides similarities by")
    ] = 0.07
    augment: Annotated[
        Component | None, Field(description="what makes the views; null is the task's own augmentation")
    ] = Component(name="contrastive")


def build(params: Params, site: Site) -> Method:
    """Averaging of the head alone, or of everything, with the three-term objective."""
    net, local = site.net, site.local
    # A fixed head cannot be pulled.
    pulled = params.rho > 0 and "head" in net.trained

    def objective(weights: Tree, batch: Batch, carry: Carry) -> tuple[Tensor, Tree]:
        loss, buffers = fit(weights, batch, carry)
        if pulled:
            own, received = leaves(weights["head"]), leaves(carry["anchor"]["head"])
            away = [(ours - theirs).flatten() for ours, theirs in zip(own, received, strict=True)]
            loss = loss + params.rho * torch.linalg.vector_norm(torch.cat(away))
        return loss, buffers

    def contrasted(weights: Tree, batch: Batch, carry: Carry) -> tuple[Tensor, Tree]:
        views, size = batch.x.shape[:2]
        features, buffers = net.features(weights, batch.x.flatten(0, 1), True)
        first = features[:size]
        seen = Seen(net, weights, batch.x[0], batch.y, first, net.head(weights["head"], first), {})
        contrast = supervised_contrastive(features, batch.y.repeat(views), params.contrastive_temperature)
        return fitted(net, seen, carry) + params.contrastive * contrast, buffers

    fit, views = (contrasted, 2) if params.contrastive else (plain_objective(net), 1)
    step = sgd(objective, local.optimizer, net.trained)
    method = averaging(
        site,
        Phase("train", step, local.passes, views=views, augment=params.augment),
        shared=(*net.trained, BUFFERS) if params.share_body else ("head",),
        own=() if params.share_body else ("head",),
        neutral={"share_body": True, "rho": 0.0, "contrastive": 0.0, "augment": None},
    )
    return anchored(method, net, ["head"]) if pulled else method


def supervised_contrastive(features: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """SupCon over N anchors (Khosla et al. 2020, Equation 2, as FedClassAvg's Equation 4 uses it).

    Minus the mean over i of (1 / |P_i|) * sum over p in P_i of
    log[e^(f_i f_p / t) / sum over a != i of e^(f_i f_a / t)],
    features of unit length, P_i the other samples of i's label. An anchor without positives adds 0.

    Args:
        features: (N, l), of any length.
        labels: (N,).
        temperature: t.
    """
    unit = F.normalize(features, dim=-1)
    similarity = unit @ unit.mT / temperature
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    others = similarity.masked_fill(itself, -torch.inf)
    log_share = similarity - torch.logsumexp(others, dim=-1, keepdim=True)
    positive = ((labels[:, None] == labels[None, :]) & ~itself).to(similarity.dtype)
    return -((log_share * positive).sum(dim=-1) / positive.sum(dim=-1).clamp(min=1)).mean()
