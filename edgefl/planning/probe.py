"""A scenario's exchange as something that ``edgefl.compute.measured`` can do in a fresh process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgefl.compute.measured import Piece, measure
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
) -> dict[str, Any]:
    """One client's share of an exchange, really done; see ``edgefl.compute.measured.measure``.

    Args:
        spec: what is trained, its batch size a number; the data's files are not needed.
        exchange: the exchange's name.
        model: the place of the client's model among the scenario's.
        samples: how many the client has.
        device: torch's.
        limit: the most steps to take in each phase; None is all.

    Raises:
        RunError: the measuring process failed.
    """
    settings = {"learning": spec.resolved(), "exchange": exchange, "model": model, "samples": samples}
    return measure(piece, settings, device=device, limit=limit)


def piece(settings: Mapping[str, Any]) -> Piece:
    """The work, in the process that does it.

    Args:
        settings: "learning", resolved; "exchange"; "model"; "samples".
    """
    spec, document = LearningSpec.of_resolved(settings["learning"], "scenario")
    learning = learn_from(spec, document, data_of(spec, document, DataAccess(need="nothing")))
    method = learning.methods[settings["model"]]
    (exchange,) = (one for one in method.exchanges if one.name == settings["exchange"])
    net = learning.nets[settings["model"]]
    return Piece(net, method, exchange, settings["samples"], spec.local.size, spec.local.optimizer.lr)
