"""The real work of an exchange, run once on this host, beside what the model says of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from edgefl.compute.measured import ClientWork, measure
from edgefl.core import catalogue
from edgefl.core.cost import Work
from edgefl.core.devices import TRACED, Board
from edgefl.core.errors import UserError
from edgefl.core.host import machine_title
from edgefl.core.measurement import MeasuredExchange
from edgefl.core.notes import note
from edgefl.core.scenario import LearningSpec
from edgefl.data import prepared
from edgefl.planning.costs import ExchangeCost, Measured, TimeCheck
from edgefl.planning.fleets import device
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.memory import memory_check
from edgefl.protocol import Phase

# Steps of one size take the same time and memory.
_MOST_STEPS = 10
_LAPTOP = "laptop-cpu"


def measured(
    learning: Learning,
    cost: ExchangeCost,
    model: int,
    work: Work,
    what: Collection[str],
    boards: Mapping[str, Board],
) -> Measured:
    """One client's share run on this host, beside the model's figures.

    Args:
        learning: what is trained.
        cost: one exchange's.
        model: the index of the client's model.
        work: the exchange's on it.
        what: "memory" compares the traced peak with what the work added to a fresh process, "time" a step.
        boards: the devices to compare times with, by name.

    Raises:
        RunError: the measuring process failed.
    """
    host = measured_exchange(
        learning.spec, cost.exchange, model=model, samples=cost.samples, limit=_MOST_STEPS
    )
    peak = sum(cost.peak.values())
    return Measured(
        figures=host,
        memory=memory_check(peak, host.added_bytes, cost.devices) if "memory" in what else None,
        time=_time_check(host, cost.steps, work, boards) if "time" in what and host.steps else None,
    )


def _time_check(host: MeasuredExchange, steps: int, work: Work, boards: Mapping[str, Board]) -> TimeCheck:
    """A step's time; devices without a figure for fp32, or a number, have none."""
    predicted = {}
    for name, board in boards.items():
        with suppress(UserError):
            predicted[name] = board.clock(name, TRACED).time(work).seconds / steps
    seconds = host.cpu_s / host.steps
    return TimeCheck(seconds, predicted, {name: one / seconds - 1 for name, one in predicted.items()})


def machines() -> dict[str, Board]:
    """The devices that were calibrated on this machine, by name; the laptop, with a note, if none was."""
    title, shipped = machine_title(), catalogue.shipped("devices")
    own = [one for one in catalogue.entries("devices").values() if not one.path.is_relative_to(shipped)]
    names = [one.name for one in own if catalogue.summary(one) == title]
    if not names:
        note(f"no device was calibrated on this machine, so {_LAPTOP} stands for it: edgefl calibrate NAME")
    return {name: device(name) for name in names or [_LAPTOP]}


def measured_exchange(
    spec: LearningSpec,
    exchange: str,
    *,
    model: int = 0,
    samples: int,
    limit: int | None = None,
) -> MeasuredExchange:
    """Runs one client's share of an exchange and measures it; see ``edgefl.compute.measured.measure``.

    Args:
        spec: what is trained, its batch size a number; the data's files are not needed.
        exchange: the exchange's name.
        model: the index of the client's model among the scenario's.
        samples: the client's number of samples.
        limit: the maximum number of steps in each phase; None for all.

    Raises:
        RunError: the measuring process failed.
    """
    return measure(client_work, spec.resolved(), exchange, model, samples, limit=limit)


def client_work(resolved: Mapping[str, Any], exchange_name: str, model: int, samples: int) -> ClientWork:
    """The work, in the process that runs it.

    Args:
        resolved: the resolved ``LearningSpec``.
        exchange_name: see ``measured_exchange``, as for the others.
        model: the index of the client's model.
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
