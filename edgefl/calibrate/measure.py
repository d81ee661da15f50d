"""Workloads in fresh processes, one round after another, so that a disturbance meets all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from edgefl.calibrate.child import Calls, time_all
from edgefl.calibrate.workloads import Workload
from edgefl.core.fresh import Caller


@dataclass(frozen=True)
class Timing:
    """What one workload took.

    Attributes:
        workload: which.
        seconds: the median over the processes of each one's median.
        spread: how far the processes are apart: slowest over fastest, less 1.
        repeats: how many processes.
        share: the least share of a core that a process had while it was timed.
        watts: the mean power; None where nothing counts it.
    """

    workload: Workload
    seconds: float
    spread: float
    repeats: int
    share: float
    watts: float | None


def measured(
    groups: Sequence[Sequence[Workload]],
    *,
    repeats: int,
    budgets: Sequence[float],
    threads: int,
    run: Caller,
    watch: Callable[[str], None],
) -> tuple[list[Timing], int]:
    """Times every workload.

    Args:
        groups: those that share a process, one after another.
        repeats: how many processes each group gets.
        budgets: for each group, the seconds to time each of its workloads.
        threads: how many a process works on.
        run: calls a function in a fresh process.
        watch: is told of each group before its turn.

    Returns:
        A timing for each workload, and the bytes of a process that has loaded its libraries.
    """
    found: dict[str, list[Calls]] = {}
    loaded: list[int] = []
    for _ in range(repeats):
        for group, budget_s in zip(groups, budgets, strict=True):
            watch(_label(group))
            loaded_bytes, each = run(time_all, group, budget_s, threads, threads=threads)
            loaded.append(loaded_bytes)
            for one, calls in zip(group, each, strict=True):
                found.setdefault(one.name, []).append(calls)
    return [_timing(one, found[one.name]) for group in groups for one in group], int(median(loaded))


def _label(group: Sequence[Workload]) -> str:
    kinds = {one.kind for one in group}
    return "kernels" if len(kinds) > 1 else ", ".join(one.name for one in group[:2])


def _timing(workload: Workload, processes: Sequence[Calls]) -> Timing:
    each = [median(one.seconds) for one in processes]
    watts = [one.watts for one in processes if one.watts is not None]
    return Timing(
        workload,
        seconds=median(each),
        spread=max(each) / min(each) - 1,
        repeats=len(each),
        share=min(one.share for one in processes),
        watts=median(watts) if watts else None,
    )
