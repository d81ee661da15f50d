"""Processes as forks of a server that has loaded torch, which takes a second alone.

What is claimed of the processes themselves is tested with real ones.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["preloaded", "edgefl.compute.parallel", "edgefl.runs.group", "edgefl.calibrate"]
)


def _begin(environment: dict[str, str], initializer: Callable[[int], None]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    # It follows the server, which ends with the driver.
    initializer(os.getppid())


def _pool(
    workers: int, *, initializer: Callable[[int], None], initargs: tuple[int], env: dict[str, str]
) -> Any:
    """As loky's ``ProcessPoolExecutor``."""
    from loky.process_executor import ProcessPoolExecutor

    del initargs
    return ProcessPoolExecutor(workers, context=_CONTEXT, initializer=partial(_begin, env, initializer))


def _execute(code: str, environment: dict[str, str], orders: Connection, answers: Connection) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number, pipe in enumerate((orders, answers)):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdin = os.fdopen(0, "r")
    exec(code, {})  # noqa: S102 - our own command


def _run(command: Sequence[str], *, input: bytes, env: Mapping[str, str], **_: Any) -> Any:  # noqa: A002
    """As ``subprocess.run`` with ``input``."""
    reader, orders = _CONTEXT.Pipe(duplex=False)
    answers, writer = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_execute, args=(command[-1], dict(env), reader, writer), daemon=True)
    process.start()
    reader.close()
    writer.close()
    with os.fdopen(os.dup(orders.fileno()), "wb") as given:
        orders.close()
        given.write(input)
    with os.fdopen(os.dup(answers.fileno()), "rb") as taken:
        out = taken.read()
    answers.close()
    process.join()
    return SimpleNamespace(returncode=process.exitcode, stdout=out, stderr=b"")


def preload(patch: pytest.MonkeyPatch) -> None:
    """Has workers and ``fresh.call`` use them."""
    from edgefl.compute import parallel
    from edgefl.core import fresh

    patch.setattr(parallel, "ProcessPoolExecutor", _pool)
    patch.setattr(fresh, "subprocess", SimpleNamespace(run=_run))
