"""FedBABU: the head stays as it was drawn; the rounds train the body alone, and clients fine-tune at the end.

FedBABU: Toward Enhanced Representation for Federated Image Classification (Oh, Kim, Yun 2022), Algorithm 1:
cross-entropy over the body, the head without an update, its bias included; bodies are merged as the base does
it. The global model under the random head has the paper's initial accuracy. For its personalized accuracy
every client then trains the global model on its own data: the head, the body, or both.

The head is sent once, before the first round ("announce"). After the last one all clients receive the final
body and keep what they make of it ("fine-tune"), at the last round's learning rate and on the net's loss
alone. Until then a client's own model is the global one. Batch norm is in training mode while a client
fine-tunes, as in the authors' code, so that running statistics become the client's own, too.
"""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from edgefl.core.components import AnyMethod
from edgefl.core.errors import UserError
from edgefl.core.steps import Passes
from edgefl.methods import MethodParams
from edgefl.protocol import (
    BUFFERS,
    Method,
    Net,
    Site,
    announced,
    fine_tuning,
    needs_plain_model,
    needs_trained,
    with_own_model,
)

_PARTS = {"head": ("head",), "body": ("body",), "all": ("body", "head")}


class Params(MethodParams):
    NEUTRAL: ClassVar = {"train_head": True, "fine_tune": 0}

    fine_tune: Annotated[
        int, Field(ge=0, description="epochs of every client's own training after the last round")
    ] = 5
    parts: Annotated[Literal["head", "body", "all"], Field(description="what fine-tuning changes")] = "all"
    train_head: Annotated[bool, Field(description="whether heads are trained and shared, too")] = False
    base: Annotated[AnyMethod, Field(description="what merges the body")] = "fedavg"

    def build(self, site: Site) -> Method:
        """The base on a net with a fixed head, between the head's announcement and the fine-tuning.

        Raises:
            UserError: the net has no body to train, or the base does not share it, or fixes a head itself.
        """
        needs_trained("fedbabu", site.net, "body", "head")
        net = site.net
        if not self.train_head:
            net = replace(net, trained=tuple(part for part in net.trained if part != "head"))
        base = site.base(net)
        _check(self, net, base)
        method = base if self.train_head else announced(base, net, lambda initial: initial)
        return _tuned(method, net, self, site) if self.fine_tune else method


def _check(params: Params, net: Net, base: Method) -> None:
    if params.train_head:
        fits = base.global_model is not None
        why = "needs a base with a global model, and {} leaves parts of it with its clients"
    elif "body" in (base.client(net.on_meta()) or {}):
        fits, why = False, "needs a base that shares the body, and {} leaves it with its clients"
    else:
        fits, why = base.global_model is None, "fixes the head, and {} has another fixed head"
    if not fits:
        raise UserError("fedbabu " + why.format(params.base.name), hint="use fedavg as the base")
    needs_plain_model("fedbabu", base, params.base, net)


def _tuned(method: Method, net: Net, params: Params, site: Site) -> Method:
    """The method, after whose last round every client trains its global model."""
    trained = _PARTS[params.parts]
    kept = (*trained, BUFFERS)
    exchange = fine_tuning(
        net,
        site.local.optimizer,
        ("fine-tune", Passes(epochs=params.fine_tune)),
        lambda server, client: {part: server[part] for part in (*net.trained, BUFFERS)},  # noqa: ARG005
        name="fedbabu",
        trained=trained,
        kept=kept,
    )
    return with_own_model(method, net, "fedbabu", kept, exchange)
