"""The reference engine: one client after another, in this process, on one thread.

One thread, because one and two threads give different gradient bits: a result must not depend on the
machine's core count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from edgefl.compute.job import Outcome, Task


def outcomes(tasks: Iterable[Task]) -> Iterator[Outcome]:
    """Does the tasks in their order.

    Yields:
        One outcome a task, in the same order.
    """
    for task in tasks:
        with one_thread():
            outcome = work(task)
        yield outcome


def work(task: Task) -> Outcome:
    """One client's job, start to finish."""
    carry = task.fold.start(task.payload, task.state, task.ctx)
    steps = 0
    for phase in task.fold.phases:
        for batch in task.batches(phase):
            carry = phase.step(carry, batch)
            steps += 1
    upload, state = task.fold.finish(carry, task.ctx)
    scalars = {name: float(total) / max(steps, 1) for name, total in carry.get("scalars", {}).items()}
    return Outcome(task.job, upload, state, scalars)


@contextmanager
def one_thread() -> Iterator[None]:
    """Runs what is inside on one intra-operator thread, and restores the number after."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
