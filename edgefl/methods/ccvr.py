"""CCVR: after training, the server fine-tunes the head on virtual features (Luo et al. 2021, Section 4).

Every client sends, of each class c, the number n_kc of its samples, the mean m_kc (l) and the unbiased
covariance S_kc (l x l) of their features under the final body. The server pools them::

    n_c = sum_k n_kc,   m_c = sum_k n_kc m_kc / n_c
    S_c = [sum_k (n_kc - 1) S_kc + n_kc (m_kc - m_c)(m_kc - m_c)^T] / (n_c - 1)

which is the printed form with its last terms drawn together. It draws M_c features of each class from
N(m_c, S_c), clips them at 0 and raises them to a power (Tukey's transformation), and trains the head on them
by cross-entropy; the model's own features stay as they are. SphereFed's comparison has M_c = 500 on CIFAR-100
and a rate of 1e-5 (its Table 16).

Ours, where the papers are silent: negative eigenvalues count as 0; SGD with momentum 0.9, batches of 64, ten
epochs; classes without samples have no virtual features.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.core.params import Positive
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Ctx,
    Method,
    Payload,
    Site,
    Tree,
    When,
    check_features,
    collection,
    delivered,
    gathering,
)
from edgefl.protocol.heads import tuned_head
from edgefl.protocol.statistics import add_moments, pooled_moments


class Params(MethodParams):
    NEUTRAL: ClassVar = {"virtual": 0}

    virtual: Annotated[
        int, Field(ge=0, description="M_c, virtual features of each class; 0 leaves calibration out")
    ] = 500
    power: Annotated[Positive, Field(description="Tukey's power; 1 leaves draws as they are")] = 0.5
    lr: Annotated[Positive, Field(description="the rate of fine-tuning")] = 1e-5
    epochs: Annotated[int, Field(gt=0, description="of fine-tuning")] = 10
    batch_size: Annotated[int, Field(gt=0, description="of fine-tuning")] = 64
    seed: Annotated[int, Field(ge=0, description="of virtual features and their order")] = 0
    base: Annotated[AnyMethod, Field(description="what trains the model")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base has no common features, or no head that can be calibrated."""
        net, base = site.net, site.base(site.net)
        check_features(net, base, "ccvr", self.base, "once" if self.virtual else "never")
        if not self.virtual:
            return base

        def merge(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
            pool = pooled_moments([each.upload["statistics"] for each in arrivals])
            features, labels = virtual_features(pool, self)
            own = {key: getattr(self, key) for key in ("lr", "epochs", "batch_size", "seed")}
            return {**server, "head": tuned_head(net, server["head"], features, labels, **own)}

        width, classes = net.feature_width, net.classes
        shapes = {"counts": (classes,), "means": (classes, width), "scatter": (classes, width, width)}
        gather = collection(
            net, gathering(net, "statistics", add_moments), shapes, _described, merge, When("end")
        )
        return delivered(base, net, gather)


def _described(moments: Tree, ctx: Ctx) -> tuple[Payload, None]:  # noqa: ARG001 - a fold's signature
    # In place: of all that a client holds, covariances are the largest.
    scatter = moments["scatter"].div_((moments["counts"] - 1).clamp(min=1)[:, None, None])
    return {
        "statistics": {"counts": moments["counts"], "means": moments["means"], "covariances": scatter}
    }, None


def virtual_features(pool: Tree, params: Params) -> tuple[Tensor, Tensor]:
    """Virtual features (M, l) and their labels (M,) in float64, class by class."""
    generator = torch.Generator().manual_seed(params.seed)
    features, labels = [], []
    for label in pool["counts"].nonzero().flatten().tolist():
        mean, covariance = pool["means"][label], pool["covariances"][label]
        values, vectors = torch.linalg.eigh(covariance)
        # The symmetric root does not depend on the signs that LAPACK gives to eigenvectors.
        root = (vectors * values.clamp(min=0).sqrt()) @ vectors.mT
        noise = torch.randn(params.virtual, len(mean), generator=generator, dtype=mean.dtype).to(mean.device)
        drawn = mean + noise @ root
        features.append(drawn if params.power == 1 else drawn.clamp(min=0) ** params.power)
        labels.append(torch.full((params.virtual,), label, device=mean.device))
    return torch.cat(features), torch.cat(labels)
