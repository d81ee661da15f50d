"""KT-pFL: clients learn from mixtures of each other's soft predictions on public images.

Parameterized Knowledge Transfer for Personalized Federated Learning (Zhang et al. 2021,
Algorithm 1). Models stay with their clients and may be of any kind with C classes. The server keeps every
client's latest soft predictions s_m = softmax(z / T) on the public images (P x C) and knowledge coefficients
c (N x N), 1 / N at first. A round of client k:

- it receives its target t_k = sum over m of c_km s_m (P x C);
- it distils: one epoch on the public images, minimising KL(t_k || softmax(z / T)), the batch's mean;
- it trains on its own data, minimising cross-entropy, and sends s_k.

The server then takes a gradient step on c of
sum over k of p_k KL(t_k || s_k) + rho ||c - 1 / N||^2, where p_k is the client's share of all samples.

Before the first round every client receives the public images, once, as bytes, and sends the predictions of
its initial model ("announce"). A client that does not take part keeps its last predictions, and so a stale
upload is what the server would have had anyway: its predictions are taken as they are.

``share_weights`` is the "+weight" of FedClassAvg's comparison: besides predictions, whole models of one
architecture travel, and client k starts from sum over m of c_km w_m, over those that have sent theirs. How c
is learned then is not stated; here as without.

Our choices: KL is the mean over images; after its step each row of c is projected to the simplex (Duchi et
al. 2008, Figure 1), since a target is a distribution; distilling and training share one optimizer and its
state; a client that is stopped early predicts its target for the images that it did not reach.

The authors' code trains c on squared errors without p_k, with a rate that adapts to the gradient, and applies
a softmax of 5 c to each row; it draws other public images in every round, distils on squared errors between
probabilities, trains one epoch more in each round up to the number given, and one before the first.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from edgefl.methods import MethodParams
from edgefl.protocol import (
    Arrival,
    Batch,
    Carry,
    Ctx,
    Exchange,
    Fold,
    GradientStep,
    Method,
    Net,
    NetObjective,
    Objective,
    Passes,
    Payload,
    Phase,
    Site,
    Tree,
    When,
    averaging,
    frozen,
    leaves,
    local_training,
    needs_public,
    starting,
    weighted_mean,
)

NAME = "ktpfl"


class Params(MethodParams):
    temperature: Annotated[float, Field(gt=0, description="T, of soft predictions and distilling")] = 10.0
    rho: Annotated[float, Field(ge=0, description="pull of the knowledge coefficients towards 1/N")] = 0.7
    coefficient_lr: Annotated[
        float, Field(ge=0, description="rate of the knowledge coefficients; 0 leaves them at 1/N")
    ] = 0.5
    coefficients: Annotated[
        Literal["learned", "samples"],
        Field(description="knowledge coefficients: learned, or each client's share of all samples"),
    ] = "learned"
    distill_epochs: Annotated[int, Field(ge=0, description="passes over the public images in a round")] = 1
    share_weights: Annotated[
        bool, Field(description="whether clients start from mixtures of models too, the paper's +weight")
    ] = False

    def build(self, site: Site) -> Method:
        """Raises a ``UserError`` if the task has no public images."""
        net, images = site.net, needs_public(NAME, site)
        shared = tuple(net.parts()) if self.share_weights else ()
        distil = GradientStep(distilling(net, self.temperature), site.local.optimizer, net.trained)
        predict = on_public("predict", predicting(net, self.temperature), images)
        alone = averaging(
            site,
            on_public("distil", distil, images, self.distill_epochs),
            local_training(site, NetObjective(net)),
            shared=(),
        )
        (train,) = alone.exchanges

        def server(initial: Tree) -> Tree:
            even = leaves(initial)[0].new_full((len(images), net.classes), 1 / net.classes)
            # Numbers that are read one by one, also where tensors have no data.
            ones = torch.ones(site.clients, dtype=torch.float64, device="cpu")
            own = {
                "coefficients": ones.repeat(len(ones), 1) / len(ones),
                "samples": ones,
                "clients": {str(client): {"predictions": even} for client in range(site.clients)},
                "initial": {part: initial[part] for part in shared},
            }
            return {NAME: own}

        def down(server: Tree, client: int) -> Payload:
            own = server[NAME]
            row = (own["samples"] if self.coefficients == "samples" else own["coefficients"][client]).tolist()
            return {"target": mixture(own, row, ["predictions"])["predictions"], **mixture(own, row, shared)}

        def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
            carry = train.work.start(payload, state, ctx)
            return {**carry, "target": payload["target"], "predictions": payload["target"].clone()}

        def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree | None]:
            weights = {part: carry["weights"][part] for part in shared}
            return {"predictions": carry["predictions"], **weights}, train.work.finish(carry, ctx)[1]

        def merge(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
            found = heard(server, arrivals)
            if self.coefficients == "samples" or not self.coefficient_lr:
                return found
            return {**found, NAME: adapted(found[NAME], self.coefficient_lr, self.rho)}

        work = replace(train.work, start=start, phases=(*train.work.phases, predict), finish=finish)
        return Method(
            server=server,
            client=alone.client,
            exchanges=(announce(net, images, predict), replace(train, down=down, work=work, merge=merge)),
            personal_model=alone.personal_model,
        )


def on_public(name: str, step: Callable[[Carry, Batch], Carry], images: Tensor, epochs: int = 1) -> Phase:
    """A phase on the public images, which is no local training and reports no loss."""
    return Phase(name, step, Passes(epochs=epochs, samples=len(images)), data="public", reports=False)


def distilling(net: Net, temperature: float) -> Objective:
    """KL(t || softmax(z / T)), the batch's mean, up to the entropy of t, which has no gradient."""

    def objective(weights: Tree, batch: Batch, carry: Carry) -> tuple[Tensor, Tree]:
        features, buffers = net.features(weights, batch.x, True)
        shares = F.log_softmax(net.head(weights["head"], features) / temperature, dim=-1)
        return -(carry["target"].index_select(0, batch.y) * shares).sum(dim=-1).mean(), buffers

    return objective


