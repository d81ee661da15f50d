"""A dataset split among clients: their training samples and their test samples."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from edgefl.core import draws
from edgefl.core.arrays import Ints
from edgefl.core.errors import UserError
from edgefl.core.user_code import defined_at, returned
from edgefl.data.dataset import Arrays, Labels, Spec, stratified
from edgefl.data.partitions import TooFewError

Split: TypeAlias = Callable[[Ints, int, int, np.random.Generator], list[Ints]]
"""(labels (n,), classes, clients, rng) -> indices of each client: a module's ``split`` on its parameters. A
partition by users is given users in place of labels."""


@dataclass(frozen=True)
class Federation:
    """A dataset and its split. Pixels and labels are torch tensors, indices NumPy arrays.

    Attributes:
        samples: (clients,) int64, training images of each client. Where the dataset was not split, see
            ``sized``, nothing else is known: there are neither parts nor class counts.
        class_counts: (clients, classes) int64, training images of each class.
        train_x, test_x: (N, C, H, W) uint8, of signals float32; None if planned without files. With a
            holdout, or pooled, both are one tensor.
        parts: for each client the indices of its training images, sorted.
        test: the indices of all test images, sorted; with a holdout those of the held-out images, pooled
            those that test a client.
        test_parts: for each client the indices of its personal test images, sorted; an index may occur
            twice, and an array may be empty.
        assumed: whether labels were made up, evenly over classes, because there were no files.
        public_x: (P, C, H, W) uint8, the public images, without labels; zeros if planned without files, None
            if there are none.
        public_content: of another dataset's images, its ``Spec.content``.
    """

    spec: Spec
    samples: Ints
    class_counts: Ints
    train_x: Tensor | None = None
    train_y: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    parts: tuple[Ints, ...] = ()
    test_x: Tensor | None = None
    test_y: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    test: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    test_parts: tuple[Ints, ...] = ()
    assumed: bool = False
    public_x: Tensor | None = None
    public_content: str = ""

    @property
    def clients(self) -> int:
        return len(self.samples)

    @property
    def test_samples(self) -> list[int]:
        """The number of each client's personal test images."""
        return [len(part) for part in self.test_parts] or [0] * self.clients

    def to(self, device: torch.device) -> "Federation":
        """The same with pixels and labels on a device; with a holdout, still one copy of the pixels."""
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        moved = {id(value): value.to(device) for value in tensors.values()}
        changes: dict[str, Any] = {name: moved[id(value)] for name, value in tensors.items()}
        return replace(self, **changes)

    @property
    def nbytes(self) -> int:
        """The bytes of all pixels and labels."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, Tensor))

    def for_training(self) -> "Federation":
        """Without the test images, for processes that train."""
        return replace(self, test_x=None, test=self.test[:0], test_parts=())

    def __getstate__(self) -> dict[str, Any]:
        """Clients' images as one tensor, which processes share: an array a client would take seconds."""
        every = np.concatenate([self.test[:0], *self.parts])
        return {**vars(self), "parts": (torch.from_numpy(every), [len(part) for part in self.parts])}

    def __setstate__(self, state: dict[str, Any]) -> None:
        every, sizes = state["parts"]
        parts = tuple(every.numpy()[start:end] for start, end in pairwise(accumulate(sizes, initial=0)))
        vars(self).update(state, parts=parts)


