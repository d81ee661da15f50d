"""The real work of an exchange, run once on this host, beside what the model says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Generator, Tensor

from edgefl.compute.measured import ClientWork, measure
from edgefl.core.measurement import MeasuredExchange
from edgefl.core.scenario import LearningSpec
from edgefl.data import prepared
from edgefl.planning.costs import ExchangeCost, Measured, Ratios
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.memory import memory_check
from edgefl.protocol import Phase

# Steps of one size take the same time and memory.
_MOST_STEPS = 10


def measured(learning: Learning, cost: ExchangeCost, model: int) -> Measured:
    """One client's share run on this host, and the model's figures over the measured ones.

    Memory is the traced peak over what the work added to a fresh process. Time is a device's compute time
    over this host's on one thread: near 1 for a device that was calibrated here.

    Raises:
        RunError: the measuring process failed.
    """
    host = measured_exchange(
        learning.spec, cost.exchange, model=model, samples=cost.samples, limit=_MOST_STEPS
    )
    done = host.steps / cost.steps if cost.steps else 1.0
    added, seconds = host.added_bytes, host.cpu_s
    times = {
        row.device: row.price.compute_s * done / seconds
        for row in cost.devices
        if row.price and row.price.compute_s and seconds
    }
    predicted = sum(cost.peak.values())
    return Measured(
        memory=memory_check(predicted, added, cost.devices),
        figures=host,
        modelled_over_measured=Ratios(predicted / added if added else None, times),
    )


def measured_exchange(
    spec: LearningSpec,
    exchange: str,
    *,
    model: int = 0,
    samples: int,
    device: str = "cpu",
    limit: int | None = None,
) -> MeasuredExchange:
    """Runs one client's share of an exchange and measures it; see ``edgefl.compute.measured.measure``.

    Args:
        spec: what is trained, its batch size a number; the data's files are not needed.
        exchange: the exchange's name.
        model: the index of the client's model among the scenario's.
        samples: the client's number of samples.
        device: the torch device.
        limit: the maximum number of steps in each phase; None for all.

    Raises:
        RunError: the measuring process failed.
    """
    return measure(client_work, spec.resolved(), exchange, model, samples, device=device, limit=limit)


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

    def prepare(phase: Phase, images: Tensor, generator: Generator) -> Tensor:
        return prepared(learning.federation.spec, phase, learning.augment(phase), images, generator)

    return ClientWork(net, method, exchange, samples, spec.local.size, spec.local.optimizer.lr, prepare)
