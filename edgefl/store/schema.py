"""The tables of ``run.sqlite``; ``events``, ``clients`` and ``refusals`` are views."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from edgefl.core.event import JOB, TAIL
from edgefl.core.plan import COLUMNS as PRICES

FORMAT = 17


def _of(dtype: np.dtype[Any], **others: str) -> str:
    """The columns of a table of a dtype's rows; ``others`` are those that are not stored as they are."""
    kinds = {"i": "INTEGER NOT NULL", "f": "REAL"}
    names = dtype.names or ()
    return ", ".join(f"{name} {others.get(name) or kinds[dtype[name].kind]}" for name in names)


_JOBS = _of(
    JOB, job="INTEGER PRIMARY KEY", exchange="TEXT NOT NULL", ending="TEXT NOT NULL", into_version="INTEGER"
)
_TAILS = _of(TAIL, client="INTEGER PRIMARY KEY")
_PRICES = ", ".join(f"{name} {'REAL' if kind is np.float64 else 'INTEGER'}" for name, kind in PRICES.items())

TABLES_SQL = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE kinds (
  kind INTEGER PRIMARY KEY, device TEXT NOT NULL, link TEXT NOT NULL, dtype TEXT NOT NULL,
  model TEXT NOT NULL, samples INTEGER NOT NULL);
CREATE TABLE fleet (
  client INTEGER PRIMARY KEY, kind INTEGER NOT NULL, test_samples INTEGER NOT NULL, slowdown REAL NOT NULL,
  admitted INTEGER NOT NULL, cell INTEGER, user INTEGER);
