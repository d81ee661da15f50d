"""Groups of clients whose batches differ: the content of their carries."""

import pytest
import torch
from torch import Tensor

from edgefl.compute import loop
from edgefl.compute.job import Group, Outcome, Task
from edgefl.compute.vmapped import Vmapped
from edgefl.core.errors import RunError
from edgefl.core.event import TrainingJob
from edgefl.core.steps import Passes
from edgefl.protocol import Batch, Ctx, Fold, Phase

# The first batches differ already, so that the clients never start together.
RAGGED = ([6, 6, 4], [3], [6, 3], [3, 6, 4], [6, 6, 4])
SHAPE = (1, 4, 4)


class Feed:
    """Prepared batches."""

    def __init__(self, batches: list[list[Batch]]) -> None:
        self.sizes = [[len(batch.y) for batch in each] for each in batches]
        self._batches = batches

    def take(self, chosen, step) -> Batch:
        """The next batches of the chosen."""
        return Batch(
            *map(torch.stack, zip(*(self._batches[place][step[place]] for place in chosen), strict=True))
        )


def group(fold: Fold, payload, sizes=RAGGED) -> Group:
    """Clients with random samples in double precision, so that differences are not rounding."""
    generator, batches, tasks = torch.Generator().manual_seed(0), [], []
    for client, each in enumerate(sizes):
        own = [
            Batch(
                torch.randn(size, *SHAPE, generator=generator, dtype=torch.float64),
                torch.randint(3, (size,), generator=generator),
            )
            for size in each
        ]
        job = TrainingJob(client, client, "train", 0, 0, 0, client, len(each))
        ctx = Ctx(client, 0, 0.1, len(each), sum(each), torch.ones(3) * client)
        batches.append(own)
        tasks.append(Task(job, fold, payload, None, ctx, lambda _, own=own: iter(own)))
    return Group(tuple(tasks), lambda _: Feed(batches))


def together(given: Group) -> list[Outcome]:
    """The clients' outcomes as one group, in their order."""
    return sorted(Vmapped(64, 10**9).work(given), key=lambda outcome: outcome.job.id)


def toy(begin, change) -> Fold:
    """Work without weights: ``change`` on a carry, of which everything is sent."""

    def number(leaf) -> Tensor:
        return leaf.double() if isinstance(leaf, Tensor) else torch.tensor(float(leaf), dtype=torch.float64)

    def finish(carry, _):
        return {"all": {key: number(leaf) for key, leaf in carry.items()}}, None

    return Fold(
        lambda payload, _, ctx: begin(payload, ctx), (Phase("one", change, Passes(epochs=1)),), finish
    )


@pytest.mark.parametrize(
    ("shape", "kept", "alone"),
    [((), False, False), ((3,), True, False), ((2, 2), False, False), ((), True, True)],
)
def test_numbers_that_are_not_finite_are_reported_by_client(shape, kept, alone):
    """Whatever the shape of the leaf, whether it is sent or kept, of stacked clients and of the loop's."""

    def finish(carry, ctx):
        leaf = torch.ones(shape) * (carry["one"] / (ctx.client - 1))
        good, bad = {"a": {"weight": torch.ones(3, 4)}}, {"a": {"scale": leaf}}
        return (good, bad) if kept else (bad, good)

    phase = Phase("one", lambda carry, _: carry, Passes(epochs=1))
    given = group(Fold(lambda *_: {"one": torch.ones(())}, (phase,), finish), {}, ([6], [6], [6]))
    outcomes = [loop.work(task) for task in given.tasks] if alone else together(given)
    assert [outcome.finite for outcome in outcomes] == [True, False, True]


PAYLOAD = {"w": {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([3.0, 5.0])}}


@pytest.mark.parametrize(
    ("begin", "change"),
    [
        (lambda *_: {"sum": 0.0}, lambda carry, batch: {**carry, "last": batch.x.mean()}),
        (lambda *_: {"sum": 0.0}, lambda carry, batch: {"sum": carry["sum"] + batch.x.mean()}),
        (
            lambda payload, _: {"sum": payload["w"]["a"]},
            lambda _, batch: {"sum": torch.ones(3) * batch.x.mean()},
        ),
    ],
    ids=["another key", "a number becomes a tensor", "another shape"],
)
def test_a_carry_that_changes_in_kind_is_refused(begin, change):
    """Clients that did not take the step have another one."""
    with pytest.raises(RunError, match="phase 'one' changes the keys, shapes or types") as caught:
        together(group(toy(begin, change), PAYLOAD))
    assert "--engine loop" in caught.value.hint


def test_a_step_may_change_the_order_of_a_carrys_keys():
    """Whoever else takes it: tensors and numbers stay with their keys."""

    def begin(*_):
        zero = torch.zeros((), dtype=torch.float64)
        return {"sum": zero, "steps": 0, "last": zero + 1, "twice": 5}

    def change(carry, batch):
        mean = batch.x.mean()
        counts = {"twice": carry["twice"] + 2, "steps": carry["steps"] + 1}
        return {"last": mean, **counts, "sum": carry["sum"] + mean}

    given = group(toy(begin, change), {})
    for task, outcome in zip(given.tasks, together(given), strict=True):
        alone = loop.work(task).upload["all"]
        assert outcome.upload["all"].keys() == alone.keys()
        for key, value in alone.items():
            torch.testing.assert_close(outcome.upload["all"][key], value)
