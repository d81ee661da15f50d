"""Workers on a Ray cluster: plain tasks of one CPU each, with trees in Ray's object store.

Imports Ray, so only the engine ``ray`` imports this. A cluster's computers need edgefl in the driver's
version, and nothing else of the user's: settings, data and the files on ``EDGEFL_PATH`` are sent.
"""

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
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any, NamedTuple

import ray
import torch
from ray.exceptions import RayError

from edgefl.compute.job import EngineContext, Setup
from edgefl.compute.parallel import Order, Parallel, unit
from edgefl.compute.trees import sweep, write
from edgefl.core import catalogue
from edgefl.core.errors import RunError, UserError
from edgefl.core.fresh import died
from edgefl.core.host import cores
from edgefl.data.federation import Federation

_ANSWER_S = 5.0
_HOW = "start one with `ray start --head`, or omit engine.address to start one for this run"


class Objects(NamedTuple):
    """Trees in Ray's object store, which frees those without references."""

    def put(self, tree: Any) -> Any:
        """Raises a ``RunError`` where the store is full."""
        try:
            write(tree, stream := io.BytesIO())
            # In a tuple, a reference is passed on to a task as it is.
            return (ray.put(stream.getvalue()),)
        except RayError as error:
            raise RunError(f"Ray's object store is full: {died(error)}") from error

    def get(self, ref: Any) -> Any:
        """The tree in memory of its own: the store's is not to be written to, even by mistake."""
        return torch.load(io.BytesIO(ray.get(ref[0])), weights_only=False)

    def drop(self, ref: Any) -> None:
        """Nothing to do: the caller's reference was the last."""


def versions() -> str:
    """The versions that must be the same on all computers; builds of torch may differ."""
    torch_version = installed("torch").partition("+")[0]
    python = ".".join(platform.python_version_tuple()[:2])
    return f"edgefl {installed('edgefl-emulator')}, torch {torch_version}, Python {python}"


def _built(
    build: Callable[[Federation], Any],
    driver: str,
    folders: Sequence[Mapping[str, bytes]],
    federation: Federation,
) -> Any:
    """A worker's task builder, with the user's files by folder; a ``UserError`` if it has other versions."""
    if versions() != driver:
        raise UserError(
            f"the cluster's {platform.node()} has {versions()}, the driver has {driver}",
            hint="install the same versions on every computer of the cluster",
        )
    root = Path(tempfile.mkdtemp(prefix=sweep()))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    for nth, files in enumerate(folders):
        for place, content in files.items():
            path = root / f"{nth:04d}" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    os.environ["EDGEFL_PATH"] = os.pathsep.join(map(str, sorted(root.iterdir())))
    return build(federation)


class Cluster(Parallel):
    """The workers of a cluster, one for each CPU, which Ray starts where it has room."""

    lost = RayError

    def __init__(
        self, context: EngineContext, setup: Setup, workers: int | None, address: str | None
    ) -> None:
        """Joins a cluster, or starts one; a process that is connected already stays connected."""
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
        self._unit = ray.remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(unit)
        build = partial(_built, setup.build, versions(), catalogue.user_files())
        super().__init__(context, setup._replace(build=build), Objects(), workers or cpus)

    def _join(self, workers: int | None, address: str | None) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        own: dict[str, Any] = {"num_cpus": workers or cores(), "include_dashboard": False}
        options = {} if address else own
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:
            self.close()
            if address is None:
                raise RunError(f"cannot start Ray: {died(error)}", where="engine ray") from error
            raise UserError(
                f"cannot join the Ray cluster {address}: {died(error)}", where="engine.address", hint=_HOW
            ) from error
        finally:
            if threading.current_thread() is threading.main_thread():
                # Ray's own would replace the command's exit status.
                signal.signal(signal.SIGTERM, before)

    def submit(self, order: Order) -> Future[Any]:
        future: Future[Any] = self._unit.remote(self.trees, self._setup, order).future()
        return future

    def close(self) -> None:
        """Leaves the cluster, or ends it if it was started here."""
        if self._joined:
            ray.shutdown()


def check_address(address: str | None) -> None:
    """A ``UserError`` if nothing answers at an address: Ray itself would try for minutes."""
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
