"""Layers: their names, and their representations of test samples."""

import torch
from torch import Tensor

from edgefl.core.arrays import Ints
from edgefl.protocol import Net, Observation, Predictor, layers_of
from edgefl.protocol.observation import CHUNK

FEATURES, LOGITS = "features", "logits"


def layer_names(net: Net) -> tuple[str, ...]:
    """The layers that can be looked at: the body's, the features that the head gets, and the logits."""
    return (*net.layers, FEATURES, LOGITS)


def layer_of(part: str, name: str) -> str:
    """The layer that a tensor of a part belongs to, as in "body/conv1"; a head is one layer."""
    return "/".join(filter(None, (part, name.rpartition(".")[0])))


def activations(seen: Observation, net: Net, predictor: Predictor, name: str, places: Ints) -> Tensor:
    """A layer's activations (n, *) of test samples, in evaluation mode, on the CPU.

    Args:
        net: the model, as the scenario has it: what a method puts around it does not change inner layers.
        name: of ``layer_names``.
    """
    if name == LOGITS:
        return seen.logits(predictor, places)
    parts = []
    with torch.no_grad():
        for start in range(0, len(places), CHUNK):
            x = seen.images(places[start : start + CHUNK])
            if name == FEATURES:
                # Those that a method has changed, by normalising them for instance.
                parts.append((predictor.net or net).features(predictor.weights, x, False)[0].cpu())
            else:
                parts.append(layers_of(net, predictor.weights, x, (name,))[name].cpu())
    return torch.cat(parts)
