"""How local data are split into batches, and how many steps a phase takes on them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Passes:
    """The length of a phase: epochs or steps. A pass goes over ``samples``; None for the client's own."""

    epochs: int | None = None
    steps: int | None = None
    samples: int | None = None

    def __post_init__(self) -> None:
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give a phase either epochs or steps")
        if (self.epochs or 0) < 0 or (self.steps or 0) < 0 or (self.samples or 0) < 0:
            raise ValueError("a phase's epochs, steps and samples must not be negative")

    def sizes(self, own: int, batch_size: int) -> list[int]:
        """The batch sizes of one pass, for a client that has ``own`` samples."""
        return batch_sizes(own if self.samples is None else self.samples, batch_size)


def batch_sizes(samples: int, batch_size: int) -> list[int]:
    """The batch sizes of one pass over ``samples``.

    The last batch is short where the division leaves a rest. A rest of one sample joins the batch before it:
    a batch of one has no variance (batch norm) and no pairs.

    >>> batch_sizes(70, 32), batch_sizes(65, 32), batch_sizes(1, 32)
    ([32, 32, 6], [32, 33], [1])
    """
    full, rest = divmod(samples, batch_size)
    sizes = [batch_size] * full
    if rest == 1 and sizes:
        sizes[-1] += 1
    elif rest:
        sizes.append(rest)
    return sizes


def step_sequence(samples: int, batch_size: int, passes: Passes) -> Iterator[tuple[int, int]]:
    """Every step of a phase in order, as (pass number, batch size); a phase of steps may end mid-pass."""
    one = passes.sizes(samples, batch_size)
    if passes.epochs is not None:
        yield from ((epoch, size) for epoch in range(passes.epochs) for size in one)
    elif one:
        yield from ((step // len(one), one[step % len(one)]) for step in range(passes.steps or 0))


def step_sizes(samples: int, batch_size: int, passes: Passes) -> Counter[int]:
    """How many steps of each batch size a phase takes for a client of ``samples`` samples."""
    one = passes.sizes(samples, batch_size)
    if not one:
        return Counter()
    whole, rest = (passes.epochs, 0) if passes.epochs is not None else divmod(passes.steps or 0, len(one))
    counts = Counter({size: count * whole for size, count in Counter(one).items() if whole})
    counts.update(one[:rest])
    return counts


def step_count(samples: int, batch_size: int, passes: Passes) -> int:
    """How many steps a phase takes for a client of ``samples`` samples."""
    return step_sizes(samples, batch_size, passes).total()


def limited(samples: int, batch_size: int, phases: Sequence[Passes], steps: int) -> list[Passes]:
    """The lengths of a job's phases, which are done in order, where the job ends after ``steps`` steps.

    >>> limited(20, 10, [Passes(epochs=2), Passes(epochs=2)], 5)
    [Passes(epochs=2, steps=None, samples=None), Passes(epochs=None, steps=1, samples=None)]
    """
    lengths = []
    for passes in phases:
        full = step_count(samples, batch_size, passes)
        lengths.append(passes if full <= steps else replace(passes, epochs=None, steps=steps))
        steps = max(0, steps - full)
    return lengths
