"""A worker process: reads orders from standard input, trains on one thread, answers on standard output.

Started by ``edgefl.compute.processes``; ends when its input does.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch

from edgefl.compute.folders import removed
from edgefl.compute.heap import keep_freed_memory
from edgefl.compute.job import Trainer
from edgefl.compute.parcels import Depot, Parcel
from edgefl.compute.remote import Failed, Order, Refused, failure, worked
from edgefl.core import fresh


class Setup(NamedTuple):
    """What a worker is told first.

    Attributes:
        number: its number.
        folders: where parcels lie.
        build: see ``Recipe``.
        settings: see ``Recipe``.
        tensors: where the shared tensors lie.
        trainer: how it trains.
    """

    number: str
    folders: tuple[Path, ...]
    build: Any
    settings: Any
    tensors: Parcel
    trainer: Trainer


# What it answers: where the bundles lie, or why there are none.
Answer = Parcel | Failed | Refused


def main() -> None:
    """Works until its input ends."""
    # Ctrl-C and the end of a whole group of processes are the driver's to handle: a worker ends when it does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answers = fresh.answers()
    torch.set_num_threads(1)
    keep_freed_memory()
    setup: Setup = pickle.load(sys.stdin.buffer)  # noqa: S301 - the driver's own words
    try:
        _serve(setup, sys.stdin.buffer, answers)
    except (EOFError, OSError, pickle.UnpicklingError):
        # The driver is gone, perhaps in the middle of a word and without a chance to clean up.
        removed(setup.folders)
    # An interpreter that ends would try to tell it what it was not told.
    os._exit(0)


def _serve(setup: Setup, orders: BinaryIO, answers: BinaryIO) -> None:
    depot = Depot(setup.folders, setup.number)
    workshop = None
    servers: dict[int, Any] = {}
    while True:
        order: Order[Parcel] = pickle.load(orders)  # noqa: S301 - the driver's own words
        try:
            workshop = workshop or setup.build(setup.settings, depot.borrow(setup.tensors))
            servers = {
                version: servers[version] if version in servers else depot.get(parcel)
                for version, parcel in order.servers.items()
            }
            bundles = worked(workshop, setup.trainer, order, servers, depot.get(order.states))
            answer: Answer = depot.put([vars(bundle) for bundle in bundles])
        except Exception as error:  # noqa: BLE001 - whatever a job raises is the driver's to tell
            answer = failure(error)
        pickle.dump(answer, answers)
        answers.flush()
