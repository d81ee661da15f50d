"""An exchange as work that ``edgefl.compute.measured`` can run in a fresh process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgefl.compute.measured import ClientWork, measure
from edgefl.core.measurement import MeasuredExchange
from edgefl.core.scenario import LearningSpec
from edgefl.planning.learning import DataAccess, data_of, learn_from


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
    return ClientWork(net, method, exchange, samples, spec.local.size, spec.local.optimizer.lr)
