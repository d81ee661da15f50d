"""Batches for local training, and images for evaluation: normalised float32 from a federation's bytes.

Shapes: B samples, V views, C channels, H rows, W columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from edgefl.core.draws import GOLDEN, mixed
from edgefl.core.errors import DataError
from edgefl.core.seeds import derive
from edgefl.core.steps import step_sequence
from edgefl.data.federation import Federation
from edgefl.data.spec import Ints, Spec
from edgefl.protocol.values import Batch, Phase

Augment: TypeAlias = Callable[[Tensor, torch.Generator], Tensor]
"""(x (B, C, H, W) in [0, 1], generator) -> the same shape: a module's ``augment`` on its parameters."""

_BRIGHTEST = 255
# The most bytes of float32 images that a group of clients prepares at once.
_BLOCK_BYTES = 64_000_000


def batches(
    federation: Federation,
    client: int,
    phase: Phase,
    batch_size: int,
    seed: int,
    *,
    augment: Augment | None = None,
) -> Iterator[Batch]:
    """A client's batches for one phase of one job, cut as ``edgefl.core.steps.step_sequence`` says.

    Shuffles depend only on the job's seed and the number of the pass, so that two methods whose phases are
    equally long see the same batches. Augments draw from a stream of their own, so that the order of
    samples is the same with and without them.

    Args:
        federation: with pixels.
        client: its number.
        phase: "train" data are shuffled anew in every pass and augmented; "plain" data are neither. "public"
            data are the same for every client, treated like "plain" ones, and y is each sample's place.
        batch_size: B.
        seed: the job's.
        augment: of "train" data, the phase's own or else the task's; None for none.

    Returns:
        x (B, C, H, W), or (V, B, C, H, W) for a phase of V > 1 views, with y (B,).

    Raises:
        DataError: the federation was planned without files.
        ValueError: the phase's kind of data is unknown, or its length is not that of its data.
    """
    data = _data(federation, phase)
    part = torch.from_numpy(data.parts(client))
    x, y = _scaled(data.images, part), _rows(data.labels, part)
    if augment is None or phase.data != "train":
        x = _normalised(federation.spec, x)
    return _cut(x, y, phase, batch_size, seed, partial(_views, federation.spec, phase, augment))


class _Data(NamedTuple):
    """The data of a phase.

    Attributes:
        images: (N, C, H, W) uint8.
        labels: (N,) int64.
        parts: client -> the indices of its images.
    """

    images: Tensor
    labels: Tensor
    parts: Callable[[int], Ints]


def _data(federation: Federation, phase: Phase) -> _Data:
    """What a phase passes over.

    Raises:
        DataError: the federation was planned without files.
        ValueError: the phase's kind of data is unknown, or its length is not that of its data.
    """
    if phase.data not in {"train", "plain", "public"}:
        raise ValueError(
            f"the data of phase {phase.name!r} must be 'train', 'plain' or 'public', not {phase.data!r}"
        )
    public = federation.public_x if phase.data == "public" else None
    count = None if public is None else len(public)
    if phase.passes.samples != count or (phase.data == "public") != (public is not None):
        raise ValueError(
            f"the phase {phase.name!r} passes over {phase.passes.samples} samples of {phase.data!r} data, "
            f"which has {count}"
        )
    images = _pixels(federation, "train")
    if public is None:
        return _Data(images, federation.train_y, federation.parts.__getitem__)
    everything = np.arange(len(public))
    places = torch.arange(len(public), device=public.device)
    return _Data(public, places, lambda _: everything)


