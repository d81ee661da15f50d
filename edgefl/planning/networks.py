"""Networks by library and name, as modules without weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import nn

from edgefl.core import catalogue
from edgefl.core.benchmarks import Network
from edgefl.core.errors import UnknownNameError, UserError, in_one_line, nearest
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.planning.published_networks import NETWORKS
from edgefl.protocol.vision import torchvision

Make = Callable[[], nn.Module]

# Settings that these definitions need to be built without weights, and to return the logits alone.
_NEEDED: Mapping[str, Mapping[str, Any]] = {
    "googlenet": {"aux_logits": False, "init_weights": False},
    "inception_v3": {"aux_logits": False, "init_weights": False},
}


def maker(network: Network, document: Document, row: int) -> Make:
    """A function that makes the network as a module, on torch's default device.

    Args:
        network: which.
        document: the file that names it.
        row: its place among the rows there, for messages.

    Raises:
        UserError: the library has no such network, or its definition refuses the settings.
    """
    where = str(document.place(["rows", row, "network"]))
    if network.library == "torchvision":
        return _of_torchvision(network, where)
    settings, channels = dict(network.settings), network.image[0]
    if network.library == "published":
        if network.name not in NETWORKS:
            raise _unknown(network, NETWORKS, where)
        if settings:
            raise UserError(f"{network.name!r} has no settings", where=where)
        return partial(NETWORKS[network.name], channels, network.classes)
    module = catalogue.load("models", network.name, where=where)
    params = validate(module.Params, settings, document, ["rows", row, "settings"])

    def make() -> nn.Module:
        net = module.build(params, network.image, network.classes)
        made: nn.Module = net.module(net.init(0))
        return made

    return make


def _of_torchvision(network: Network, where: str) -> Make:
    models = torchvision().models
    builders = {name: models.get_model_builder(name) for name in models.list_models(module=models)}
    classes = {
        name: found
        for name, found in vars(models).items()
        if inspect.isclass(found) and issubclass(found, nn.Module)
    }
    build = (builders | classes).get(network.name)
    if build is None:
        raise _unknown(network, [*builders, *classes], where)
    settings = {**_NEEDED.get(network.name, {}), **dict(network.settings), "num_classes": network.classes}
    if "weights" in settings:
        raise UserError("networks are built without weights: leave out 'weights'", where=where)

    def make() -> nn.Module:
        try:
            made: nn.Module = build(**settings)
        except (TypeError, ValueError) as error:
            what = f"torchvision's {network.name!r} refuses these settings: {in_one_line(error)}"
            raise UserError(what, where=where) from error
        return made

    return make


def _unknown(network: Network, known: Any, where: str) -> UnknownNameError:
    what = f"{network.library} has no network {network.name!r}"
    return UnknownNameError(what, where=where, hint=nearest(network.name, known))
