"""Images as an exported model takes them: test ones to prove it on, training ones to calibrate it on."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from edgefl.core import seeds
from edgefl.data import normalised
from edgefl.export.graph import Form
from edgefl.export.quantise import CALIBRATED_ON
from edgefl.export.trained import Trained
from edgefl.export.verify import Ints


def tests(found: Trained, client: int | None, form: Form) -> tuple[Tensor, Tensor]:
    """The test images that a model is scored on, and their labels; all of them where a client has none.

    Args:
        found: the trained version.
        client: whose model; None is the global one.
        form: what goes in.
    """
    federation = found.federation
    own = federation.test if client is None else federation.test_parts[client]
    indices = own if len(own) else federation.test
    return _images(found, indices, "test", form), federation.test_y[torch.from_numpy(indices)]


def calibration(found: Trained, client: int | None, form: Form) -> Tensor:
    """Training images for a model's ranges: at most 512, drawn by the run's seed.

    Args:
        found: the trained version.
        client: whose model; its own images alone are at hand where it is made. None is the global one.
        form: what goes in.
    """
    parts = found.federation.parts
    indices = np.concatenate(parts) if client is None else parts[client]
    if len(indices) > CALIBRATED_ON:
        whose = -1 if client is None else client
        rng = seeds.generator(found.meta["seed"], "calibration", client=whose)
        indices = rng.choice(indices, CALIBRATED_ON, replace=False)
    return _images(found, np.sort(indices), "train", form)


def _images(found: Trained, indices: Ints, split: Literal["train", "test"], form: Form) -> Tensor:
    federation = found.federation
    if form.raw_input:
        return normalised(federation, indices, split).contiguous()
    pixels = federation.train_x if split == "train" else federation.test_x
    if pixels is None:
        raise AssertionError("an export reads its dataset's pixels")
    return pixels[torch.from_numpy(indices)].contiguous()
