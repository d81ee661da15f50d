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
from edgefl.compute.remote import Failed, Order, Refused, failure, work
from edgefl.compute.tensor_store import TensorFile, TensorStore
from edgefl.core import fresh


class Setup(NamedTuple):
    """The first message to a worker.

    Attributes:
        name: what its files' names begin with.
        folders: where tensor files lie.
        build: see ``BuilderSpec``.
        settings: see ``BuilderSpec``.
        tensors: where the shared tensors lie.
        trainer: how it trains.
    """

    name: str
    folders: tuple[Path, ...]
    build: Any
    settings: Any
    tensors: TensorFile
    trainer: Trainer


# Its answer: where the outcomes lie, or why there are none.
Answer = TensorFile | Failed | Refused


def main() -> None:
    """Works until its input ends."""
    # The driver handles Ctrl-C and the end of the process group: a worker ends when the driver does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    answers = fresh.answers()
    torch.set_num_threads(1)
    keep_freed_memory()
    setup: Setup = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own driver
    try:
        _serve(setup, sys.stdin.buffer, answers)
    except (EOFError, OSError, pickle.UnpicklingError):
        # The driver is gone, perhaps in the middle of a message and without cleaning up.
        removed(setup.folders)
    # An ordinary exit would try to flush what the driver did not read.
    os._exit(0)


def _serve(setup: Setup, orders: BinaryIO, answers: BinaryIO) -> None:
    store = TensorStore(setup.folders, setup.name)
    builder = None
    servers: dict[int, Any] = {}
    while True:
        order: Order[TensorFile] = pickle.load(orders)  # noqa: S301 - from our own driver
        try:
            builder = builder or setup.build(setup.settings, store.borrow(setup.tensors))
            servers = {
                version: servers[version] if version in servers else store.get(file)
                for version, file in order.servers.items()
            }
            outcomes = work(builder, setup.trainer, order, servers, store.get(order.states))
            answer: Answer = store.put(outcomes)
        except BaseException as error:  # noqa: BLE001 - whatever a job raises, the driver reports
            answer = failure(error)
        pickle.dump(answer, answers)
        answers.flush()