class Together:
    """The batches of several clients for one phase, the same as those of ``batches``, stacked.

    Attributes:
        sizes: for each client, the batch sizes of its steps, in order.
    """

    def __init__(
        self,
        federation: Federation,
        clients: Sequence[int],
        phases: Sequence[Phase],
        batch_size: int,
        seeds: Sequence[int],
        *,
        augment: Augment | None = None,
    ) -> None:
        """Takes the arguments of ``batches`` for each client of the group; phases differ in length only."""
        self._data, phase = _data(federation, phases[0]), phases[0]
        parts = [self._data.parts(client) for client in clients]
        lengths = [(len(part), each.passes) for part, each in zip(parts, phases, strict=True)]
        cuts = {
            (count, passes): list(step_sequence(count, batch_size, passes)) for count, passes in set(lengths)
        }
        sizes = {length: [size for _, size in each] for length, each in cuts.items()}
        self.sizes = [sizes[length] for length in lengths]
        self._spec = federation.spec
        self._views = phase.views
        self._each: list[Iterator[Batch]] = []
        if augment is not None and phase.data == "train":
            # Each client draws from its own stream, one batch after another.
            self._each = [
                batches(federation, client, own, batch_size, seed, augment=augment)
                for client, own, seed in zip(clients, phases, seeds, strict=True)
            ]
            return
        # Where in its order a client's n-th batch begins, and its images in that order.
        starts = {length: [0, *accumulate(each)] for length, each in sizes.items()}
        self._starts = [starts[length] for length in lengths]
        passes = max((nth + 1 for each in cuts.values() for nth, _ in each), default=0)
        self._orders = _orders(parts, passes, phase, seeds).to(self._data.labels.device)
        self._aligned = all(each == self.sizes[0] for each in self.sizes)
        self._block: tuple[int, Batch] | None = None

    def take(self, chosen: Sequence[int], done: Sequence[int]) -> Batch:
        """The next batch of each of the chosen clients, stacked along a new first dimension.

        Args:
            chosen: the clients' places in the group, ascending.
            done: for each client of the group, how many steps it has taken in this phase; the next batches of
                the chosen ones have one size.
        """
        if self._each:
            taken = [next(self._each[place]) for place in chosen]
            return Batch(*map(torch.stack, zip(*taken, strict=True)))
        size = self.sizes[chosen[0]][done[chosen[0]]]
        if self._aligned and len(chosen) == len(self.sizes) and len(set(done)) == 1:
            return self._from_block(self._starts[0][done[0]], size)
        starts = [self._starts[place][done[place]] for place in chosen]
        first = torch.tensor(starts, device=self._orders.device).unsqueeze(1)
        places = first + torch.arange(size, device=self._orders.device)
        return self._batch(self._orders[list(chosen)].gather(1, places))

    def _from_block(self, start: int, size: int) -> Batch:
        """All clients' next batches, cut from a block that holds those of many steps."""
        if self._block is None or start + size > self._block[0] + self._block[1].y.shape[1]:
            self._block = start, self._batch(self._orders[:, start : start + max(size, self._ahead())])
        first, (x, y) = self._block
        inside = slice(start - first, start - first + size)
        return Batch(x[:, inside] if self._views == 1 else x[:, :, inside], y[:, inside])

    def _ahead(self) -> int:
        """How many samples of each client a block may hold."""
        return max(1, _BLOCK_BYTES // (4 * len(self.sizes) * math.prod(self._spec.shape)))

    def _batch(self, rows: Tensor) -> Batch:
        """Images and labels of (clients, B) rows."""
        x = _normalised(self._spec, _scaled(self._data.images, rows))
        if self._views > 1:
            x = x.unsqueeze(1).expand(-1, self._views, *x.shape[1:])
        return Batch(x, _rows(self._data.labels, rows))


def _orders(parts: Sequence[Ints], passes: int, phase: Phase, seeds: Sequence[int]) -> Tensor:
    """The order of each client's images over all passes, (clients, most), padded at the ends."""
    samples = [len(part) for part in parts]
    most = max(samples)
    if phase.data == "train":
        orders = _shuffled(list(seeds), samples, range(passes))
    else:
        orders = np.broadcast_to(np.arange(most), (len(parts), passes, most))
    padded = np.zeros((len(parts), most), dtype=np.int64)
    for place, part in enumerate(parts):
        padded[place, : len(part)] = part
    images = np.take_along_axis(padded[:, None, :], orders, axis=-1)
    if min(samples) == most:
        return torch.from_numpy(images.reshape(len(parts), -1))
    each = [torch.from_numpy(one[:, :count].reshape(-1)) for one, count in zip(images, samples, strict=True)]
    return torch.nn.utils.rnn.pad_sequence(each, batch_first=True)


def _shuffled(seeds: list[int], samples: list[int], passes: range) -> Ints:
    """Orders in which clients go through their samples, for many clients and passes at once.

    A sample's key is a hash of the job's seed, the pass and the sample's place; a pass goes through the keys
    in ascending order. The hash is SplitMix64's output function (Steele, Lea and Flood 2014, Section 3), so
    that an order depends on its own seed alone, and thousands of orders are a few operations on one array. A
    generator for each order would take longer than a small model's training.

    Args:
        seeds: of the clients' jobs.
        samples: n, for each client.
        passes: the passes' numbers.

    Returns:
        (clients, passes, most samples): a permutation of 0..n-1, then of the places beyond n.
    """
    most = max(samples)
    bases = np.array([derive(seed, "shuffle") for seed in seeds], dtype=np.uint64)
    numbers = np.array(passes, dtype=np.uint64) + np.uint64(1)
    streams = mixed(bases[:, None] + numbers * GOLDEN)
    places = np.arange(1, most + 1, dtype=np.uint64)
    keys = mixed(streams[:, :, None] + places * GOLDEN)
    if min(samples) < most:
        beyond = np.arange(most) >= np.array(samples)[:, None]
        keys[np.broadcast_to(beyond[:, None, :], keys.shape)] = np.iinfo(np.uint64).max
    return np.argsort(keys, axis=-1, kind="stable")


def normalised(federation: Federation, indices: Ints, split: Literal["train", "test"]) -> Tensor:
    """Images as models take them: (len(indices), C, H, W) float32, mean 0 and deviation 1 over the dataset.

    Raises:
        DataError: the federation was planned without files.
    """
    return _normalised(federation.spec, _scaled(_pixels(federation, split), torch.from_numpy(indices)))


def _cut(x: Tensor, y: Tensor, phase: Phase, batch_size: int, seed: int, views: Augment) -> Iterator[Batch]:
    """Cuts one client's images into batches; ``views`` turns a batch's images into its x."""
    order, generator, start, current = torch.arange(len(y), device=x.device), torch.Generator(), 0, -1
    for nth, size in step_sequence(len(y), batch_size, phase.passes):
        if nth != current:
            current, start = nth, 0
            generator = torch.Generator().manual_seed(derive(seed, "augment", nth=nth))
            if phase.data == "train":
                order = torch.from_numpy(_shuffled([seed], [len(y)], range(nth, nth + 1))[0, 0]).to(x.device)
        chosen = order[start : start + size]
        start += size
        yield Batch(views(_images(x, chosen), generator), y[chosen])


def prepared(
    spec: Spec, phase: Phase, augment: Augment | None, images: Tensor, generator: torch.Generator
) -> Tensor:
    """One batch's x of images as a device has them, as ``batches`` makes it.

    Args:
        spec: the dataset.
        phase: whose batch it is.
        augment: its augmentation; None for none.
        images: (B, C, H, W), in the dataset's type.
        generator: what the augmentation draws from.
    """
    x = _floats(images).to(memory_format=torch.channels_last)
    if augment is None or phase.data != "train":
        x = _normalised(spec, x)
    return _views(spec, phase, augment, x, generator)


def _views(
    spec: Spec, phase: Phase, augment: Augment | None, x: Tensor, generator: torch.Generator
) -> Tensor:
    """A batch's views: augmented and then normalised, or all the same of images that are normalised."""
    if augment is None or phase.data != "train":
        views = [x] * phase.views
    else:
        views = [_normalised(spec, augment(x.clone(), generator)) for _ in range(phase.views)]
    return views[0] if phase.views == 1 else torch.stack(views)


def _floats(images: Tensor) -> Tensor:
    """Pixels in [0, 1]; signals as they are, in memory of their own. Of the models' type, torch's default."""
    floats = images.to(torch.get_default_dtype(), copy=True)
    return floats.div_(_BRIGHTEST) if images.dtype == torch.uint8 else floats


def _pixels(federation: Federation, split: Literal["train", "test"]) -> Tensor:
    """A split's images, (N, C, H, W).

    Raises:
        DataError: the federation was planned without files.
    """
    x = federation.train_x if split == "train" else federation.test_x
    if x is None:
        raise DataError(
            f"no images of {federation.spec.name}: the run was planned without its files",
            hint="pass --data-dir DIR, or allow the download",
        )
    return x


def _scaled(x: Tensor, indices: Tensor) -> Tensor:
    """Some of the images (N, C, H, W) as float32 in [0, 1]; indices (...) -> (..., C, H, W)."""
    return _floats(_rows(x, indices) if indices.dim() > 1 else _images(x, indices))


def _images(x: Tensor, indices: Tensor) -> Tensor:
    """Some of the images, channels-last: small convolutions on a CPU take a quarter less time."""
    # Each image is a row in memory then.
    return x.movedim(1, -1).index_select(0, indices.to(x.device)).movedim(-1, 1)


def _rows(values: Tensor, indices: Tensor) -> Tensor:
    """``values[indices]``, which would take ten times as long for small images on a CPU."""
    flat = values.index_select(0, indices.to(values.device).reshape(-1))
    return flat.view(*indices.shape, *values.shape[1:])


def _normalised(spec: Spec, x: Tensor) -> Tensor:
    """In place: a client's images are megabytes, and fresh memory costs as much as the arithmetic."""
    # A whole row in memory against as long a row of means takes a seventh of the time of three numbers each.
    rows = x.movedim(-3, -1)
    rows = rows.flatten(-2) if rows.is_contiguous() else rows
    repeats = rows.shape[-1] // len(spec.mean)
    mean, std = (x.new_tensor(values).repeat(repeats) for values in (spec.mean, spec.std))
    rows.sub_(mean).div_(std)
    return x
