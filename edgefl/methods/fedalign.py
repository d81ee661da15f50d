"""FedAlign: the last stage at a part of its width, as Lipschitz as the whole stage (Mendieta et al. 2022).

A step minimises the base's objective + mu * sg(CE / l) * l, with l = mean_i (sigma_s - sigma_t)^2 (section 4
and the authors' code, which scales l to the size of the cross-entropy). sigma is the largest singular value
of A O^T / HW, A (D, HW) being what the last stage gets of a sample, pooled to the size of what it returns, O
(D', HW). sigma_t is of the whole stage, without a gradient. sigma_s is of the stage at the width omega: the
first channels of its layers, on the first channels of A, in training mode. Gradients flow through that run
alone, not into A.

The singular value is found by ten power iterations on (A O^T)(A O^T)^T, from a vector of ones and with
gradients through all of them, as in the authors' code. Their clipping at 10 is ``local.optimizer.clip_norm``.
Activations without places, as of fully connected layers, have HW = 1.
"""

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from edgefl.core.components import AnyMethod
from edgefl.core.errors import UserError
from edgefl.methods import MethodParams
from edgefl.protocol import Carry, Method, Seen, Site, chilled

_ITERATIONS = 10


class Params(MethodParams):
    NEUTRAL: ClassVar = {"mu": 0.0}

    mu: Annotated[float, Field(ge=0, description="weight of the term; 0 is the base method")] = 0.45
    width: Annotated[
        float, Field(gt=0, le=1, description="share of the last stage's channels in the second run, omega")
    ] = 0.25
    base: Annotated[AnyMethod, Field(description="the method whose objective has the term")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the net has no stage that can be run at a part of its width."""
        net, stage, width = site.net, site.net.stage, self.width
        if not self.mu:
            return site.base(net)
        if stage is None:
            raise UserError(
                f"fedalign runs a model's last stage at a part of its width, which {net.name} cannot",
                hint="choose a model with a stage, such as resnet18 or cnn2",
            )

        def loss(seen: Seen, carry: Carry) -> Tensor:
            before = seen.layers[stage.before].detach()
            part = stage.call(seen.weights, before, width)
            first = before[:, : math.ceil(before.shape[1] * width)]
            with torch.no_grad():
                target = lipschitz(before, seen.layers[stage.after])
            away = (lipschitz(first, part) - target).square().mean()
            with torch.no_grad():
                fitted = seen.net.loss(chilled(seen.net, seen.logits, seen.y, carry), seen.y)
                scale = fitted / away.clamp(min=torch.finfo(away.dtype).tiny ** 0.5)
            return self.mu * scale * away

        return site.base(net.with_term(loss, (stage.before, stage.after)))


def lipschitz(before: Tensor, after: Tensor) -> Tensor:
    """Sigma (B,): each sample's largest singular value of A O^T / HW, by ten power iterations.

    Args:
        before: A, (B, D) or (B, D, H, W).
        after: O, (B, D') or (B, D', H', W'), no larger.
    """
    if before.dim() > 2 and before.shape[2:] != after.shape[2:]:  # noqa: PLR2004 - samples and channels
        before = F.adaptive_avg_pool2d(before, (after.shape[2], after.shape[3]))
    left, right = (layer.reshape(*layer.shape[:2], -1) for layer in (before, after))
    transfer = left @ right.mT / left.shape[-1]
    vector = torch.ones_like(transfer[..., :1])
    least = torch.finfo(vector.dtype).tiny ** 0.5
    for _ in range(_ITERATIONS):
        product = transfer @ (transfer.mT @ vector)
        norm = torch.linalg.vector_norm(product, dim=-2, keepdim=True).clamp(min=least)
        vector = product / norm
    return torch.sqrt(norm).flatten()
