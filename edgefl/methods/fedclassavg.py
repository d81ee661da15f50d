"""FedClassAvg: only the classifier travels; bodies stay with their clients and may differ.

FedClassAvg: Local Representation Learning for Personalized Federated Learning on Heterogeneous Neural
Networks, Equations 3-5. A client overwrites its head with the received one and trains everything on two
augmented views x', x'': SupCon(f', f'') + CE(W f', y) + rho * ||W_k - W||_2. The server averages heads by
samples. A client's own model is its body under the head that it trained, before that is overwritten.
``share_body`` is the paper's "+weight": every part travels, and nothing stays.

What the paper leaves open: the contrastive temperature (0.07 here, and unit-length features, as in Khosla et
al. 2020, which it cites); cross-entropy is on the first view. The norm has no gradient at 0, where 0 is used.

The rows of its Table 4::

    CA        rho: 0, contrastive: 0
    +PR       contrastive: 0
    +CL       rho: 0
    +PR, CL   as it is

CA trains as LG-FedAvg does, bit for bit with ``augment: null``; what rows without CL see is left open.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, ClassVar, TypeAlias

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from edgefl.core.components import AnyAugmentation
from edgefl.methods import MethodParams
from edgefl.protocol import (
    BUFFERS,
    Carry,
    Method,
    NetObjective,
    Seen,
    Site,
    anchored,
    averaging,
    leaves,
    local_training,
)

Loss: TypeAlias = Callable[[Seen, Carry], Tensor]


class Params(MethodParams):
    NEUTRAL: ClassVar = {"share_body": True, "rho": 0.0, "contrastive": 0.0, "augment": None}

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
        AnyAugmentation | None,
        Field(validate_default=True, description="what makes the views; null is the task's own augmentation"),
    ] = "contrastive"

    def build(self, site: Site) -> Method:
        net, views = site.net, 1
        if self.contrastive:
            net, views = net.with_term(_contrast(self.contrastive, self.contrastive_temperature)), 2
        # A fixed head cannot be pulled.
        pulled = self.rho > 0 and "head" in net.trained
        if pulled:
            net = net.with_term(_pull(self.rho))
        train = replace(local_training(site, NetObjective(net)), views=views, augment=self.augment)
        method = averaging(
            site,
            train,
            shared=(*net.trained, BUFFERS) if self.share_body else ("head",),
            own=() if self.share_body else ("head",),
        )
        return anchored(method, net, ["head"]) if pulled else method


def _contrast(weight: float, temperature: float) -> Loss:
    """The contrastive term, over all views."""

    def loss(seen: Seen, carry: Carry) -> Tensor:  # noqa: ARG001 - a term's signature
        labels = seen.y.repeat(len(seen.views) // len(seen.y))
        return weight * supervised_contrastive(seen.views, labels, temperature)

    return loss


def _pull(rho: float) -> Loss:
    """The proximal regularisation of the head."""

    def loss(seen: Seen, carry: Carry) -> Tensor:
        own, received = leaves(seen.weights["head"]), leaves(carry["anchor"]["head"])
        away = [(ours - theirs).flatten() for ours, theirs in zip(own, received, strict=True)]
        distance: Tensor = torch.linalg.vector_norm(torch.cat(away))
        return rho * distance

    return loss


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
