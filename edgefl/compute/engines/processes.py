"""Processes: workers on this machine, one thread each, with data and server state in shared memory."""

from __future__ import annotations

from edgefl.compute.engines._params import Working, check_workers
from edgefl.compute.job import Engine
from edgefl.compute.parallel import Parallel, ParallelContext, Processes
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


def build(params: Params, context: ParallelContext) -> Engine:
    """Worker processes."""
    setup = context.setup(params.trainer())
    return Parallel(context, setup, Processes(params.workers or cores(), setup.tensors))
