"""Settings that do what nobody wants, or nothing: no mistakes, but told."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from edgefl.compute.kernels import tensors
from edgefl.planning.learning import Learning
from edgefl.protocol import Method, Net

# Samples that an augmentation is tried on.
_TRIED = 16


def settings_notes(learning: Learning) -> Iterator[str]:
    """What augmentations do to the data's samples, and first weights that nobody keeps, in words."""
    yield from _of_augmentations(learning)
    local = learning.spec.local
    if local.first_weights == "own" and not any(map(_keeps_weights, learning.methods, learning.nets)):
        method = learning.spec.method.name
        yield f"local.first_weights: own changes nothing, as {method}'s clients keep no weights"


def _of_augmentations(learning: Learning) -> Iterator[str]:
    """Whether one blanks whole samples, or turns signals round: it is tried on values that ascend."""
    spec, random = learning.federation.spec, torch.Generator()
    channels, height, width = spec.shape
    x = torch.linspace(0.25, 0.75, width).expand(_TRIED, channels, height, width).clone()
    for key, augment in learning.augmentations.items():
        if augment is None:
            continue
        found = augment(x.clone(), random.manual_seed(0))
        where, steps = ("method.augment" if key else "task.augment"), found.diff(dim=-1).sign().sum((1, 2, 3))
        blank = int((found.amax((1, 2, 3)) == found.amin((1, 2, 3))).sum())
        if blank and width > 1:
            which = "all" if blank == _TRIED else "some"
            yield f"{where}: leaves nothing of {which} samples of {height}x{width}"
        if spec.signals and (steps < 0).any():
            yield f"{where}: mirrors signals, so that they run backwards"


def _keeps_weights(method: Method, net: Net) -> bool:
    """Whether what a client keeps from the start depends on the weights that it begins with."""
    one, other = (tensors(method.client(net.init(seed))) for seed in (0, 1))
    return not all(map(torch.equal, one, other))
