"""Joining a Ray cluster, or starting one on this computer.

Ray's own ways are unsuited to a command: it looks for an address that nobody answers at for minutes, prints
on standard output, and reports usage.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
from ray._private import worker as ray_worker

from edgefl.compute.folders import owned_folder
from edgefl.core.errors import RunError, UserError
from edgefl.core.host import cores

ANSWER_S = 5.0
# Ray's socket paths have to be short, which the temporary folder of some systems is not.
_SHORT = Path("/tmp")  # noqa: S108 - a fresh folder in it
# What opens a conversation in HTTP/2, which Ray speaks: the preface and an empty frame of settings.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
_FRAME_BYTES, _TYPE, _SETTINGS = 9, 3, b"\x04"
_PRINT = ray_worker.print_to_stdstream
_HOW = "start one with `ray start --head`, or leave engine.address out to have one for this run"


class Cluster:
    """A connection to a cluster; one in this process that is connected already keeps its own."""

    def __init__(self, address: str | None, workers: int | None) -> None:
        """Joins a cluster, or starts one.

        Args:
            address: "auto" or host:port; None starts one.
            workers: how many a fresh one is for; None is one a core.

        Raises:
            UserError: there is no cluster at the address, or it cannot be joined.
            RunError: a fresh one does not start.
        """
        if ray.is_initialized():
            self.leave: Callable[[], Any] = _stays
            return
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        folder = None
        if address is None:
            folder = str(owned_folder("ray-", _SHORT if _SHORT.is_dir() else None))
        # Also when the driver forgets to close, or is interrupted.
        self.leave = weakref.finalize(self, _left, folder)
        try:
            _start(folder, workers or cores()) if folder else _join(address or "auto")
        except BaseException:
            self.leave()
            raise

    def room(self, workers: int | None) -> int:
        """How many workers to have: as many as the cluster has CPUs, unless it is said.

        Raises:
            UserError: it can never hold so many.
        """
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if (workers or 1) > cpus:
            raise UserError(
                f"the cluster has {cpus} CPUs, and {workers or 1} workers need one each",
                where="engine.workers",
                hint="take fewer workers, or add computers with `ray start --address=...`",
            )
        return workers or cpus


def _start(folder: str, workers: int) -> None:
    try:
        _init(address="local", num_cpus=workers, include_dashboard=False, _temp_dir=folder)
    except Exception as error:
        raise RunError(f"Ray does not start here: {_said(error)}", where="engine ray") from error


def check_address(address: str | None) -> None:
    """Sees whether somebody answers at an address, where there is one and this process has not joined yet.

    Raises:
        UserError: nobody does, or something else than Ray.
    """
    if address is not None and not ray.is_initialized():
        _called(address)


def _called(address: str) -> str:
    """The address that is meant, after a call."""
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
    """Sees whether Ray may be there, since it would look for itself for minutes.

    Raises:
        UserError: nobody answers, or something else does.
    """
    host, _, port = address.rpartition(":")
    why = ""
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S) as line:
            # With TLS, what comes back is nothing to be read here.
            if os.environ.get("RAY_USE_TLS", "0") == "0":
                line.sendall(_PREFACE)
                answer = line.recv(_FRAME_BYTES)
                why = "" if answer[_TYPE:][:1] == _SETTINGS else "what answers there is something else"
    except (OSError, ValueError) as error:
        why = str(error)
    if why:
        raise UserError(f"no Ray cluster answers at {address}: {why}", where="engine.address", hint=_HOW)


def _init(**settings: Any) -> None:
    # A worker's death is the engine's to tell; Ray prints it on standard output, and has no switch for that.
    ray_worker.print_to_stdstream = _unsaid
    ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)


def _unsaid(*_: Any, **__: Any) -> None:
    """Prints nothing."""


def _stays() -> None:
    """Leaves a connection as it is."""


def _left(folder: str | None) -> None:
    """Disconnects, which ends a cluster that was started here."""
    ray.shutdown()
    ray_worker.print_to_stdstream = _PRINT
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _said(error: Exception) -> str:
    """An error of Ray's in one line; of a traceback, its last."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else " ".join(lines)
