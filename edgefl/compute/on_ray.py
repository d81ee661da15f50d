"""Workers on a Ray cluster: plain tasks of one CPU each, with trees in Ray's object store.

Imports Ray, so only the engine ``ray`` imports this. A cluster's computers need edgefl in the driver's
version, and nothing else of the user's: settings, data and the files on ``EDGEFL_PATH`` are sent.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import platform
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple

import ray
import torch
from ray.exceptions import RayError
from torch import Tensor

from edgefl.compute.parallel import Order, Parallel, ParallelContext, Setup, unit
from edgefl.compute.trees import read, write
from edgefl.core import catalogue
from edgefl.core.errors import EdgeflError, RunError, UserError
from edgefl.core.host import cores

_ANSWER_S = 5.0
# Ray's socket paths have to be short, which the temporary folder of some systems is not.
_SHORT = Path("/tmp")  # noqa: S108 - a fresh folder in it
_HOW = "start one with `ray start --head`, or omit engine.address to start one for this run"


class Objects(NamedTuple):
    """Trees in Ray's object store, which frees those without references."""

    def put(self, tree: Any) -> Any:
        """Places a tree.

        Raises:
            RunError: the store is full.
        """
        try:
            write(tree, stream := io.BytesIO())
            return ray.put(stream.getvalue())
        except RayError as error:
            raise RunError(f"Ray's object store is full: {_said(error)}") from error

    def get(self, ref: Any) -> Any:
        """The tree in memory of its own: the store's is not to be written to, even by mistake."""
        return read(io.BytesIO(ray.get(ref)))

    def drop(self, ref: Any) -> None:
        """Nothing to do: the caller's reference was the last."""


def versions() -> dict[str, str]:
    """The versions that must be the same on all computers; builds of torch may differ."""
    return {
        "edgefl": installed("edgefl-emulator"),
        "torch": installed("torch").partition("+")[0],
        "python": ".".join(platform.python_version_tuple()[:2]),
    }


@dataclass(frozen=True)
class Build:
    """How a worker makes its task builder.

    Attributes:
        build: as in ``Setup``.
        versions: the driver's.
        folders: each directory on the driver's ``EDGEFL_PATH``, and its files of components by their paths.
    """

    build: Callable[[Mapping[str, Any], Mapping[str, Tensor]], Any]
    versions: Mapping[str, str]
    folders: Mapping[str, Mapping[str, bytes]]

    def __call__(self, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Any:
        """Builds it, with the user's components where the catalogue looks for them.

        Raises:
            UserError: this computer has other versions.
        """
        here = versions()
        other = {name: found for name, found in here.items() if found != self.versions[name]}
        if other:
            ours = {name: self.versions[name] for name in other}
            raise UserError(
                f"the cluster's {platform.node()} has {_names(other)}, the driver has {_names(ours)}",
                hint="install the same versions on every computer of the cluster",
            )
        _roots.clear()
        for name, files in self.folders.items():
            root = Path(tempfile.mkdtemp(prefix="edgefl-"))
            atexit.register(shutil.rmtree, root, ignore_errors=True)
            _roots[str(root)] = name
            for place, content in files.items():
                path = root / place
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        os.environ["EDGEFL_PATH"] = os.pathsep.join(_roots)
        return self.build(settings, tensors)


# In a worker: where the user's folders are, and what the driver calls them.
_roots: dict[str, str] = {}


def far_unit(setup: list[Any], order: Order) -> Any:
    """A worker's: see ``unit``; an error has the driver's paths of the user's files."""
    torch.set_num_threads(1)
    answer = unit(Objects(), setup[0], order)
    if isinstance(answer, EdgeflError):
        for here, there in _roots.items():
            answer.what, answer.where, answer.trace = (
                text.replace(here, there) for text in (answer.what, answer.where, answer.trace)
            )
    return answer


class Cluster(Parallel):
    """The workers of a cluster, one for each CPU, which Ray starts where it has room."""

    shares_files = False
    lost = RayError

    def __init__(
        self, context: ParallelContext, setup: Setup, workers: int | None, address: str | None
    ) -> None:
        """Joins a cluster, or starts one; a process that is connected already stays connected.

        Args:
            context: the run.
            setup: what all units share.
            workers: how many units are done at a time; None for one per CPU.
            address: "auto" or host:port; None starts one on this computer.

        Raises:
            UserError: there is no such cluster, or it is too small.
            RunError: a fresh one cannot be started.
        """
        self._folder: str | None = None
        self._joined = not ray.is_initialized()
        if self._joined:
            self._join(workers, address)
        cpus = int(ray.cluster_resources().get("CPU", 0))
        if (workers or 1) > cpus:
            self.close()
            raise UserError(
                f"{workers or 1} workers need one CPU each, but the cluster has {cpus}",
                where="engine.workers",
                hint="use fewer workers, or add computers with `ray start --address=...`",
            )
        # Retries are the engine's.
        self._unit = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(far_unit)
        folders = dict(zip(map(str, catalogue.user_folders()), catalogue.user_files(), strict=True))
        setup = setup._replace(build=Build(setup.build, versions(), folders))
        super().__init__(context, setup, Objects(), workers or cpus)

    def _join(self, workers: int | None, address: str | None) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        before = signal.getsignal(signal.SIGTERM)
        try:
            if address is None:
                self._folder = tempfile.mkdtemp(prefix="ray-", dir=_SHORT if _SHORT.is_dir() else None)
                own = {"num_cpus": workers or cores(), "include_dashboard": False, "_temp_dir": self._folder}
                ray.init(address="local", **own, **quiet)
            else:
                ray.init(address=address, **quiet)
        except Exception as error:
            self.close()
            if address is None:
                raise RunError(f"cannot start Ray: {_said(error)}", where="engine ray") from error
            raise UserError(
                f"cannot join the Ray cluster {address}: {_said(error)}", where="engine.address", hint=_HOW
            ) from error
        finally:
            if threading.current_thread() is threading.main_thread():
                # Ray's own would replace the command's exit status.
                signal.signal(signal.SIGTERM, before)

    def submit(self, order: Order) -> Future[Any]:
        """See ``Parallel``."""
        # In a list, a reference is passed on as it is.
        future: Future[Any] = self._unit.remote([self._setup], order).future()
        return future

    def close(self) -> None:
        """Leaves the cluster, or ends it if it was started here."""
        if self._joined:
            ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def check_address(address: str | None) -> None:
    """Checks that something answers at an address: Ray itself would try for minutes.

    Raises:
        UserError: nothing does.
    """
    if address is None or ray.is_initialized():
        return
    where = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
    host, _, port = where.rpartition(":")
    try:
        if where != "auto":
            socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except (OSError, ValueError) as error:
        raise UserError(
            f"no Ray cluster answers at {where}: {error}", where="engine.address", hint=_HOW
        ) from error


def _names(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in found.items())


def _said(error: Exception) -> str:
    """The last line of an error of Ray's, without its advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1].partition(" Some common causes")[0]
