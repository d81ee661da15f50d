"""Processes: workers on this machine, one thread each, with data and server state in shared memory."""

from __future__ import annotations

from edgefl.compute.engines._params import Working
from edgefl.compute.job import Engine
from edgefl.compute.processes import Processes
from edgefl.compute.remote import Remote, RemoteEngineContext
from edgefl.core.host import cores


class Params(Working):
    """How many workers, and how each trains."""


def check(params: Params) -> None:
    """Checks the device before a run begins.

    Raises:
        UserError: the device is not a CPU.
    """
    params.check_device()


def build(params: Params, context: RemoteEngineContext) -> Engine:
    """Worker processes."""
    trainer = params.trainer()
    return Remote(context, trainer, Processes(context.builder_spec(), trainer, params.workers or cores()))
