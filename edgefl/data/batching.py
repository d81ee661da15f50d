"""Batches for local training, and images for evaluation: normalised float32 from a federation's bytes.

Shapes: B samples, V views, C channels, H rows, W columns.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from edgefl.core.arrays import Ints
from edgefl.core.draws import GOLDEN, derive, mixed
from edgefl.core.errors import DataError
from edgefl.core.steps import step_sequence
from edgefl.data.dataset import Spec
from edgefl.data.federation import Federation
from edgefl.protocol.values import Batch, Phase

Augment: TypeAlias = Callable[[Tensor, torch.Generator], Tensor]
"""(x (B, C, H, W) in [0, 1], generator) -> the same shape: a module's ``augment`` on its parameters."""

# The most bytes of float32 images that a group of clients prepares at once: more than a cache holds takes
# twice as long.
_BLOCK_BYTES = 2_000_000


class Together:
    """The batches of several clients for one phase, cut as ``edgefl.core.steps.step_sequence`` says.

    Each client's are those that it has alone, for ``of_one``; ``sizes`` has those of its steps, in order.
    Shuffles depend only on the job's seed and the number of the pass, so that two methods whose phases are
    equally long see the same batches. Augments draw from a stream of their own, so that the order of samples
    is the same with and without them.
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
        """Takes a phase and a job's seed for each client; phases differ in length only.

        "train" data are shuffled anew in every pass and augmented; "plain" data are neither. "public" data
        are the same for every client, treated like "plain" ones, and y is each sample's place. Where the
        phase's data are of another kind or number, this is a ``ValueError``, without files a ``DataError``.
        """
        self._spec, self._phase, self._seeds = federation.spec, phases[0], seeds
        self._images, self._labels, parts = _data(federation, self._phase, clients)
        self._augment = augment if self._phase.data == "train" else None
        lengths = [(len(part), each.passes) for part, each in zip(parts, phases, strict=True)]
        cuts = {length: list(step_sequence(length[0], batch_size, length[1])) for length in set(lengths)}
        sizes = {length: [size for _, size in cut] for length, cut in cuts.items()}
        # Where in its order a client's n-th batch begins, and its images in that order.
        starts = {length: [0, *accumulate(each)] for length, each in sizes.items()}
        self.sizes = [sizes[length] for length in lengths]
        self._cuts = [cuts[length] for length in lengths]
        self._starts = [starts[length] for length in lengths]
        passes = max((nth + 1 for cut in cuts.values() for nth, _ in cut), default=0)
        self._orders = _orders(parts, passes, self._phase, seeds).to(self._labels.device)
        self._aligned = all(each == self.sizes[0] for each in self.sizes)
        self._block: tuple[int, Batch] | None = None
        self._generators: dict[int, tuple[int, torch.Generator]] = {}

    def of_one(self) -> Iterator[Batch]:
        """The batches of a group of one client, not stacked.

        x is (B, C, H, W), or (V, B, C, H, W) for a phase of V > 1 views, and y (B,).
        """
        for step, size in enumerate(self.sizes[0]):
            if self._augment is not None:
                yield self._augmented(0, step)
            else:
                x, y = self._from_block(self._starts[0][step], size)
                yield Batch(_stacked([x[0]] * self._phase.views), y[0])

    def take(self, chosen: Sequence[int], done: Sequence[int]) -> Batch:
        """The next batch of each of the chosen clients, stacked along a new first dimension.

        These are named by their places in the group, ascending, and their next batches have one size. Each
        client of the group has ``done`` so many steps in this phase.
        """
        if self._augment is not None:
            taken = [self._augmented(place, done[place]) for place in chosen]
            return Batch(*map(torch.stack, zip(*taken, strict=True)))
        size = self.sizes[chosen[0]][done[chosen[0]]]
        if self._aligned and len(chosen) == len(self.sizes) and len(set(done)) == 1:
            x, y = self._from_block(self._starts[0][done[0]], size)
        else:
            starts = [self._starts[place][done[place]] for place in chosen]
            first = torch.tensor(starts, device=self._orders.device).unsqueeze(1)
            places = first + torch.arange(size, device=self._orders.device)
            x, y = self._batch(self._orders[list(chosen)].gather(1, places))
        if self._phase.views > 1:
            x = x.unsqueeze(1).expand(-1, self._phase.views, *x.shape[1:])
        return Batch(x, y)

    def _augmented(self, place: int, step: int) -> Batch:
        """One client's next batch; it draws from its own stream, which begins anew in each pass."""
        nth, size = self._cuts[place][step]
        if place not in self._generators or self._generators[place][0] != nth:
            seed = derive(self._seeds[place], "augment", nth=nth)
            self._generators[place] = nth, torch.Generator().manual_seed(seed)
        start = self._starts[place][step]
        rows = self._orders[place, start : start + size]
        images, generator = _gathered(self._images, rows), self._generators[place][1]
        x = prepared(self._spec, self._phase, self._augment, images, generator)
        return Batch(x, self._labels.index_select(0, rows))

    def _from_block(self, start: int, size: int) -> Batch:
        """All clients' next batches, cut from a block that holds those of many steps."""
        if self._block is None or start + size > self._block[0] + self._block[1].y.shape[1]:
            ahead = _BLOCK_BYTES // (4 * len(self.sizes) * math.prod(self._spec.shape))
            self._block = start, self._batch(self._orders[:, start : start + max(size, ahead)])
        first, (x, y) = self._block
        inside = slice(start - first, start - first + size)
        return Batch(x[:, inside], y[:, inside])

    def _batch(self, rows: Tensor) -> Batch:
        """Images and labels of (clients, B) rows."""
        images = _gathered(self._images, rows)
        # Small convolutions on a CPU take a quarter less time channels-last, but not where they are stacked.
        images = images if len(self.sizes) == 1 else images.clone(memory_format=torch.contiguous_format)
        labels = self._labels.index_select(0, rows.reshape(-1)).view(rows.shape)
        return Batch(_normalised(self._spec, _floats(images)), labels)


