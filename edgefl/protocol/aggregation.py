"""Local training and averaging of shared parts, on which many methods build."""

from collections.abc import Iterable, Sequence

from edgefl.protocol.nets import Carry, Net, Predictor
from edgefl.protocol.training import GradientStep, Objective, trainer
from edgefl.protocol.trees import BUFFERS, Payload, Tree, weighted_mean
from edgefl.protocol.values import TRAIN, Arrival, Ctx, Exchange, Fold, Method, Phase, Site


def local_training(site: Site, objective: Objective) -> Phase:
    """The scenario's local training on single views of the training data."""
    return Phase(TRAIN, GradientStep(objective, site.local.optimizer, site.net.trained), site.local.passes)


def averaging(
    site: Site,
    *phases: Phase,
    shared: Sequence[str],
    own: Sequence[str] = (),
) -> Method:
    """A method with local training and averaging of shared parts.

    Args:
        phases: those that train; see ``local_training``.
        shared: the parts that are sent and averaged; the others are the client's state.
        own: shared parts whose trained version a client also keeps, for its personal model.

    Raises:
        ValueError: the net lacks a part, or one that is kept was not shared.
    """
    net, parts = site.net, site.net.parts()
    _check_parts("shared", shared, parts, "the net has")
    _check_parts("own", own, shared, "shared are")
    kept = tuple(part for part, names in parts.items() if names and (part not in shared or part in own))
    steps = [phase.step for phase in phases if isinstance(phase.step, GradientStep)]
    trains_kept = any(part in net.trained or part == BUFFERS for part in kept)

    def down(server: Tree, client: int) -> Payload:  # noqa: ARG001 - all clients receive the same
        return {part: server[part] for part in shared}

    def start(payload: Payload, state: Tree | None, ctx: Ctx) -> Carry:
        return trainer(starting(net, payload, state), site.local.optimizer, net.trained, ctx.lr, steps)

    def finish(carry: Carry, ctx: Ctx) -> tuple[Payload, Tree | None]:  # noqa: ARG001
        weights = carry["weights"]
        state = {part: weights[part] for part in kept} if trains_kept else None
        return {part: weights[part] for part in shared}, state

    def merge(server: Tree, arrivals: Sequence[Arrival]) -> Tree:
        if not shared:
            return server
        uploads = [{part: each.upload[part] for part in shared} for each in arrivals]
        return {**server, **weighted_mean(uploads, [each.weight for each in arrivals])}

    def personal(server: Tree, state: Tree | None) -> Predictor:
        return Predictor(whole(parts, server, state or {}), net.logits)

    fold = Fold(start, phases, finish)
    return Method(
        server=lambda initial: {part: initial[part] for part in shared},
        client=lambda initial: {part: initial[part] for part in kept} if kept else None,
        exchanges=(Exchange(TRAIN, down, fold, merge, stateful=trains_kept),),
        global_model=None if kept else (lambda server: personal(server, None)),
        personal_model=personal,
    )


def _check_parts(argument: str, given: Iterable[str], known: Iterable[str], whose: str) -> None:
    unknown = [part for part in given if part not in known]
    if unknown:
        raise ValueError(f"{argument} names {', '.join(map(repr, unknown))}; {whose} {', '.join(known)}")


def starting(net: Net, payload: Payload, state: Tree | None) -> Tree:
    """The model that a client starts from: what it received, and what it keeps of the rest; no copies."""
    return whole(net.parts(), state or {}, payload)


def whole(parts: Iterable[str], base: Tree, over: Tree) -> Tree:
    """All of a model's parts in the order of ``parts``, from ``over`` if there, else from ``base``."""
    pool = {**base, **over}
    return {part: pool.get(part, {}) for part in parts}
