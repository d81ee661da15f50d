"""The scenario's models as nets, and whether those of one federation fit its method."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, TypeVar

import torch
from torch import Tensor

from edgefl.compute import meta
from edgefl.core.components import resolve
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.scenario import LearningSpec
from edgefl.core.user_code import is_users, returned
from edgefl.core.yamls import Document
from edgefl.data import Federation
from edgefl.protocol import Method, Net, shapes
from edgefl.protocol.values import tensors

T = TypeVar("T")
_FOR_DIFFERENT = "choose one model, or ktpfl; fedclassavg, fedproto and lg-fedavg need features of one width"


def nets_of(
    spec: LearningSpec, document: Document, federation: Federation, known: dict[str, Net]
) -> tuple[Net, ...]:
    """The scenario's models, for the data's shape and classes; ``known`` has those that were built before.

    Raises:
        UserError: a name or a parameter is wrong, or a model cannot be built.
    """
    nets, shape, classes = [], federation.spec.shape, federation.spec.classes
    for index, model in enumerate(spec.models):
        path: list[str | int] = ["model", index] if isinstance(spec.model, tuple) else ["model"]
        module, params = resolve("models", model, document, path)
        key = repr((model, shape, classes))
        if key not in known:
            known[key] = _net(
                module, model.name, params, data=(shape, classes), where=str(document.place(path))
            )
        nets.append(known[key])
    return tuple(nets)


def _net(module: ModuleType, name: str, params: Any, *, data: tuple[Any, int], where: str) -> Net:
    """A model for data of a shape and a number of classes.

    Raises:
        UserError: it cannot be built, or is no net.
    """
    own = is_users(str(module.__file__))
    try:
        built = module.build(params, *data)
    except RuntimeError as error:
        if own:
            raise
        # Sizes that no tensor can have.
        raise ScenarioError(f"the model {name!r} cannot be built: {error}", where=where) from error
    net = checked(built, Net, module, "model")
    if own:
        # Calls its functions on two samples without data, lest one return what it should not.
        with torch.device("meta"):
            weights = tensors(net.init(0), net.init, "weights by part (a dict of dicts of tensors)")
            x, labels = torch.empty(2, *net.shape), torch.empty(2, dtype=torch.int64)
            features, _ = net.passed(weights, x, training=True)
            logits = net.classified(weights, features)
            returned(net.loss(logits, labels), Tensor, net.loss, "a loss (a tensor)")
    return net


def checked(built: object, expected: type[T], module: ModuleType, kind: str) -> T:
    """What a module's ``build`` returned.

    Raises:
        UserError: it is not of the expected class.
    """
    if isinstance(built, expected):
        return built
    what = f"its build returned {type(built).__name__}, not edgefl.protocol.{expected.__name__}"
    raise UserError(
        f"this {kind} cannot be used: {what}",
        where=str(module.__file__),
        hint="return the object built; see docs/extending.md for an example",
    )


def check_fit(methods: Sequence[Method], nets: Sequence[Net], name: str, document: Document) -> None:
    """Refuses models between which what clients receive or send has different shapes.

    The server has one state for all of them.

    Raises:
        ScenarioError: a part differs between two models.
    """
    if len(set(nets)) == 1:
        return
    first, *others = [
        [meta.payloads(method, exchange, net) for exchange in method.exchanges]
        for method, net in zip(methods, nets, strict=True)
    ]
    for place, (net, other) in enumerate(zip(nets[1:], others, strict=True), start=2):
        for ours, theirs in zip(first, other, strict=True):
            for way, *pair in zip(("receive", "send"), ours, theirs, strict=True):
                one, two = map(shapes, pair)
                part = next((part for part in {**one, **two} if one.get(part) != two.get(part)), None)
                if part is not None:
                    raise ScenarioError(
                        f"with {name}, clients {way} {part!r}, whose shapes differ between model 1 "
                        f"({nets[0].name}) and model {place} ({net.name})",
                        where=str(document.place(["model"])),
                        hint=_FOR_DIFFERENT,
                    )