def predicting(net: Net, temperature: float) -> Callable[[Carry, Batch], Carry]:
    """A step that writes softmax(z / T) of the model as it is into the carry's predictions."""

    def step(carry: Carry, batch: Batch) -> Carry:
        _, logits = frozen(net, carry["weights"], batch.x)
        carry["predictions"].index_put_((batch.y,), torch.softmax(logits / temperature, dim=-1))
        return carry

    return step


def announce(net: Net, images: Tensor, predict: Phase) -> Exchange:
    """Every client receives the images, and predicts with its initial model."""

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:  # noqa: ARG001 - phases read the images
        weights = starting(net, {}, state)
        return {"weights": weights, "predictions": leaves(weights)[0].new_zeros(len(images), net.classes)}

    return Exchange(
        "announce",
        down=lambda server, client: {"public": images},  # noqa: ARG005
        work=Fold(start, (predict,), lambda carry, ctx: ({"predictions": carry["predictions"]}, None)),  # noqa: ARG005
        merge=heard,
        when=When("start"),
        who="all",
    )


def latest(own: Tree) -> list[Tree]:
    """What the server knows of each client; a state that was read from a file may have another order."""
    return [own["clients"][str(client)] for client in range(len(own["samples"]))]


def mixture(own: Tree, row: Sequence[float], parts: Sequence[str]) -> Tree:
    """The mean of what clients sent last, without those that did not yet; the initial parts if none did."""
    pairs = zip(latest(own), row, strict=True)
    sent = [(known, share) for known, share in pairs if share and all(part in known for part in parts)]
    if not sent:
        return {part: own["initial"][part] for part in parts}
    trees = [{part: known[part] for part in parts} for known, _ in sent]
    return weighted_mean(trees, [share for _, share in sent])


def heard(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
    """The server state with what has arrived as the clients' latest."""
    own = server[NAME]
    clients, samples = dict(own["clients"]), own["samples"].clone()
    for each in arrivals:
        client = each.ctx.client
        clients[str(client)] = {**clients[str(client)], **each.upload}
        samples[client] = each.ctx.samples
    return {**server, NAME: {**own, "clients": clients, "samples": samples}}


def adapted(own: Tree, lr: float, rho: float) -> Tree:
    """The method's own server state after a gradient step of its coefficients (N, N), at a rate."""
    c, share = own["coefficients"], own["samples"] / own["samples"].sum()
    predictions = torch.stack([known["predictions"] for known in latest(own)])
    # Codecs may round small shares to 0.
    s = predictions.flatten(1).to(c).clamp_min(torch.finfo(predictions.dtype).tiny)
    # Of log(t / s) + 1, the 1 moves all of a row alike, which the projection undoes.
    knowledge = torch.log(c @ s / s) @ s.mT / predictions.shape[1]
    gradient = share.unsqueeze(1) * knowledge + 2 * rho * (c - 1 / len(c))
    return {**own, "coefficients": on_simplex(c - lr * gradient)}


def on_simplex(rows: Tensor) -> Tensor:
    """The closest rows (N, N) whose numbers are not negative and add up to 1."""
    falling = rows.sort(dim=1, descending=True).values
    excess = (falling.cumsum(dim=1) - 1) / torch.arange(1, rows.shape[1] + 1).to(rows)
    kept = (falling > excess).sum(dim=1, keepdim=True)
    return (rows - excess.gather(1, kept - 1)).clamp_min(0)
