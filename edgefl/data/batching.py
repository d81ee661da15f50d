"""Batches for local training, and images for evaluation: normalised float32 from a federation's bytes.

Shapes: B samples, V views, C channels, H rows, W columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from edgefl.core.errors import DataError
from edgefl.core.seeds import derive
from edgefl.core.steps import step_sequence
from edgefl.data.federation import Federation
from edgefl.data.spec import Ints, Spec
from edgefl.protocol.values import Batch, Phase

Augmentation: TypeAlias = Callable[[Tensor, torch.Generator], Tensor]
"""(x (B, C, H, W) in [0, 1], generator) -> the same shape: a module's ``augment`` on its parameters."""

_BRIGHTEST = 255


def batches(
    federation: Federation,
    client: int,
    phase: Phase,
    batch_size: int,
    seed: int,
    *,
    augment: Augmentation | None = None,
) -> Iterator[Batch]:
    """A client's batches for one phase of one job, cut as ``edgefl.core.steps.step_sequence`` says.

    Shuffles depend on the job's seed and the number of the pass alone, so that two methods whose phases
    are equally long see the same batches. Augmentations draw from a stream of their own: with and
    without them, the order of samples is the same.

    Args:
        federation: with pixels.
        client: its number.
        phase: "train" data are shuffled anew in every pass and augmented; "plain" ones are neither.
        batch_size: B.
        seed: the job's.
        augment: what "train" data are augmented with, the phase's own or else the task's; None is nothing.

    Returns:
        x (B, C, H, W), or (V, B, C, H, W) for a phase of V > 1 views, with y (B,).

    Raises:
        DataError: the federation was planned without files.
        ValueError: the phase wants data of an unknown kind.
    """
    if phase.data not in {"train", "plain"}:
        raise ValueError(f"phase {phase.name!r} wants data {phase.data!r}; there are 'train' and 'plain'")
    part = federation.parts[client]
    x = _scaled(federation, part, "train")
    y = federation.train_y[torch.from_numpy(part).to(federation.train_y.device)]
    if augment is None or phase.data == "plain":
        return _cut(_normalise(federation.spec, x), y, phase, batch_size, seed, ready=_as_it_is)
    return _cut(x, y, phase, batch_size, seed, ready=partial(_augmented, federation.spec, augment))


def normalised(federation: Federation, indices: Ints, split: Literal["train", "test"]) -> Tensor:
    """Images as models take them: (len(indices), C, H, W) float32, mean 0 and deviation 1 over the dataset.

    Raises:
        DataError: the federation was planned without files.
    """
    return _normalise(federation.spec, _scaled(federation, indices, split))


def _cut(
    x: Tensor, y: Tensor, phase: Phase, batch_size: int, seed: int, *, ready: Augmentation
) -> Iterator[Batch]:
    """Cuts one client's images into batches; ``ready`` makes a view of a batch's images."""
    order, generator, start, current = torch.arange(len(y), device=x.device), torch.Generator(), 0, -1
    for nth, size in step_sequence(len(y), batch_size, phase.passes):
        if nth != current:
            current, start = nth, 0
            generator = torch.Generator().manual_seed(derive(seed, "augment", nth=nth))
            if phase.data == "train":
                shuffle = torch.Generator().manual_seed(derive(seed, "shuffle", nth=nth))
                order = torch.randperm(len(y), generator=shuffle).to(x.device)
        chosen = order[start : start + size]
        start += size
        found = x[chosen]
        views = [ready(found, generator) for _ in range(phase.views)]
        yield Batch(views[0] if phase.views == 1 else torch.stack(views), y[chosen])


def _scaled(federation: Federation, indices: Ints, split: Literal["train", "test"]) -> Tensor:
    """Images of a split as float32 in [0, 1]."""
    x = federation.train_x if split == "train" else federation.test_x
    if x is None:
        raise DataError(
            f"{federation.spec.name} was planned without its files, so there are no images to work on",
            hint="pass --data-dir DIR, or allow the download",
        )
    return x[torch.from_numpy(indices).to(x.device)].to(torch.float32).div_(_BRIGHTEST)


def _as_it_is(x: Tensor, generator: torch.Generator) -> Tensor:  # noqa: ARG001 - as augmentations are called
    return x


def _augmented(spec: Spec, augment: Augmentation, x: Tensor, generator: torch.Generator) -> Tensor:
    return _normalise(spec, augment(x, generator))


def _normalise(spec: Spec, x: Tensor) -> Tensor:
    mean, std = (x.new_tensor(values).view(-1, 1, 1) for values in (spec.mean, spec.std))
    return (x - mean) / std
