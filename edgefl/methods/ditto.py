"""Ditto: a personal model beside the base's global one, pulled towards it (Li et al. 2021, Algorithm 1).

Ditto: Fair and Robust Federated Learning Through Personalization. A client does the base's work on the
received w, and then minimises L(v) + (lambda / 2) * ||v - w||^2 over its personal model v, with w as it was
received. v stays with the client and starts as the initial weights; what travels and what is merged is the
base's, so that the global model is the base's bit for bit.

v has its own optimizer state, which restarts every round as the base's does, and its own running statistics.
It is trained on the net's loss alone: terms that methods add to the base's objective are not part of it. A
job that is cut short loses the end of v's training first.
"""

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from edgefl.core.components import AnyMethod
from edgefl.core.errors import UserError
from edgefl.core.params import NonNegative
from edgefl.core.steps import Passes
from edgefl.methods import MethodParams
from edgefl.protocol import (
    Carry,
    Ctx,
    GradientStep,
    Method,
    NetObjective,
    Payload,
    Phase,
    Predictor,
    Site,
    Tree,
    Within,
    extended,
    needs_plain_model,
    needs_trained,
    proximal_term,
    starting,
    structure,
    trainer,
)


class Params(MethodParams):
    NEUTRAL: ClassVar = {"personal_epochs": 0}

    lam: Annotated[
        NonNegative, Field(description="strength of the pull towards the received model, the paper's lambda")
    ] = 0.1
    personal_epochs: Annotated[
        int | None,
        Field(
            ge=0,
            description="epochs of the personal model; null is the length of local training, 0 leaves it out",
        ),
    ] = None
    base: Annotated[AnyMethod, Field(description="the method of the global model")] = "fedavg"

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the base has no global model of the net's parts, or the head is fixed."""
        net, optimizer = site.net, site.local.optimizer
        needs_trained("ditto", net, "head")
        base = site.base(net)
        if self.personal_epochs == 0:
            return base
        parts = structure(net.on_meta())
        if (
            base.global_model is None
            or structure(base.global_model(base.initial(net.on_meta())).weights) != parts
        ):
            raise UserError(
                f"ditto needs a base with a global model of the same parts, and {self.base.name} has none",
                hint="use a base that shares the whole model, such as fedavg",
            )
        needs_plain_model("ditto", base, self.base, net)

        def start(carry: Carry, payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
            personal = trainer((state or {})["ditto"], optimizer, net.trained, ctx.lr)
            received = starting(net, payload, state)
            return {**carry, "ditto": {**personal, "anchor": {part: received[part] for part in net.trained}}}

        objective = NetObjective(replace(net, terms=()).with_term(proximal_term(net, self.lam)))
        length = site.local.passes if self.personal_epochs is None else Passes(epochs=self.personal_epochs)
        step = Within("ditto", GradientStep(objective, optimizer, net.trained))
        method = extended(
            base,
            "ditto",
            client=lambda initial: initial,
            start=start,
            phases=[Phase("personal", step, length, reports=False)],
            finish=lambda carry, _: (None, carry["ditto"]["weights"]),
        )
        return replace(method, personal_model=lambda _, state: Predictor((state or {})["ditto"], net.logits))
