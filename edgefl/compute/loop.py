"""One client after another, in this process, on one thread: the reference.

One thread, because one and two threads give different gradient bits: a result must not depend on the
machine's core count.
"""

from collections.abc import Callable, Sequence

from edgefl.compute.job import Group, Outcome, Size, Task, Unit, all_finite
from edgefl.compute.process import one_thread
from edgefl.core.event import TrainingJob
from edgefl.protocol import chance
from edgefl.protocol.sample_losses import unmeasured


class Loop:
    def units(self, jobs: Sequence[TrainingJob], size: Callable[[TrainingJob], Size]) -> list[Unit]:
        """One unit a job, the longest first, so that workers finish at about the same time."""
        return [(job,) for job in sorted(jobs, key=lambda job: (-size(job).steps, job.id))]

    def work(self, group: Group) -> list[Outcome]:
        return [work(task) for task in group.tasks]


def work(task: Task) -> Outcome:
    """One client's job, start to finish."""
    with one_thread(), chance.training() as at:
        seeds = (task.job.seed,)
        at(seeds, -1, (0,))
        carry = task.fold.started(task.payload, task.state, task.ctx)
        steps = 0
        for place, phase in enumerate(task.fold.phases):
            scalars = carry.get("scalars")
            if scalars is not None and not phase.reports:
                carry = {**carry, "scalars": unmeasured(scalars)}
            for nth, batch in enumerate(task.batches(phase)):
                at(seeds, place, (nth,))
                carry = phase.stepped(carry, batch)
                steps += phase.reports
            if scalars is not None and not phase.reports:
                carry = {**carry, "scalars": scalars}
        at(seeds, len(task.fold.phases), (0,))
        upload, state = task.fold.finished(carry, task.ctx, task.state)
        totals = carry.get("scalars", {}) if steps else {}
        scalars = {name: float(total) / steps for name, total in totals.items()}
        return Outcome(task.job, upload, state, scalars, all_finite(upload, state))
