"""Processes of ``edgefl.core.fresh`` as forks of a server that has loaded torch, which takes a second alone.

What is claimed of the processes themselves is tested with real ones.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["preloaded", "edgefl.compute.worker", "edgefl.runs.group", "edgefl.calibrate"]
)


class Process:
    """As much of ``subprocess.Popen`` as workers need."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        process_group: int = 0,
    ) -> None:
        """Starts it.

        Args:
            command: that of ``fresh.command``.
            env: its environment.
            stdin: a pipe, always.
            stdout: likewise.
            process_group: its own, always.
        """
        assert (stdin, stdout, process_group) == (subprocess.PIPE, subprocess.PIPE, 0)
        reader, orders = _CONTEXT.Pipe(duplex=False)
        answers, writer = _CONTEXT.Pipe(duplex=False)
        arguments = (command[-1], dict(env), reader, writer)
        self._process = _CONTEXT.Process(target=_execute, args=arguments, daemon=True)
        self._process.start()
        self.pid = self._process.pid
        self.stdin, self.stdout = (
            os.fdopen(os.dup(pipe.fileno()), mode) for pipe, mode in ((orders, "wb"), (answers, "rb"))
        )
        for pipe in (reader, orders, answers, writer):
            pipe.close()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status; negative for a signal."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a worker", timeout or 0.0)
        return self._process.exitcode


def _execute(code: str, environment: dict[str, str], orders: Connection, answers: Connection) -> None:
    os.setpgrp()
    os.environ.clear()
    os.environ.update(environment)
    for number, pipe in enumerate((orders, answers)):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdin = os.fdopen(0, "r")
    exec(code, {})  # noqa: S102 - our own command


def _run(command: Sequence[str], *, input: bytes, env: Mapping[str, str], **_: Any) -> Any:  # noqa: A002
    """As ``subprocess.run`` with ``input``."""
    process = Process(command, env=env)
    process.stdin.write(input)
    process.stdin.close()
    out = process.stdout.read()
    process.stdout.close()
    return SimpleNamespace(returncode=process.wait(), stdout=out, stderr=b"")


def preload(patch: pytest.MonkeyPatch) -> None:
    """Has workers and ``fresh.call`` use them."""
    from edgefl.compute import processes
    from edgefl.core import fresh

    known = {"PIPE": subprocess.PIPE, "TimeoutExpired": subprocess.TimeoutExpired}
    patch.setattr(processes, "subprocess", SimpleNamespace(Popen=Process, **known))
    patch.setattr(fresh, "subprocess", SimpleNamespace(run=_run))