CREATE TABLE cells (cell INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE class_counts (
  client INTEGER NOT NULL, label INTEGER NOT NULL, samples INTEGER NOT NULL);
CREATE TABLE refused_kinds (
  kind INTEGER PRIMARY KEY, exchange TEXT NOT NULL, needs_bytes INTEGER NOT NULL, has_bytes INTEGER,
  parts TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE exchanges (
  exchange TEXT PRIMARY KEY, place INTEGER NOT NULL, at TEXT NOT NULL, every INTEGER NOT NULL,
  everyone INTEGER NOT NULL, stateful INTEGER NOT NULL);
CREATE TABLE prices (
  exchange TEXT NOT NULL, kind INTEGER NOT NULL, {_PRICES}, PRIMARY KEY (exchange, kind));
CREATE TABLE corner_prices (
  exchange TEXT NOT NULL, kind INTEGER NOT NULL, corner TEXT NOT NULL, {_PRICES},
  PRIMARY KEY (exchange, kind, corner));
CREATE TABLE traces (exchange TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE payloads (
  exchange TEXT NOT NULL, model TEXT NOT NULL, direction TEXT NOT NULL, part TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (exchange, model, direction, part));
CREATE TABLE jobs ({_JOBS}, scalars TEXT);
CREATE TABLE settled_tails ({_TAILS});
CREATE TABLE server_events (
  turn INTEGER PRIMARY KEY, t_s REAL NOT NULL, kind TEXT NOT NULL, exchange TEXT NOT NULL,
  round INTEGER NOT NULL, client INTEGER NOT NULL, version INTEGER NOT NULL);
CREATE TABLE merges (
  version INTEGER PRIMARY KEY, exchange TEXT NOT NULL, round INTEGER NOT NULL, t_s REAL NOT NULL,
  jobs INTEGER NOT NULL, slowest_client INTEGER, loss REAL, host_s REAL NOT NULL,
  server_uploads INTEGER, server_seconds REAL, server_flops INTEGER, server_moved_bytes INTEGER,
  server_joules REAL, server_peak_bytes INTEGER);
CREATE TABLE server_work (exchange TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE evaluations (
  version INTEGER NOT NULL, round INTEGER NOT NULL, t_s REAL NOT NULL, model TEXT NOT NULL,
  accuracy REAL NOT NULL, loss REAL NOT NULL, spread REAL, clients INTEGER, untrained INTEGER,
  down_bytes INTEGER NOT NULL,
  up_bytes INTEGER NOT NULL, joules REAL, energy_known INTEGER NOT NULL, energy_clients INTEGER NOT NULL,
  host_s REAL NOT NULL, PRIMARY KEY (version, model));
CREATE TABLE client_evaluations (
  version INTEGER NOT NULL, client INTEGER NOT NULL, accuracy REAL NOT NULL, samples INTEGER NOT NULL,
  PRIMARY KEY (version, client));
CREATE TABLE measures (
  version INTEGER NOT NULL, round INTEGER NOT NULL, measure TEXT NOT NULL, figure TEXT NOT NULL,
  model TEXT NOT NULL, client INTEGER, label TEXT NOT NULL, value REAL NOT NULL);
CREATE TABLE versions (
  version INTEGER PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL);
CREATE TABLE states (
  job INTEGER PRIMARY KEY, client INTEGER NOT NULL, file TEXT NOT NULL, sha256 TEXT NOT NULL,
  checkpoint INTEGER NOT NULL);
CREATE INDEX states_by_client ON states (client);
CREATE INDEX states_by_checkpoint ON states (checkpoint);
CREATE TABLE outcomes (
  outcome INTEGER PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE checkpoints (
  checkpoint INTEGER PRIMARY KEY, needs INTEGER NOT NULL, version INTEGER NOT NULL,
  evaluated INTEGER NOT NULL, regular INTEGER NOT NULL, round INTEGER NOT NULL, t_s REAL NOT NULL,
  best INTEGER, events TEXT NOT NULL, versions TEXT NOT NULL, outcomes TEXT NOT NULL,
  content TEXT NOT NULL);
CREATE TABLE plan (content TEXT NOT NULL);
"""

_COLUMNS = (
    "t_s", "kind", "exchange", "round", "client", "job", "version",
    "seconds", "down_bytes", "up_bytes", "flops", "joules", "tail_j", "idle_j",
)  # fmt: skip
_FREE = "0.0, 0, 0, 0, 0.0, 0.0, 0.0"
# At one time come first the stations of jobs under way, in the order of stations and of jobs; then what the
# server does, turn by turn, each turn with the stations at once of the jobs that it dispatches.
_AT_ONCE = "CASE WHEN {time} = dispatched_s THEN dispatched_turn ELSE 0 END"


def _events(time: str, kind: str, cost: str, where: str, turn: str, rank: int) -> str:
    """One event a job, for the jobs that ``where`` chooses."""
    return (
        f"SELECT {time}, {kind}, exchange, round, client, job, version, {cost}, "  # noqa: S608 - our own names
        f"{turn.format(time=time)}, {rank} FROM jobs WHERE {where}"
    )


_ENDED = "CASE WHEN ended_turn THEN ended_turn ELSE " + _AT_ONCE + " END"


def _stage(rank: int, before: str, station: str, stage: str, quantities: str, tail: str) -> Iterator[str]:
    """The events that charge a stage: the station after it, or the job's end if that came first."""
    cost = f"{stage}_s, {quantities}, {stage}_j + {tail} + {stage}_idle_j, {tail}, {stage}_idle_j"
    time = f"{station}_s"
    yield _events(time, f"'{station}'", cost, f"{time} IS NOT NULL", _AT_ONCE, rank)
    yield _events("ended_s", "ending", cost, f"{time} IS NULL AND {before}_s IS NOT NULL", _ENDED, 4)


# After all else that happens at a time.
_SETTLED = (
    "SELECT t_s, 'settled', exchange, round, client, job, version, "  # noqa: S608 - our own names
    f"0.0, 0, 0, 0, joules, joules, 0.0, {2**62}, 5 FROM settled_tails JOIN jobs USING (client, job)"
)
_SOURCES = (
    f"SELECT t_s, kind, exchange, round, client, -1, version, {_FREE}, turn, 0 FROM server_events",  # noqa: S608 - our own names
    _events("dispatched_s", "'dispatched'", _FREE, "TRUE", "dispatched_turn", 0),
    *_stage(1, "dispatched", "received", "receive", "down_bytes, 0, 0", "earlier_tail_j"),
    *_stage(2, "received", "worked", "work", "0, 0, flops", "work_tail_j"),
    *_stage(3, "worked", "arrived", "transmit", "0, up_bytes, 0", "0.0"),
    _events("ended_s", "ending", _FREE, "arrived_s IS NOT NULL AND into_version IS NULL", _ENDED, 4),
    _SETTLED,
)
_EVENT = ", ".join(_COLUMNS)
EVENTS_SQL = (
    f"CREATE VIEW events (seq, {_EVENT}) AS "  # noqa: S608 - our own names
    f"WITH every ({_EVENT}, turn, place) AS ({' UNION ALL '.join(_SOURCES)}) "
    f"SELECT ROW_NUMBER() OVER (ORDER BY t_s, turn, place, job) - 1, {_EVENT} FROM every"
)

CLIENTS_SQL = """
CREATE VIEW clients AS
  SELECT client, device, link, dtype, model, samples, test_samples, slowdown, admitted, kind
  FROM fleet JOIN kinds USING (kind);
CREATE VIEW refusals AS
  SELECT client, device, exchange, needs_bytes, has_bytes, parts, reason
  FROM fleet JOIN kinds USING (kind) JOIN refused_kinds USING (kind);
"""

SCHEMA_SQL = f"{TABLES_SQL} {EVENTS_SQL}; {CLIENTS_SQL}"
TABLES = tuple(re.findall(r"CREATE (?:TABLE|VIEW) (\w+)", SCHEMA_SQL))


VIEWS = re.findall(r"CREATE VIEW (\w+)", SCHEMA_SQL)


def schema_of(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    """The definitions of a database's tables and views."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name")
    return [tuple(row) for row in rows]


# What SQLite says of a view's columns depends on its version. These of ``events`` no table has, or not so.
_EVENT_TYPES = {"seq": "INTEGER", "kind": "TEXT", "seconds": "REAL", "tail_j": "REAL", "idle_j": "REAL"}


def _read_back() -> tuple[list[tuple[str, ...]], dict[str, dict[str, str]]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA_SQL)
        found = schema_of(database)
        columns = {
            table: {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")}
            for table in TABLES
        }
    tables = {
        name: kind
        for table in reversed(TABLES)
        if table not in VIEWS
        for name, kind in columns[table].items()
    }
    for view in VIEWS:
        own = _EVENT_TYPES if view == "events" else {}
        columns[view] = {name: own.get(name) or tables[name] for name in columns[view]}
    return found, columns


# What ``schema_of`` says of a run; the columns of each table and view with their types, and of tables alone.
SCHEMA, COLUMNS = _read_back()
STORED = {table: columns for table, columns in COLUMNS.items() if table not in VIEWS}
