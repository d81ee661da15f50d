"""Many clients at once on one device: the fold's functions over stacked carries.

Only batches of equal shapes are stacked. A client whose next batch has another size sits the step out as
a whole; samples are never padded, because batch norm and every loss that compares samples would change.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from edgefl.compute.gradients import Gradients
from edgefl.compute.job import Group, Outcome, Size, Unit, all_finite
from edgefl.compute.process import one_thread
from edgefl.compute.stacked import Carries, Stack, chosen, kinds, over, rows, spread, stack, turned
from edgefl.core.errors import RunError
from edgefl.core.event import TrainingJob
from edgefl.protocol import BUFFERS, Batch, Carry, Ctx, GradientStep, Phase, Within, chance, tree_map
from edgefl.protocol.chance import At
from edgefl.protocol.sample_losses import unmeasured
from edgefl.protocol.training import is_carry
from edgefl.protocol.trees import unstacked


class Vmapped:
    """Trains groups of jobs of one kind: ``most`` clients at most, and so much memory by the traced cost."""

    def __init__(self, most: int, memory_bytes: int) -> None:
        self._most = most
        self._memory_bytes = memory_bytes
        self._gradients = Gradients()

    def units(self, jobs: Sequence[TrainingJob], size: Callable[[TrainingJob], Size]) -> list[Unit]:
        """Groups of one kind and about equal lengths, clients of similar step counts together."""
        kinds: dict[Any, list[tuple[Size, TrainingJob]]] = defaultdict(list)
        for job in jobs:
            job_size = size(job)
            kinds[job_size.kind].append((job_size, job))
        units = []
        for sized in kinds.values():
            sized.sort(key=lambda pair: (-pair[0].steps, -pair[0].samples, pair[1].id))
            room = self._memory_bytes // max(1, *(job_size.peak_bytes for job_size, _ in sized))
            count = -(-len(sized) // max(1, min(self._most, room)))
            edges = [len(sized) * place // count for place in range(count + 1)]
            units += [tuple(job for _, job in sized[start:end]) for start, end in pairwise(edges)]
        return units

    def work(self, group: Group) -> list[Outcome]:
        # vmap would call fused attention client by client, and warn of it; its parts it stacks.
        with one_thread(), sdpa_kernel(SDPBackend.MATH), chance.training() as at:
            try:
                return _work(group, self._gradients, at)
            except RuntimeError as error:
                if "randomness error mode" not in str(error):
                    raise
                raise RunError(
                    "the model draws other random numbers than dropout's, which cannot be stacked",
                    where="engine vmapped",
                    hint="use --engine loop; --engine auto does so by itself",
                ) from error


def _work(group: Group, gradients: Gradients, at: At) -> list[Outcome]:
    tasks, fold, count = group.tasks, group.tasks[0].fold, len(group.tasks)
    seeds = [task.job.seed for task in tasks]
    at(seeds, -1, [0] * count)
    context, state = _contexts([task.ctx for task in tasks]), stack([task.state for task in tasks])
    begun = stack([task.payload for task in tasks]), state, context
    carry = over(lambda payload, state, ctx: fold.started(payload, state, Ctx(**ctx)), *begun)
    carries, steps = Carries(_prepared(carry, count), count), [0] * count
    for place, phase in enumerate(fold.phases):
        feed = group.feed(place)
        scalars = carries.carry.get("scalars")
        if scalars is not None and not phase.reports:
            carries.carry["scalars"] = unmeasured(scalars)
        done, common = [0] * count, Counter(chain.from_iterable(feed.sizes))
        while places := _next(feed.sizes, common, done, carries.fixed):
            at([seeds[one] for one in places], place, [done[one] for one in places])
            batch = feed.take(places, done)
            carries.keep(places, _stepped(phase, carries.of(places), batch, gradients))
            for one in places:
                done[one] += 1
        if phase.reports:
            steps = [before + len(sizes) for before, sizes in zip(steps, feed.sizes, strict=True)]
        elif scalars is not None:
            carries.carry["scalars"] = scalars
    outcomes: list[Outcome] = []
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for place, leaves in enumerate(carries.fixed):
        alike[leaves].append(place)
    for places in alike.values():
        carry = carries.of(places)
        at([seeds[place] for place in places], len(fold.phases), [0] * len(places))
        given = carry, chosen(context, places, count), chosen(state, places, count)
        found = over(lambda carry, ctx, state: fold.finished(carry, Ctx(**ctx), state), *given)
        # Each job's tensors are views of the stacks.
        upload, after = (None if tree is None else rows(tree, len(places)) for tree in found)
        each = (unstacked(tree, len(places)) for tree in (upload, after))
        means = _means(carry.get("scalars", {}), [steps[place] for place in places])
        finite = all_finite(upload, after)
        for place, sent, kept, scalars in zip(places, *each, means, strict=True):
            own = finite or all_finite(sent, kept)
            outcomes.append(Outcome(tasks[place].job, sent, kept, scalars, own))
    return outcomes


def _prepared(carry: Carry, count: int) -> Carry:
    """The carry, and each carry inside it, as steps of ``count`` clients need it."""
    prepared = {key: _prepared(inner, count) if is_carry(inner) else inner for key, inner in carry.items()}
    if BUFFERS in carry.get("weights", {}):
        # Batch norm writes to its running statistics in place: every client needs its own.
        prepared["weights"] = {**carry["weights"], BUFFERS: spread(carry["weights"][BUFFERS], count)}
    return prepared | {key: turned(prepared[key]) for key in ("weights", "slots") if key in carry}


def _contexts(contexts: Sequence[Ctx]) -> dict[str, Any]:
    """The contexts' fields: the rate as a number, which is equal within a group, the others stacked."""
    device = contexts[0].class_counts.device

    def stacked(*values: Any) -> Stack:
        if isinstance(values[0], Tensor):
            return Stack(torch.stack(values))
        # As exact as the number that it is for a client alone.
        dtype = torch.float64 if isinstance(values[0], float) else None
        return Stack(torch.tensor(values, dtype=dtype, device=device))

    return {**tree_map(stacked, *map(vars, contexts)), "lr": contexts[0].lr}