def _data(federation: Federation, phase: Phase, clients: Sequence[int]) -> tuple[Tensor, Tensor, list[Ints]]:
    """What a phase passes over: images (N, C, H, W), labels (N,), and the indices of each client's images."""
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
        return images, federation.train_y, [federation.parts[client] for client in clients]
    places = np.arange(len(public))
    return public, torch.from_numpy(places).to(public.device), [places] * len(clients)


def _orders(parts: Sequence[Ints], passes: int, phase: Phase, seeds: Sequence[int]) -> Tensor:
    """The order of each client's images over all passes, (clients, most), padded at the ends."""
    samples = [len(part) for part in parts]
    most = max(samples)
    if phase.data == "train":
        orders = _shuffled(seeds, samples, passes)
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


def _shuffled(seeds: Sequence[int], samples: Sequence[int], passes: int) -> Ints:
    """Orders in which clients go through their samples, for many clients and passes at once.

    A sample's key is a hash of the job's seed, the pass and the sample's place; a pass goes through the keys
    in ascending order. The hash is SplitMix64's output function (Steele, Lea and Flood 2014, Section 3), so
    that an order depends on its own seed alone, and thousands of orders are a few operations on one array. A
    generator for each order would take longer than a small model's training.

    Of a client with n samples and a job's seed, (clients, passes, most samples) is a permutation of 0..n-1,
    then of the places beyond n.
    """
    most = max(samples)
    bases = np.array([derive(seed, "shuffle") for seed in seeds], dtype=np.uint64)
    numbers = np.arange(1, passes + 1, dtype=np.uint64)
    streams = mixed(bases[:, None] + numbers * GOLDEN)
    places = np.arange(1, most + 1, dtype=np.uint64)
    keys = mixed(streams[:, :, None] + places * GOLDEN)
    if min(samples) < most:
        beyond = np.arange(most) >= np.array(samples)[:, None]
        keys[np.broadcast_to(beyond[:, None, :], keys.shape)] = np.iinfo(np.uint64).max
    return np.argsort(keys, axis=-1, kind="stable")


def normalised(federation: Federation, indices: Ints, split: Literal["train", "test"]) -> Tensor:
    """Images as models take them: (len(indices), C, H, W) float32, of mean 0 and deviation 1 over all."""
    images = _gathered(_pixels(federation, split), torch.from_numpy(indices))
    return _normalised(federation.spec, _floats(images))


def prepared(
    spec: Spec, phase: Phase, augment: Augment | None, images: Tensor, generator: torch.Generator
) -> Tensor:
    """A batch's x of images (B, C, H, W), which are in the dataset's type, as a device makes it."""
    x = _floats(images).to(memory_format=torch.channels_last)
    if augment is None or phase.data != "train":
        return _stacked([_normalised(spec, x)] * phase.views)
    return _stacked([_normalised(spec, augment(x.clone(), generator)) for _ in range(phase.views)])


def _stacked(views: list[Tensor]) -> Tensor:
    return views[0] if len(views) == 1 else torch.stack(views)


def _floats(images: Tensor) -> Tensor:
    """Pixels in [0, 1]; signals as they are, in memory of their own. Of the models' type, torch's default."""
    floats = images.to(torch.get_default_dtype(), copy=True)
    return floats.div_(255) if images.dtype == torch.uint8 else floats


def _pixels(federation: Federation, split: Literal["train", "test"]) -> Tensor:
    """A split's images, (N, C, H, W)."""
    x = federation.train_x if split == "train" else federation.test_x
    if x is None:
        raise DataError(
            f"no images of {federation.spec.name}: the run was planned without its files",
            hint="pass --data-dir DIR, or allow the download",
        )
    return x


def _gathered(images: Tensor, rows: Tensor) -> Tensor:
    """Images (N, C, H, W) at rows (...): (..., C, H, W), a pixel's channels side by side in memory.

    So they lie in a federation: read by channel, they would take seven times as long.
    """
    flat = images.permute(0, 2, 3, 1).index_select(0, rows.to(images.device).reshape(-1))
    return flat.view(*rows.shape, *flat.shape[1:]).movedim(-1, -3)


def _normalised(spec: Spec, x: Tensor) -> Tensor:
    """In place: a client's images are megabytes, and fresh memory costs as much as the arithmetic."""
    # A whole row in memory against as long a row of means takes a seventh of the time of three numbers each.
    rows = x.movedim(-3, -1)
    rows = rows.flatten(-2) if rows.is_contiguous() else rows
    repeats = rows.shape[-1] // len(spec.mean)
    mean, std = (x.new_tensor(values).repeat(repeats) for values in (spec.mean, spec.std))
    rows.sub_(mean).div_(std)
    return x
