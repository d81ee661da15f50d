"""Reads a run's plan back: what the world needs to repeat or continue the run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from edgefl.core.components import resolve
from edgefl.core.fleet import Fleet
from edgefl.core.plan import COLUMNS, Clients, Plan, Prices, Refusal
from edgefl.core.scenario import Scenario
from edgefl.core.yamls import validate
from edgefl.store.reader import Reader


def read_plan(reader: Reader) -> Plan:
    """The plan of a run; its prices have no traces, which the world does not need.

    Raises:
        UserError: a file or a row is damaged, or a policy or selector that it names is gone.
    """
    document = reader.document()
    resolved = reader.resolved()
    scenario = validate(Scenario, resolved["scenario"], document, ["scenario"])
    scenario = scenario.model_copy(update={"name": reader.meta["name"]})
    server, path = scenario.server, ["scenario", "server"]
    return Plan(
        scenario=scenario,
        clients=_clients(reader.rows("clients", "client")),
        prices=tuple(_prices(reader, row) for row in reader.rows("exchanges", "place")),
        refusals=tuple(_refusal(row) for row in reader.rows("refusals", "client")),
        jitter=validate(Fleet, resolved["fleet"], document, ["fleet"]).jitter,
        policy=resolve("policies", server.policy, document, [*path, "policy"])[1],
        selector=resolve("selectors", server.selector, document, [*path, "selector"])[1],
        assumed=tuple(reader.meta["assumed"]),
    )


def _clients(rows: Sequence[dict[str, Any]]) -> Clients:
    names = {
        key: tuple(dict.fromkeys(row[key] for row in rows)) for key in ("device", "link", "dtype", "model")
    }
    places = {
        key: np.array([known.index(row[key]) for row in rows], dtype=np.int64) for key, known in names.items()
    }
    return Clients(
        **places,
        samples=np.array([row["samples"] for row in rows], dtype=np.int64),
        slowdown=np.array([row["slowdown"] for row in rows], dtype=np.float64),
        admitted=np.array([row["admitted"] for row in rows], dtype=bool),
        devices=names["device"],
        links=names["link"],
        dtypes=names["dtype"],
        models=names["model"],
    )


def _prices(reader: Reader, exchange: dict[str, Any]) -> Prices:
    name = exchange["exchange"]
    rows = reader.query("SELECT * FROM prices WHERE exchange = ? ORDER BY client", name)
    return Prices(
        exchange=name,
        at=exchange["at"],
        every=exchange["every"],
        everyone=bool(exchange["everyone"]),
        stateful=bool(exchange["stateful"]),
        **{key: column([row[key] for row in rows]) for key, column in COLUMNS.items()},
    )


def _refusal(row: dict[str, Any]) -> Refusal:
    return Refusal(**{**row, "parts": json.loads(row["parts"])})
