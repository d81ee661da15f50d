"""Workloads in fresh processes, one round after another, so that a disturbance meets all of them alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from edgefl.calibrate.workloads import Workload
from edgefl.core.errors import RunError

Answers = list[dict[str, Any]]
Run = Callable[[str, dict[str, Any]], Any]
"""(module, order) -> answer: starts a fresh process of a module and has it do an order."""


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


def run_module(module: str, order: dict[str, Any]) -> Any:
    """Starts ``python -m module``, gives it an order on standard input and reads its answer.

    Raises:
        RunError: it failed.
    """
    threads = str(order.get("threads", 1))
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "PYTHONPATH": paths}
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", module],
        input=json.dumps(order),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RunError(f"a measuring process failed: {last[0]}", where=f"python -m {module}")
    return json.loads(done.stdout) if done.stdout.strip() else None


def measured(
    groups: Sequence[Sequence[Workload]],
    *,
    repeats: int,
    budgets: Sequence[float],
    threads: int,
    run: Run,
    watch: Callable[[str], None],
) -> tuple[list[Timing], int]:
    """Times every workload.

    Args:
        groups: those that share a process, one after another.
        repeats: how many processes each group gets.
        budgets: for each group, the seconds to time each of its workloads.
        threads: how many a process works on.
        run: how a process is started and told.
        watch: is told of each group before its turn.

    Returns:
        A timing for each workload, and the bytes of a process that has loaded its libraries.
    """
    found: dict[str, Answers] = {}
    loaded: list[int] = []
    for _ in range(repeats):
        for group, budget_s in zip(groups, budgets, strict=True):
            watch(_label(group))
            plain = [one.plain() for one in group]
            order = {"threads": threads, "budget_s": budget_s, "workloads": plain}
            answer = run("edgefl.calibrate.child", order)
            loaded.append(answer["loaded_bytes"])
            for one, timing in zip(group, answer["timings"], strict=True):
                found.setdefault(one.name, []).append(timing)
    return [_timing(one, found[one.name]) for group in groups for one in group], int(median(loaded))


def _label(group: Sequence[Workload]) -> str:
    kinds = {one.kind for one in group}
    return "kernels" if len(kinds) > 1 else ", ".join(one.name for one in group[:2])


def _timing(workload: Workload, answers: Answers) -> Timing:
    each = [median(answer["seconds"]) for answer in answers]
    watts = [answer["watts"] for answer in answers if answer["watts"] is not None]
    return Timing(
        workload,
        seconds=median(each),
        spread=max(each) / min(each) - 1,
        repeats=len(each),
        share=min(answer["share"] for answer in answers),
        watts=median(watts) if watts else None,
    )
