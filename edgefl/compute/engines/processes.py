"""Processes: workers on this machine, one thread each, with data and server state in shared memory."""

from __future__ import annotations

from edgefl.compute.engines._params import Working, check_workers
from edgefl.compute.job import Engine
from edgefl.compute.processes import Processes
from edgefl.compute.remote import Remote, RemoteEngineContext
from edgefl.core.host import cores


class Params(Working):
    """How many workers, and how each trains."""


def check(params: Params) -> None:
    """Checks the device and the number of workers before a run begins.

    Raises:
        UserError: the device is not a CPU, or there are too many workers.
    """
    params.check_device()
    check_workers(params.workers)


def build(params: Params, context: RemoteEngineContext) -> Engine:
    """Worker processes."""
    trainer = params.trainer()
    return Remote(context, trainer, Processes(context.builder_spec(), trainer, params.workers or cores()))
