"""Joining a Ray cluster, or starting one on this computer.

Ray's defaults do not suit a command: it tries a dead address for minutes, prints on standard output, and
reports usage.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray._private import utils as ray_utils
from ray._private import worker as ray_worker

from edgefl.compute import ray_agent
from edgefl.compute.folders import owned_folder
from edgefl.core.errors import RunError, UserError
from edgefl.core.host import cores

ANSWER_S = 5.0
# Ray's socket paths have to be short, which the temporary folder of some systems is not.
_SHORT = Path("/tmp")  # noqa: S108 - a fresh folder in it
# The start of an HTTP/2 connection, which Ray uses: the preface and an empty frame of settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_FRAME_BYTES, _TYPE, _SETTINGS = 9, 3, b"\x04"
_PRINT = ray_worker.print_to_stdstream
_HOW = "start one with `ray start --head`, or omit engine.address to start one for this run"


class Cluster:
    """A connection to a cluster; a process that is connected already stays connected."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        """Joins a cluster, or starts one.

        Args:
            address: "auto" or host:port; None starts one.
            workers: the size of a fresh one; None is one worker per core.

        Raises:
            UserError: there is no cluster at the address, or it cannot be joined.
            RunError: a fresh one cannot be started.
        """
        if ray.is_initialized():
            self.leave: Callable[[], Any] = _stays
            return
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        folder = None
        if address is None:
            folder = str(owned_folder("ray-", _SHORT if _SHORT.is_dir() else None))
        watchers: list[subprocess.Popen[bytes]] = []
        # Also when the driver forgets to close, or is interrupted.
        self.leave = weakref.finalize(self, _left, folder, watchers)
        try:
            _start(folder, workers or cores()) if folder else _join(address or "auto")
            watchers.extend(_watcher(pid) for pid in _agents())
        except BaseException:
            self.leave()
            raise

    def room(self, workers: int | None) -> int:
        """How many workers to start: one per CPU of the cluster, unless given.

        Raises:
            UserError: the cluster has fewer CPUs.
        """
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if (workers or 1) > cpus:
            raise UserError(
                f"{workers or 1} workers need one CPU each, but the cluster has {cpus}",
                where="engine.workers",
                hint="use fewer workers, or add computers with `ray start --address=...`",
            )
        return workers or cpus


def _start(folder: str, workers: int) -> None:
    try:
        _init(address="local", num_cpus=workers, include_dashboard=False, _temp_dir=folder)
    except Exception as error:
        raise RunError(f"cannot start Ray: {_said(error)}", where="engine ray") from error


def check_address(address: str | None) -> None:
    """Checks that a cluster answers at an address, if one is given and this process is not connected yet.

    Raises:
        UserError: nothing answers, or something other than Ray.
    """
    if address is not None and not ray.is_initialized():
        _called(address)


def _called(address: str) -> str:
    """The address with "auto" resolved, checked by a call."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", address)
    if address != "auto":
        _call(address)
    return address


def _join(address: str) -> None:
    address = _called(address)
    try:
        _init(address=address)
    except Exception as error:
        raise UserError(
            f"cannot join the Ray cluster {address}: {_said(error)}", where="engine.address", hint=_HOW
        ) from error


def _call(address: str) -> None:
    """Checks that Ray may be there, because Ray itself would try for minutes.

    Raises:
        UserError: nothing answers, or something else does.
    """
    host, _, port = address.rpartition(":")
    why = ""
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S) as line:
            # With TLS, the answer cannot be read here.
            if os.environ.get("RAY_USE_TLS", "0") == "0":
                line.sendall(_PREFACE)
                answer = line.recv(_FRAME_BYTES)
                why = "" if answer[_TYPE:][:1] == _SETTINGS else "the answer is not Ray's"
    except (OSError, ValueError) as error:
        why = str(error)
    if why:
        raise UserError(f"no Ray cluster answers at {address}: {why}", where="engine.address", hint=_HOW)


def _init(**settings: Any) -> None:
    # The engine reports a worker's death; Ray would print it on standard output too, without a switch.
    ray_worker.print_to_stdstream = _unsaid
    # It would replace the handler of SIGTERM, and the command's exit status with it.
    set_handler, ray_utils.set_sigterm_handler = ray_utils.set_sigterm_handler, _unsaid
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
    finally:
        ray_utils.set_sigterm_handler = set_handler
        if threading.current_thread() is threading.main_thread():
            # Its own handler below Python's would print the stack.
            signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM) or signal.SIG_DFL)


def _unsaid(*_: Any, **__: Any) -> None:
    """Does nothing."""


def _stays() -> None:
    """Keeps the connection."""


def _agents() -> list[int]:
    """The process of the agent that was started here, if one was; only Linux can wait for it."""
    started = getattr(ray_worker.global_worker.node, "all_processes", {}).get("raylet", [])
    return [one.process.pid for one in started] if hasattr(os, "pidfd_open") else []


def _watcher(pid: int) -> subprocess.Popen[bytes]:
    """A process that says why this one ended, where its agent was killed."""
    command = [sys.executable, "-I", "-S", ray_agent.__file__, str(pid)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)  # noqa: S603 - our own file


def _left(folder: str | None, watchers: list[subprocess.Popen[bytes]]) -> None:
    """Disconnects, which also ends a cluster that was started here."""
    for watcher in watchers:
        watcher.communicate(b".")
    ray.shutdown()
    ray_worker.print_to_stdstream = _PRINT
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _said(error: Exception) -> str:
    """An error of Ray's in one line; the last line of a traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else " ".join(lines)
