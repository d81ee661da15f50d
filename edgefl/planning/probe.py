"""A scenario's exchange as something that ``edgefl.compute.measured`` can do in a fresh process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgefl.compute.measured import Piece, measure
from edgefl.core.scenario import Draft, load
from edgefl.core.yamls import Document, dump
from edgefl.planning.learning import DataAccess, data_of, learn_from


def measured_exchange(
    draft: Draft,
    exchange: str,
    *,
    model: int = 0,
    samples: int,
    device: str = "cpu",
    limit: int | None = None,
) -> dict[str, Any]:
    """One client's share of an exchange, really done; see ``edgefl.compute.measured.measure``.

    Args:
        draft: the scenario, its batch size a number; neither its data's files nor its fleet are needed.
        exchange: the exchange's name.
        model: the place of the client's model among the scenario's.
        samples: how many the client has.
        device: torch's.
        limit: the most steps to take in each phase; None is all.

    Raises:
        RunError: the measuring process failed.
    """
    # Who has which device is no part of the work.
    scenario = {**draft.scenario.resolved(), "fleet": "none"}
    settings = {"scenario": scenario, "exchange": exchange, "model": model, "samples": samples}
    return measure(piece, settings, device=device, limit=limit)


def piece(settings: Mapping[str, Any]) -> Piece:
    """The work, in the process that does it.

    Args:
        settings: "scenario", resolved, as plain data; "exchange"; "model"; "samples".
    """
    (draft,) = load(Document.parse(dump(dict(settings["scenario"])), "scenario"))
    learning = learn_from(draft, data_of(draft, DataAccess(need="nothing")))
    method = learning.methods[settings["model"]]
    (exchange,) = (one for one in method.exchanges if one.name == settings["exchange"])
    local = draft.scenario.local
    net = learning.nets[settings["model"]]
    return Piece(net, method, exchange, settings["samples"], local.size, local.optimizer.lr)
