"""The real work of an exchange, run once on this host, beside what the model says of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from edgefl.compute.measured import ClientWork, measure
from edgefl.core import catalogue
from edgefl.core.cost import Work
from edgefl.core.devices import TRACED, Board
from edgefl.core.errors import UserError
from edgefl.core.host import machine_title
from edgefl.core.notes import note
from edgefl.core.scenario import LearningSpec
from edgefl.data import prepared
from edgefl.planning.costs import Row
from edgefl.planning.fleets import device
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.memory import memory_check
from edgefl.protocol import Phase

# Steps of one size take the same time and memory.
_MOST_STEPS = 10
_LAPTOP = "laptop-cpu"


def measured(
    learning: Learning,
    work: Row,
    model: int,
    rows: Sequence[Row],
    kernels: Work,
    what: Collection[str],
    boards: Mapping[str, Board],
) -> dict[str, Any]:
    """One client's share run on this host: the figures of ``MeasuredExchange``, and those of the model.

    These are under ``memory``, see ``memory_check``, and ``time``, where there are steps: a step's time on
    one thread of this host, the mean over all; by device the predicted one in fp32, and its error, predicted
    over measured, less 1. Devices without a figure for fp32, or a number, have none.

    Args:
        learning: what is trained.
        work: of an exchange on a model.
        model: the model's index.
        rows: what it costs on each device.
        kernels: the exchange's on the model.
        what: "memory" compares the traced peak with what the work added to a fresh process, "time" a step.
        boards: the devices to compare times with, by name.

    Raises:
        RunError: the measuring process failed.
    """
    given = learning.spec.resolved(), work["exchange"], model, work["samples"]
    host = measure(client_work, *given, limit=_MOST_STEPS)
    found = asdict(host)
    if "memory" in what:
        found["memory"] = memory_check(sum(work["peak"].values()), host.added_bytes, rows)
    if "time" in what and host.steps:
        step_s, predicted_s = host.cpu_s / host.steps, dict[str, float]()
        for name, board in boards.items():
            with suppress(UserError):
                predicted_s[name] = board.clock(name, TRACED).time(kernels).seconds / work["steps"]
        errors = {name: one / step_s - 1 for name, one in predicted_s.items()}
        found["time"] = {"measured_s": step_s, "predicted_s": predicted_s, "errors": errors}
    return found


def machines() -> dict[str, Board]:
    """The devices that were calibrated on this machine, by name; the laptop, with a note, if none was."""
    title, shipped = machine_title(), catalogue.shipped("devices")
    own = [one for one in catalogue.entries("devices").values() if not one.path.is_relative_to(shipped)]
    names = [one.name for one in own if catalogue.summary(one) == title]
    if not names:
        note(f"no device was calibrated on this machine, so {_LAPTOP} stands for it: edgefl calibrate NAME")
    return {name: device(name) for name in names or [_LAPTOP]}


def client_work(resolved: Mapping[str, Any], exchange_name: str, model: int, samples: int) -> ClientWork:
    """The work, in the process that runs it.

    Args:
        resolved: the resolved ``LearningSpec``, its batch size a number; the data's files are not needed.
        exchange_name: the exchange's name.
        model: the index of the client's model among the scenario's.
        samples: the client's number of samples.
    """
    spec, document = LearningSpec.of_resolved(resolved, "scenario")
    learning = learn_from(spec, document, data_of(spec, document, DataAccess(need="nothing")))
    method, net = learning.methods[model], learning.nets[model]
    (exchange,) = (one for one in method.exchanges if one.name == exchange_name)

    def prepare(phase: Phase, size: int, generator: torch.Generator) -> Tensor:
        data = learning.federation.spec
        shape = size, *data.shape
        x = torch.rand(shape) if data.signals else torch.randint(256, shape, dtype=torch.uint8)
        return prepared(data, phase, learning.augment(phase), x, generator)

    return ClientWork(net, method, exchange, samples, spec.local.size, spec.local.optimizer.lr, prepare)
