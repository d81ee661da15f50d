"""Methods made of the protocol's pieces alone, one for each kind of piece."""

import torch
from builders import MOMENTUM, build_method

from edgefl.protocol import (
    BUFFERS,
    GradientStep,
    Method,
    Net,
    NetObjective,
    Phase,
    Site,
    Within,
    anchored,
    averaging,
    extended,
    frozen,
    layers_of,
    local_training,
    shifted,
    trainer,
    tree_map,
)


def phases_by_part(net: Net) -> Method:
    """First the head alone, then the body alone."""
    site = Site(net, MOMENTUM, None)
    phases = [
        Phase(part, GradientStep(NetObjective(net), MOMENTUM.optimizer, (part,)), MOMENTUM.passes)
        for part in ("head", "body")
    ]
    return averaging(site, *phases, shared=(*net.trained, BUFFERS))


def with_second_model(net: Net) -> Method:
    """FedAvg whose clients train a second model besides, pulled to nothing, and keep it."""
    site = Site(net, MOMENTUM, None)
    step = GradientStep(NetObjective(net), MOMENTUM.optimizer, net.trained)
    return extended(
        averaging(site, local_training(site, NetObjective(net)), shared=(*net.trained, BUFFERS)),
        "second",
        client=lambda initial: initial,
        start=lambda carry, _, state, ctx: {
            **carry,
            "second": trainer(state["second"], MOMENTUM.optimizer, net.trained, ctx.lr),
        },
        phases=[Phase("second", Within("second", step), MOMENTUM.passes, reports=False)],
        finish=lambda carry, _: (None, carry["second"]["weights"]),
    )


def counting(base: Method, name: str) -> Method:
    """The base, its server counting what arrives, its clients their rounds."""
    return extended(
        base,
        name,
        server=lambda _: {"count": torch.zeros(())},
        client=lambda _: {"rounds": torch.zeros(())},
        down=lambda server, _: {"count": server[name]["count"]},
        start=lambda carry, _, state, __: {**carry, name: state[name]},
        finish=lambda carry, _: ({"one": torch.ones(())}, {"rounds": carry[name]["rounds"] + 1}),
        merge=lambda merged, server, arrivals: {
            **merged,
            name: {"count": server[name]["count"] + sum(each.upload[name]["one"] for each in arrivals)},
        },
    )


def pulled(net: Net) -> Method:
    """FedAvg whose objective compares inner layers and logits with the received model's."""

    def loss(seen, carry):
        first = net.first_layers(1)
        theirs = layers_of(net, carry["anchor"], seen.x, first)
        _, logits = frozen(net, carry["anchor"], seen.x)
        apart = (seen.layers[first[0]] - theirs[first[0]]).square().mean()
        return apart + (seen.logits - logits).square().mean()

    base = build_method("fedavg", net.with_term(loss, net.first_layers(1)), MOMENTUM)
    return anchored(base, net, net.parts())


def pushed(net: Net) -> Method:
    """FedAvg whose gradients have a constant added."""

    def start(carry, payload, state, ctx):  # noqa: ARG001 - the signature of extensions
        own = {part: carry["weights"][part] for part in net.trained}
        return shifted(carry, tree_map(lambda leaf: torch.full_like(leaf, 0.01) * ctx.samples, own))

    return extended(build_method("fedavg", net, MOMENTUM), "pushed", start=start)


def narrowed(net: Net) -> Method:
    """FedAvg whose objective runs the last stage at half its width."""
    stage = net.stage

    def loss(seen, _):
        return stage.call(seen.weights, seen.layers[stage.before], 0.5).square().mean()

    return build_method("fedavg", net.with_term(loss, (stage.before,)), MOMENTUM)


MADE = {
    "phases by part": phases_by_part,
    "second model": with_second_model,
    "extended twice": lambda net: counting(counting(build_method("fedprox", net), "inner"), "outer"),
    "pulled": pulled,
    "pushed": pushed,
    "narrowed": narrowed,
}
