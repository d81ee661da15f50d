"""Many clients at once on one device: the fold's functions over stacked carries.

Only batches of equal shapes are stacked. A client whose next batch has another size sits the step out as
a whole; samples are never padded, because batch norm and every loss that compares samples would change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import compress, islice, pairwise, takewhile
from typing import Any

import torch
from torch import Tensor

from edgefl.compute.gradients import Gradients
from edgefl.compute.job import Bundle, Feed, Group, Size
from edgefl.compute.stacked import (
    Stack,
    aligned,
    chosen,
    fixed,
    over,
    put_back,
    rows,
    spread,
    stack,
    turned,
    with_fixed,
)
from edgefl.compute.threads import one_thread
from edgefl.core.errors import RunError
from edgefl.core.event import Job
from edgefl.protocol import BUFFERS, Batch, Carry, Ctx, GradientStep, Phase, leaves

# Steps of one shape in a group from which on recording their operators pays.
_OFTEN = 8


class Vmapped:
    """Trains groups of jobs of one kind.

    Attributes:
        most: clients in a group, at most.
        memory_bytes: what a group may take, by the traced cost of one client's training.
    """

    def __init__(self, most: int, memory_bytes: int) -> None:
        self.most = most
        self.memory_bytes = memory_bytes
        self._gradients = Gradients()

    def units(self, jobs: Sequence[Job], size: Callable[[Job], Size]) -> list[tuple[Job, ...]]:
        """Groups of one kind and about equal sizes, clients of like step counts together."""
        kinds: dict[Any, list[tuple[Size, Job]]] = defaultdict(list)
        for job in jobs:
            one = size(job)
            kinds[one.kind].append((one, job))
        units = []
        for group in kinds.values():
            group.sort(key=lambda one: (-one[0].steps, -one[0].samples, one[1].id))
            room = self.memory_bytes // max(1, *(one.peak_bytes for one, _ in group))
            count = -(-len(group) // max(1, min(self.most, room)))
            edges = [len(group) * place // count for place in range(count + 1)]
            units += [tuple(job for _, job in group[start:end]) for start, end in pairwise(edges)]
        return units

    def work(self, group: Group) -> list[Bundle]:
        """One group's jobs, start to finish."""
        with one_thread():
            return _work(group, self._gradients)


def _work(group: Group, gradients: Gradients) -> list[Bundle]:
    tasks, fold = group.tasks, group.tasks[0].fold
    count, context = len(tasks), _contexts([task.ctx for task in tasks])
    payload, state = stack([task.payload for task in tasks]), stack([task.state for task in tasks])
    carry = over(lambda payload, state, ctx: fold.start(payload, state, Ctx(**ctx)), payload, state, context)
    if BUFFERS in carry.get("weights", {}):
        # Batch norm writes to its running statistics in place: every client needs its own.
        carry["weights"] = {**carry["weights"], BUFFERS: spread(carry["weights"][BUFFERS], count)}
    carry |= {key: turned(carry[key]) for key in ("weights", "slots") if key in carry}
    crowd, steps = _Crowd(carry, [0] * count), [0] * count
    for phase in fold.phases:
        feed = group.feed(phase)
        _walk(phase, crowd, feed, gradients)
        steps = [before + len(sizes) for before, sizes in zip(steps, feed.sizes, strict=True)]

    bundles = []
    for places in crowd.alike():
        carry = crowd.of(places)
        ours = context if len(places) == count else chosen(context, places)
        upload, state = over(lambda carry, ctx: fold.finish(carry, Ctx(**ctx)), carry, ours)
        jobs = tuple(tasks[place].job for place in places)
        scalars = _means(carry.get("scalars", {}), [steps[place] for place in places])
        kept = None if state is None else rows(state, len(jobs))
        bundles.append(Bundle(jobs, rows(upload, len(jobs)), kept, scalars))
    return bundles


def _contexts(contexts: Sequence[Ctx]) -> dict[str, Any]:
    """The contexts' fields: the rate as a number, which is equal within a group, the others stacked."""
    (lr,) = {ctx.lr for ctx in contexts}
    device = contexts[0].class_counts.device
    found: dict[str, Any] = {}
    for one in fields(Ctx):
        values = [getattr(ctx, one.name) for ctx in contexts]
        stacked = (
            torch.stack(values) if isinstance(values[0], Tensor) else torch.tensor(values, device=device)
        )
        found[one.name] = Stack(stacked)
    return {**found, "lr": lr}