def _stepped(phase: Phase, carry: Carry, batch: Batch, gradients: Gradients) -> Carry:
    match phase.step:
        case GradientStep() as step:
            return gradients.step(step, carry, batch)
        case Within(key=key, step=GradientStep() as step):
            return {**carry, key: gradients.step(step, carry[key], batch)}
    after: Carry = over(phase.stepped, carry, Batch._make(map(Stack, batch)))
    if kinds(after) != kinds(carry):
        # Clients that did not take the step have another carry.
        raise RunError(
            f"a step of phase {phase.name!r} changes the keys, shapes or types of its carry",
            where="engine vmapped",
            hint="let the carry begin as steps leave it, or use --engine loop",
        )
    return after


def _next(
    sizes: Sequence[Sequence[int]], common: Mapping[int, int], done: Sequence[int], kinds: Sequence[Hashable]
) -> list[int]:
    """Of clients that are ``done`` so many steps, whose next is taken now, ascending; none at the end.

    The batch size that is rarest in the group goes first: a client with a short last batch delays no others
    then, and the full batches, which all clients have, are stacked over all of them again. Clients of
    different ``kinds`` cannot go together.
    """
    waiting: dict[tuple[int, Hashable], list[int]] = defaultdict(list)
    for place, (each, count) in enumerate(zip(sizes, done, strict=True)):
        if count < len(each):
            waiting[each[count], kinds[place]].append(place)
    rarest = min(waiting, key=lambda kind: (common[kind[0]], -len(waiting[kind])), default=None)
    return [] if rarest is None else waiting[rarest]


def _means(totals: Mapping[str, Any], steps: Sequence[int]) -> list[dict[str, float]]:
    """Each client's means over its steps; none without steps."""
    sums = {
        name: total.value.tolist() if isinstance(total, Stack) else [float(total)] * len(steps)
        for name, total in totals.items()
    }
    return [
        {name: values[place] / count for name, values in sums.items()} if count else {}
        for place, count in enumerate(steps)
    ]