def federate(
    spec: Spec,
    arrays: Arrays | None,
    partition: Split,
    clients: int,
    seed: int,
    *,
    labels: Labels | None = None,
    personal_test: float = 0.3,
    holdout: float = 0.0,
    public: int = 0,
    share: float = 1.0,
    pooled: float = 0.0,
    users: Labels | None = None,
) -> Federation:
    """Splits a dataset among clients; who or what would have no images is a ``UserError``.

    Args:
        arrays: the dataset's images; None for labels alone.
        seed: the run's root seed; partition, personal test sets, holdout and public images each have a stream
            of their own.
        labels: where there are no images, the dataset's labels; None for its classes in turn.
        personal_test, holdout, share, pooled: the scenario's settings; all is drawn of what is not held out,
            and of each client's own pooled samples at least one tests it if it has two.
        public: how many training images no client has: they are the public ones.
        users: of a partition by users, whose each sample is where the images do not say so; None for a
            partition by labels.
    """
    if pooled and holdout:
        raise UserError(
            "a holdout and pooled data exclude each other: what tests a client is drawn from its own samples",
            where="task.pooled",
            hint="remove task.pooled, or set evaluate.on to test",
        )
    train_x, train_y, test_x, test_y = _content(spec, arrays, labels, pooled=bool(pooled))
    train, test = np.arange(len(train_y)), np.arange(len(test_y))
    if holdout:
        # Indices into the same images: a sweep of many runs holds the pixels once.
        train, test = stratified(train_y, holdout, draws.generator(seed, "holdout"))
        test_x, test_y = train_x, train_y
        if not len(train) or not len(test):
            amount = "all" if len(test) else "not one"
            raise UserError(f"a holdout of {holdout:g} is {amount} of the images", where="evaluate.holdout")
    if share < 1:
        train = train[stratified(train_y[train], share, draws.generator(seed, "share"))[1]]
    public_x = None
    if public:
        chosen = drawn_public(len(train), public, seed, least=clients)
        public_x = public_images(spec, train_x, train[chosen])
        train = np.delete(train, chosen)
    rng = draws.generator(seed, "partition")
    keys, kinds = train_y, spec.classes
    if users is not None:
        if arrays and arrays.train_users is not None and arrays.test_users is not None:
            users = arrays.train_users, arrays.test_users
        keys = np.concatenate(users) if pooled else users[0]
        kinds = int(keys.max()) + 1
    parts = tuple(train[part] for part in _dealt(partition, keys[train], kinds, clients, rng, share))
    test_parts: tuple[Ints, ...] = ()
    if pooled:
        parts, test_parts = _tested(parts, pooled, seed)
        test = np.sort(np.concatenate(test_parts))
    owner = np.repeat(np.arange(clients), [len(part) for part in parts])
    cells = owner * spec.classes + train_y[np.concatenate(parts)]
    counts = np.bincount(cells, minlength=clients * spec.classes).reshape(clients, -1)
    return Federation(
        spec=spec,
        train_x=train_x,
        train_y=torch.from_numpy(train_y),
        parts=parts,
        test_x=test_x,
        test_y=torch.from_numpy(test_y),
        test=test,
        test_parts=test_parts or _personal_tests(counts, test_y, test, personal_test, seed),
        class_counts=counts,
        samples=counts.sum(axis=1),
        assumed=arrays is None and labels is None,
        public_x=public_x,
    )


def _content(
    spec: Spec, arrays: Arrays | None, labels: Labels | None, *, pooled: bool
) -> tuple[Tensor | None, Ints, Tensor | None, Ints]:
    """Images, None without files, and labels, of the training and of the test part; pooled, both twice."""
    train_y, test_y = labels or (np.arange(size) % spec.classes for size in (spec.train_size, spec.test_size))
    train_x = test_x = None
    if arrays is not None:
        train_y, test_y = arrays.train_y, arrays.test_y
        train_x, test_x = torch.from_numpy(arrays.train_x), torch.from_numpy(arrays.test_x)
    if pooled:
        train_y = test_y = np.concatenate((train_y, test_y))
        if train_x is not None and test_x is not None:
            train_x = test_x = torch.cat((train_x, test_x)).contiguous(memory_format=torch.channels_last)
    return train_x, train_y, test_x, test_y


def _tested(parts: tuple[Ints, ...], share: float, seed: int) -> tuple[tuple[Ints, ...], tuple[Ints, ...]]:
    """Each client's samples in two: those to train on, and ``share`` of them, rounded, to be tested on."""
    kept, tested = [], []
    for client, part in enumerate(parts):
        count = min(max(round(share * len(part)), 1), len(part) - 1)
        rng = draws.generator(seed, "personal test", client=client)
        chosen = rng.choice(len(part), count, replace=False)
        tested.append(np.sort(part[chosen]))
        kept.append(np.delete(part, chosen))
    return tuple(kept), tuple(tested)


