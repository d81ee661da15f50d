"""Processes as forks of a server that has loaded torch, which takes a second alone.

What is claimed of the processes themselves is tested with real ones.
"""

import multiprocessing
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["preloaded", "edgefl.compute.parallel", "edgefl.runs.group", "edgefl.calibrate"]
)


def _begin(environment: dict[str, str], initializer: Callable[..., None], *driver: int) -> None:
    os.environ.clear()
    os.environ.update(environment)
    # A worker follows the server, which ends with the driver.
    initializer(*(os.getppid() for _ in driver))


def _pool(
    workers: int, *, initializer: Callable[..., None], initargs: tuple[int, ...] = (), env: dict[str, str]
) -> Any:
    """As loky's ``ProcessPoolExecutor``."""
    from loky.process_executor import ProcessPoolExecutor

    begin = partial(_begin, env, initializer, *initargs)
    return ProcessPoolExecutor(workers, context=_CONTEXT, initializer=begin)


def preload(patch: pytest.MonkeyPatch) -> None:
    """Has workers and ``fresh.call`` use them."""
    from edgefl.compute import parallel
    from edgefl.core import fresh

    for module in (parallel, fresh):
        patch.setattr(module, "ProcessPoolExecutor", _pool)