@dataclass
class _Crowd:
    """All clients' carries.

    What of a carry is no tensor, such as Adam's step counter, is equal for all at the start. Where steps
    change it, only clients who agree on it go together.

    Attributes:
        carry: their tensors, stacked.
        which: for each client, its place in ``variants``.
        variants: what is no tensor.
    """

    carry: Carry
    which: list[int]
    variants: list[list[Any]] = field(default_factory=list)
    _after: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.variants.append(fixed(self.carry))

    def begin(self) -> None:
        """A new phase, whose steps change other things."""
        self._after.clear()

    def alike(self) -> list[list[int]]:
        """The clients, by what is no tensor of their carries."""
        found: dict[int, list[int]] = defaultdict(list)
        for place, variant in enumerate(self.which):
            found[variant].append(place)
        return list(found.values())

    def of(self, places: list[int]) -> Carry:
        """The carry of some clients who agree."""
        carry = self.carry if len(places) == len(self.which) else chosen(self.carry, places)
        if len(self.variants) > 1:
            carry = with_fixed(carry, self.variants[self.which[places[0]]])
        return carry

    def keep(self, places: list[int], carry: Carry, size: int) -> None:
        """What steps of some clients, on batches of one size, came to."""
        if len(places) == len(self.which):
            self.carry = carry
        else:
            self.carry = put_back(self.carry, places, carry, len(self.which))
        before = self.which[places[0]], size
        if before not in self._after:
            after = fixed(carry)
            if after not in self.variants:
                self.variants.append(after)
            self._after[before] = self.variants.index(after)
        for place in places:
            self.which[place] = self._after[before]

    def align(self, places: list[int], carry: Carry) -> Carry:
        """Some clients' carry, with tensors where the crowd has them from now on.

        Raises:
            RunError: it cannot lie in one tree with the others'.
        """
        if len(places) == len(self.which):
            return carry
        numbers = [self.variants[variant] for variant in self.which]
        try:
            whole, carry = aligned(self.carry, numbers, carry, len(places))
        except ValueError as error:
            raise RunError(
                f"a step leaves some clients' carries unlike the others': {error}",
                where="engine vmapped",
                hint="let the fold's start put in whatever its steps change, or take --engine loop",
            ) from error
        became = zip(leaves(self.carry), leaves(whole), strict=True)
        kept = [old is new for old, new in became if not isinstance(old, (Stack, Tensor))]
        if not all(kept):
            self.variants = [list(compress(values, kept)) for values in self.variants]
            self._after.clear()
        self.carry = whole
        return carry


def _walk(phase: Phase, crowd: _Crowd, feed: Feed, gradients: Gradients) -> None:
    """Takes every client through its steps of a phase."""
    done, following = [0] * len(feed.sizes), _Next(feed.sizes)
    often = following.often()
    crowd.begin()

    def taken(places: list[int], count: int) -> Iterator[Batch]:
        for _ in range(count):
            yield feed.take(places, done)
            for place in places:
                done[place] += 1

    while places := following.places(done, crowd.which):
        size = feed.sizes[places[0]][done[places[0]]]
        # What changes with every step, such as Adam's counter, has to be looked at after each.
        alone = not isinstance(phase.step, GradientStep) or "steps" in crowd.carry["slots"]
        count = 1 if alone else following.in_a_row(done, places)
        carry, batches = crowd.of(places), taken(places, count)
        if isinstance(phase.step, GradientStep):
            carry = gradients.steps(phase.step, carry, batches, often=(size, len(places)) in often)
        else:
            for batch in batches:
                carry = crowd.align(places, over(phase.step, carry, Batch._make(map(Stack, batch))))
        crowd.keep(places, carry, size)


class _Next:
    """Who goes next together.

    The batch size that is rarest in the group goes first: who waits for a short last batch holds nobody up
    then, and the full batches, which all take, find everybody again.
    """

    def __init__(self, sizes: Sequence[Sequence[int]]) -> None:
        self._sizes = sizes
        self._common = Counter(size for each in sizes for size in each)
        self._aligned = all(each == sizes[0] for each in sizes)

    def places(self, done: Sequence[int], which: Sequence[int]) -> list[int]:
        """The clients whose next step is taken now, ascending; none at the end.

        Args:
            done: for each client, how many steps it has taken.
            which: clients with different numbers cannot go together.
        """
        everybody = len(done)
        if self._level(done) and which.count(which[0]) == everybody:
            return list(range(everybody)) if done[0] < len(self._sizes[0]) else []
        waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, (wanted, count) in enumerate(zip(self._sizes, done, strict=True)):
            if count < len(wanted):
                waiting[wanted[count], which[place]].append(place)
        if not waiting:
            return []
        return waiting[min(waiting, key=lambda kind: (self._common[kind[0]], -len(waiting[kind])))]

    def in_a_row(self, done: Sequence[int], places: Sequence[int]) -> int:
        """How many steps of one batch size some clients can take, as long as nobody else waits for them."""
        if self._level(done) and len(places) == len(done):
            return _run(self._sizes[0], done[0])
        others = set(range(len(done))) - set(places)
        if any(done[place] < len(self._sizes[place]) for place in others):
            return 1
        return min(_run(self._sizes[place], done[place]) for place in places)

    def often(self) -> set[tuple[int, int]]:
        """The (batch size, clients) of which a group has so many steps that recording one pays.

        Told from the group alone: who has which tapes already must not change a bit.
        """
        done, found = [0] * len(self._sizes), Counter[tuple[int, int]]()
        if self._aligned:
            found.update((size, len(done)) for size in self._sizes[0])
        else:
            alike = [0] * len(done)
            while places := self.places(done, alike):
                found[self._sizes[places[0]][done[places[0]]], len(places)] += 1
                for place in places:
                    done[place] += 1
        return {kind for kind, count in found.items() if count >= _OFTEN}

    def _level(self, done: Sequence[int]) -> bool:
        """Whether all clients have the same steps before them."""
        return self._aligned and done.count(done[0]) == len(done)


def _run(sizes: Sequence[int], start: int) -> int:
    """How many sizes from a place on are equal."""
    return sum(1 for _ in takewhile(sizes[start].__eq__, islice(sizes, start, None)))


def _means(totals: Mapping[str, Any], steps: Sequence[int]) -> dict[str, list[float]]:
    """Each client's sums over its steps, a step."""
    found = {}
    for name, total in totals.items():
        sums = total.value.tolist() if isinstance(total, Stack) else [float(total)] * len(steps)
        found[name] = [one / max(count, 1) for one, count in zip(sums, steps, strict=True)]
    return found
