"""FedNTD: distillation of what the received model says of a sample's other classes.

Preservation of the Global Knowledge by Not-True Distillation in Federated Learning, Equations 10-11. A step
minimises the base's objective + beta * tau^2 * mean_i KL(q_w || q_k), where q is the softmax of z / tau over
the C - 1 classes other than the label, and w the received model: one forward pass of it, in evaluation mode.
The label's own logit gets no gradient of the term. The factor tau^2 stands in Equation 3 and in the authors'
code, not in Equations 10-11.

Variants: ``kd_mix`` is the lambda of Equation 18, (1 - lambda) * KD + lambda * NTD, with KD the same
divergence over all C classes; ``distance: mse`` is the mean square of differences between the C - 1 logits
(appendix L, which leaves the reduction and tau open).
"""

from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from edgefl.core.components import AnyMethod
from edgefl.core.errors import UserError
from edgefl.methods import MethodParams
from edgefl.protocol import Carry, Method, Net, Seen, Site, anchored, frozen, needs_received


class Params(MethodParams):
    NEUTRAL: ClassVar = {"beta": 0.0}

    beta: Annotated[float, Field(ge=0, description="weight of the distillation; 0 is the base method")] = 1.0
    tau: Annotated[float, Field(gt=0, description="temperature of the distillation")] = 1.0
    kd_mix: Annotated[
        float,
        Field(ge=0, le=1, description="share of not-true distillation; the rest distils over all classes"),
    ] = 1.0
    distance: Annotated[
        Literal["kl", "mse"], Field(description="between softmaxes (kl) or between logits (mse)")
    ] = "kl"
    base: Annotated[AnyMethod, Field(description="the method whose objective has the term")] = "fedavg"

    def build(self, site: Site) -> Method:
        """The base whose objective has the distillation.

        Raises:
            UserError: the base leaves the body with its clients, or the term would be 0 or is not defined.
        """
        net = site.net
        if not self.beta:
            return site.base(net)
        _check(self, net)

        def loss(seen: Seen, carry: Carry) -> Tensor:
            _, teacher = frozen(seen.net, carry["anchor"], seen.x)
            return self.beta * _distilled(self, seen.logits, teacher, seen.y)

        base = site.base(net.with_term(loss))
        needs_received("fedntd", base, self.base, net, ("body",))
        return anchored(base, net, net.parts())


def _check(params: Params, net: Net) -> None:
    if params.distance == "mse" and params.kd_mix < 1:
        raise UserError(
            "kd_mix mixes two divergences, and with distance: mse there is none",
            hint="leave out kd_mix or distance",
        )
    if params.distance == "kl" and params.kd_mix == 1 and net.classes == 2:  # noqa: PLR2004 - the label and one other
        raise UserError(
            "fedntd does nothing with two classes: the softmax over the one class that is not the label is 1",
            hint="set kd_mix below 1 or distance to mse, or use another method",
        )


def _distilled(params: Params, student: Tensor, teacher: Tensor, labels: Tensor) -> Tensor:
    own, others = (not_true(logits, labels) for logits in (student, teacher))
    if params.distance == "mse":
        return (own - others).square().mean()
    term = _divergence(others, own, params.tau)
    if params.kd_mix == 1:
        return term
    return params.kd_mix * term + (1 - params.kd_mix) * _divergence(teacher, student, params.tau)


def _divergence(teacher: Tensor, student: Tensor, tau: float) -> Tensor:
    """tau^2 times the batch mean of KL(softmax(teacher / tau) || softmax(student / tau))."""
    target, own = (torch.log_softmax(logits / tau, dim=-1) for logits in (teacher, student))
    return tau**2 * (target.exp() * (target - own)).sum(dim=-1).mean()


def not_true(logits: Tensor, labels: Tensor) -> Tensor:
    """The logits (B, C - 1) of all classes but the labels (B,), in the order of classes."""
    places = torch.arange(logits.shape[-1] - 1, device=labels.device)
    return logits.gather(-1, places + (places >= labels.unsqueeze(-1)))
