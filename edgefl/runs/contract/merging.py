"""What a server may rely on when it merges."""

from collections.abc import Sequence

import torch

from edgefl.compute.process import one_thread
from edgefl.protocol import Tree, shapes
from edgefl.runs.contract.findings import Broken, Inapplicable
from edgefl.runs.contract.setting import Round, Setting, close, differences, identical, last_version
from edgefl.runs.learner import Learner


def order(setting: Setting) -> Broken | None:
    """Arrivals in another order merge to the same state."""
    for one in setting.rounds():
        arrivals, merge = one.arrivals(), one.exchange.merge
        with torch.no_grad(), one_thread():
            forth, back = merge(one.server, arrivals), merge(one.server, arrivals[::-1])
        if differences(forth, back, close):
            what = f"{one.name} merges the same arrivals into another state if their order changes"
            return Broken(what, (merge,))
    return None


def weights(setting: Setting) -> Broken | Inapplicable | None:
    """Arrivals count in proportion to their weights, whatever these sum to."""
    plain, doubled = _models(setting.ended()), _models(setting.learned(_doubled))
    if differences(plain, doubled, close):
        merges = tuple(exchange.merge for exchange in setting.built.exchanges)
        hint = "divide by the sum of the arrivals' weights, as weighted_mean does"
        return Broken("models end as others if the weights of all arrivals are doubled", merges, hint)
    if differences(plain, _models(setting.learned(_others)), close):
        return None
    return Inapplicable("no merge depends on the arrivals' weights")


def _doubled(weights: Sequence[float]) -> tuple[float, ...]:
    return tuple(2 * weight for weight in weights)


def _others(weights: Sequence[float]) -> tuple[float, ...]:
    return tuple((1 + place) * weight for place, weight in enumerate(weights))


def _models(learner: Learner) -> Tree:
    """The weights of all models of a run."""
    context, server = learner.context, last_version(learner)
    clients = range(len(context.builder.samples))
    found = {str(client): context.personal_model(server, client).weights for client in clients}
    model = context.builder.learning.methods[0].global_model
    return found if model is None else {**found, "global": model(server).weights}


_ANOTHER = "another"


def passed_on(setting: Setting) -> Broken | None:
    """What another method keeps in the server's state stays there, and is not sent."""
    for one in setting.firsts():
        exchange, other = one.exchange, torch.full((3,), 7.0)
        server = {**one.server, _ANOTHER: {"values": other}}
        before, after = (shapes(exchange.down(state, 0)) for state in (one.server, server))
        if before != after:
            what = f"{one.name} sends keys of the server's state that it does not know"
            return Broken(what, (exchange.down,), "name the keys to send, instead of sending the whole state")
        arrivals = one.arrivals()
        with torch.no_grad(), one_thread():
            merged = exchange.merge(server, arrivals)
        if not _still(merged, other):
            what = f"{one.name}'s merge loses keys of the server's state that it does not know"
            return Broken(what, (exchange.merge,), "return {**server, ...} with the new values")
    return None


def _still(merged: Tree, other: torch.Tensor) -> bool:
    found = merged.get(_ANOTHER, {})
    return "values" in found and identical(found["values"], other)


def server_shapes(one: Round) -> Broken | None:
    """A merge changes no key and no shape of the server's state."""
    arrivals, merge = one.arrivals(), one.exchange.merge
    with torch.no_grad(), one_thread():
        merged = merge(one.server, arrivals)
    found = unlike(one.server, merged)
    return Broken(f"{one.name}'s merge changes {found} of the server's state", (merge,)) if found else None


def unlike(tree: Tree, other: Tree) -> str:
    """Where two trees differ in keys, shapes or types, in words; empty if nowhere."""
    lost = differences(tree, other, lambda leaf, new: leaf.shape == new.shape and leaf.dtype == new.dtype)
    return ", ".join(map(repr, lost[:3])) + (", ..." if len(lost) > 3 else "")  # noqa: PLR2004 - enough to read
