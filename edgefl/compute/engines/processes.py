"""Processes: workers on this machine, one thread each, with data and server state in shared memory."""

from __future__ import annotations

from edgefl.compute.engines._params import Working
from edgefl.compute.job import Engine
from edgefl.compute.processes import Processes
from edgefl.compute.remote import Remote, RemoteEngineContext
from edgefl.core.errors import UserError
from edgefl.core.host import cores


class Params(Working):
    """How many workers, and how each trains."""


def check(params: Params) -> None:
    """Sees whether there can be such workers here, before a run is begun.

    Raises:
        UserError: the device is no CPU.
    """
    if params.device not in {"auto", "cpu"}:
        raise UserError(
            f"processes train on the CPU, not on {params.device}",
            where="engine.device",
            hint="take --engine vmapped, which is what a GPU is for",
        )


def build(params: Params, context: RemoteEngineContext) -> Engine:
    """Worker processes."""
    trainer = params.trainer()
    return Remote(context, trainer, Processes(context.builder_spec(), trainer, params.workers or cores()))