def drawn_public(stock: int, count: int, seed: int, *, least: int = 0) -> Ints:
    """Which of ``stock`` images are public: ``count`` indices, without repeats, sorted; ``least`` are left.

    Uniform, because public images have no labels to balance.
    """
    if count > stock - least:
        clients = f" and leave one for each of {least:,} clients" if least else ""
        raise UserError(
            f"{count:,} public images cannot be drawn from {stock:,} training images{clients}",
            where="task.public.samples",
            hint="lower task.public.samples, or name another dataset in task.public.dataset",
        )
    return np.sort(draws.generator(seed, "public").choice(stock, count, replace=False))


def public_images(spec: Spec, x: Tensor | None, chosen: Ints) -> Tensor:
    """The chosen ones of a dataset's images (N, C, H, W); without files, zeros of their shape."""
    if x is None:
        return torch.from_numpy(np.zeros((len(chosen), *spec.shape), spec.dtype))
    return x[torch.from_numpy(chosen)].contiguous(memory_format=torch.channels_last)


def sized(spec: Spec, samples: Ints) -> Federation:
    """Clients of which only the number of samples is known, (clients,): for the clock, never for training."""
    return Federation(spec, samples, np.empty((0, spec.classes), dtype=np.int64))


def _dealt(
    partition: Split, keys: Ints, kinds: int, clients: int, rng: np.random.Generator, share: float
) -> tuple[Ints, ...]:
    """A partition's parts: every client has one, and all are of indices of samples, each at most once."""
    samples, more = len(keys), "raise task.share, or use fewer clients"
    if clients > samples:
        what = f"cannot split {samples} training samples among {clients} clients"
        hint = "without data, for the clock alone: --set task.samples=100; with data, use fewer clients"
        where, hint = ("task.share", more) if share < 1 else ("task.clients", hint)
        raise UserError(what, where=where, hint=hint)
    try:
        parts = partition(keys, kinds, clients, rng)
    except TooFewError as error:
        if share < 1:
            error.where, error.hint = "task.share", more
        raise
    parts = returned(parts, (list, tuple), partition, "a list of index arrays")
    arrays = [np.asarray(part) for part in parts]
    wrong = "" if len(arrays) == clients else f"{len(arrays)} parts for {clients} clients"
    for client, part in enumerate(arrays):
        if not part.size:
            wrong = wrong or f"client {client} has no images"
        elif part.ndim != 1 or part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= samples:
            wrong = wrong or f"client {client} has something else than indices of samples, (n,) int64"
    if not wrong and (repeated := np.flatnonzero(np.bincount(np.concatenate(arrays)) > 1)).size:
        wrong = f"the index {repeated[0]} is given more than once"
    if wrong:
        place = defined_at(partition) or "task.partition"
        raise UserError(f"the partition is invalid: {wrong}", where=str(place))
    return tuple(part.astype(np.int64, copy=False) for part in arrays)


def _personal_tests(counts: Ints, test_y: Ints, test: Ints, share: float, seed: int) -> tuple[Ints, ...]:
    by_class = [test[test_y[test] == label] for label in range(counts.shape[1])]
    # 0.29 * 100 is 28.999...; 29 is meant.
    sizes = np.floor(share * counts + 1e-9).astype(np.int64)
    tests = []
    for client, row in enumerate(sizes):
        rng = draws.generator(seed, "personal test", client=client)
        drawn = [_draw(by_class[label], row[label], rng) for label in np.flatnonzero(row)]
        tests.append(np.sort(np.concatenate(drawn)) if drawn else np.empty(0, dtype=np.int64))
    return tuple(tests)


def _draw(stock: Ints, count: int, rng: np.random.Generator) -> Ints:
    """``count`` of ``stock``: repeats only where it has fewer; none of an empty one."""
    if count <= len(stock):
        return rng.choice(stock, count, replace=False)
    more = rng.choice(stock, count - len(stock)) if len(stock) else stock
    return np.concatenate([stock, more])
