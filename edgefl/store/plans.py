"""A run's plan as rows, and read back: what the world needs to repeat or continue the run."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from edgefl.core.arrays import Ints
from edgefl.core.clients import NAMED, Clients
from edgefl.core.corners import CORNERS
from edgefl.core.cost import Traced, as_text, of_text
from edgefl.core.devices import AnyBoard, Battery, Throttling
from edgefl.core.errors import UserError
from edgefl.core.fleet import Fleet
from edgefl.core.merging import MergeTrace, ServerWork
from edgefl.core.plan import Assumption, Plan, Prices, Refusal
from edgefl.core.price import COLUMNS, Demand
from edgefl.core.scenario import Scenario, as_given
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.store.reader import Reader


def plan_rows(
    plan: Plan, test_samples: Iterable[int], class_counts: Ints | None
) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """What is known of a run before it starts, see ``Store.write_plan``: tables and rows of them."""
    clients = plan.clients
    kinds = clients.one_of_each_kind()
    named = [[getattr(kinds, f"{key}s")[place] for place in getattr(kinds, key)] for key in NAMED]
    yield "kinds", zip(kinds.kind.tolist(), *named, kinds.samples.tolist(), strict=True)
    kind, slowdown = clients.kind.tolist(), clients.slowdown.tolist()
    own = (range(len(clients)), kind, test_samples, slowdown, clients.admitted.astype(int).tolist())
    cells = (None if cell < 0 else cell for cell in clients.cell.tolist())
    users = (None if user == client else user for client, user in enumerate(clients.user.tolist()))
    yield "fleet", zip(*own, cells, users, strict=True)
    yield "cells", enumerate(clients.cells)
    yield (
        "refused_kinds",
        [
            (kind, one.exchange, one.needs_bytes, one.has_bytes, json.dumps(dict(one.parts)), one.reason)
            for kind, one in plan.refusals.items()
        ],
    )
    for place, prices in enumerate(plan.prices):
        facts = (prices.at, prices.every, int(prices.everyone), int(prices.stateful))
        yield "exchanges", [(prices.exchange, place, *facts)]
        yield "prices", _price_rows(prices.demand, prices.exchange)
        for corner, one in zip(CORNERS, prices.corners or (), strict=False):
            yield "corner_prices", _price_rows(one, prices.exchange, corner)
        if prices.traces:
            yield "traces", [(prices.exchange, as_text(Traced(prices.traces, prices.taken)))]
        for model, trace in dict(zip(clients.models, prices.traces, strict=True)).items():
            for direction, parts in (("down", trace.down), ("up", trace.up)):
                key = prices.exchange, model, direction
                yield "payloads", [(*key, part, size) for part, size in parts.items()]
    if plan.server_work is not None:
        yield "server_work", [(name, as_text(one)) for name, one in plan.server_work.traces.items()]
    if class_counts is not None:
        where = np.nonzero(class_counts)
        columns = (*where, class_counts[where])
        yield "class_counts", zip(*(column.tolist() for column in columns), strict=True)


def _price_rows(demand: Demand, exchange: str, *key: str) -> Iterator[tuple[Any, ...]]:
    """By kind. SQLite stores NaN as NULL, so an unknown number is read back as None."""
    values = zip(*(column.tolist() for column in demand), strict=True)
    return ((exchange, kind, *key, *row) for kind, row in enumerate(values))


def read_plan(reader: Reader) -> Plan:
    """The plan of a run, with its traces; a ``UserError`` if a policy or selector that it names is gone."""
    document, resolved = reader.document, reader.document.data
    scenario = validate(Scenario, as_given(resolved["scenario"]), document, ["scenario"])
    scenario = scenario.model_copy(update={"name": reader.meta["name"]})
    clients = _clients(reader, resolved["devices"], document)
    prices = []
    for one in read_prices(reader):
        traced = read_traced(reader, one.exchange)
        prices.append(replace(one, traces=traced.traces, taken=traced.steps) if traced else one)
    facts = ("device", "exchange", "needs_bytes", "has_bytes", "reason")
    refused = {
        row["kind"]: Refusal(parts=json.loads(row["parts"]), **{key: row[key] for key in facts})
        for row in reader.query("SELECT * FROM refused_kinds JOIN kinds USING (kind)")
    }
    server_work, device = None, scenario.server.device
    if device is not None:
        board = validate(AnyBoard, resolved["server_device"], document, ["server_device"])
        rows = reader.rows("server_work", "exchange")
        traces = {row["exchange"]: of_text(MergeTrace, row["content"]) for row in rows}
        server_work = ServerWork(device, board, traces)
    of = reader.meta.get("assumptions", {})
    return Plan(
        scenario=scenario,
        clients=clients,
        prices=tuple(prices),
        fleet=validate(Fleet, resolved["fleet"], document, ["fleet"]),
        refusals=refused,
        assumed=tuple(Assumption(*of[line]) if line in of else line for line in reader.meta["assumed"]),
        server_work=server_work,
    )


def _clients(reader: Reader, devices: Mapping[str, Any], document: Document) -> Clients:
    kinds = reader.rows("kinds", "kind")
    fleet = reader.arrays(
        "SELECT kind, slowdown, admitted, COALESCE(cell, -1) AS cell, COALESCE(user, client) AS user "
        "FROM fleet ORDER BY client",
        kind=np.int64,
        slowdown=np.float64,
        admitted=np.bool_,
        cell=np.int64,
        user=np.int64,
    )
    columns: dict[str, Any] = {"samples": [row["samples"] for row in kinds]}
    columns["cells"] = tuple(row["name"] for row in reader.rows("cells", "cell"))
    for key in NAMED:
        known = columns[f"{key}s"] = tuple(dict.fromkeys(row[key] for row in kinds))
        columns[key] = [known.index(row[key]) for row in kinds]
    for key in ("samples", *NAMED):
        columns[key] = np.array(columns[key], dtype=np.int64)[fleet["kind"]]
    for key, part, record in (("batteries", "battery", Battery), ("throttling", "throttling", Throttling)):
        columns[key] = tuple(
            validate(record, data, document, ["devices", name, part])
            if (data := devices[name][part]) is not None
            else None
            for name in columns["devices"]
        )
    return Clients(**(columns | fleet))


def read_traced(reader: Reader, exchange: str) -> Traced | None:
    """An exchange's traces, and the steps of each kind of client; None where the plan has none."""
    rows = reader.query("SELECT content FROM traces WHERE exchange = ?", exchange)
    try:
        return of_text(Traced, rows[0]["content"]) if rows else None
    except ValueError as error:
        what = f"the trace of {exchange} is damaged"
        raise UserError(f"{reader.meta['name']}: {what}", where=reader.where) from error


def read_prices(reader: Reader) -> tuple[Prices, ...]:
    """The prices of a run, by exchange in the method's order, without their traces."""
    found = []
    for row in reader.rows("exchanges", "place"):
        name = row["exchange"]
        demand = _demand(reader.query("SELECT * FROM prices WHERE exchange = ? ORDER BY kind", name))
        sql = "SELECT * FROM corner_prices WHERE exchange = ? AND corner = ? ORDER BY kind"
        cheap, costly = (_demand(reader.query(sql, name, corner)) for corner in CORNERS)
        one = Prices(
            exchange=name,
            at=row["at"],
            every=row["every"],
            everyone=bool(row["everyone"]),
            stateful=bool(row["stateful"]),
            demand=demand,
            corners=(cheap, costly) if len(cheap.steps) and len(costly.steps) else None,
        )
        found.append(one)
    return tuple(found)


def _demand(rows: list[dict[str, Any]]) -> Demand:
    """What each kind of client is asked for, of rows in the order of kinds."""
    return Demand(*(np.array([row[key] for row in rows], dtype=kind) for key, kind in COLUMNS.items()))
