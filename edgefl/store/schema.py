"""The tables of ``run.sqlite``; ``events``, ``clients`` and ``refusals`` are views."""

import sqlite3
from contextlib import closing
from typing import Any

import numpy as np

from edgefl.core.event import JOB, TAIL
from edgefl.core.price import COLUMNS as PRICES

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

SCHEMA_SQL = f"""
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
CREATE TABLE outcomes (
  outcome INTEGER PRIMARY KEY, file TEXT NOT NULL, sha256 TEXT NOT NULL, content TEXT NOT NULL);
CREATE TABLE checkpoints (
  checkpoint INTEGER PRIMARY KEY, needs INTEGER NOT NULL, version INTEGER NOT NULL,
  evaluated INTEGER NOT NULL, regular INTEGER NOT NULL, round INTEGER NOT NULL, t_s REAL NOT NULL,
  best INTEGER, events TEXT NOT NULL, versions TEXT NOT NULL, outcomes TEXT NOT NULL,
  content TEXT NOT NULL);
CREATE TABLE plan (content TEXT NOT NULL);
CREATE VIEW clients AS
  SELECT client, device, link, dtype, model, samples, test_samples, slowdown, admitted, kind
  FROM fleet JOIN kinds USING (kind);
CREATE VIEW refusals AS
  SELECT client, device, exchange, needs_bytes, has_bytes, parts, reason
  FROM fleet JOIN kinds USING (kind) JOIN refused_kinds USING (kind);
"""  # noqa: S608 - our own names

# What SQLite says of the types of a view's columns depends on its version.
_EVENTS = {
    "t_s": "REAL", "kind": "TEXT", "exchange": "TEXT", "round": "INTEGER", "client": "INTEGER",
    "job": "INTEGER", "version": "INTEGER", "seconds": "REAL", "down_bytes": "INTEGER",
    "up_bytes": "INTEGER", "flops": "INTEGER", "joules": "REAL", "tail_j": "REAL", "idle_j": "REAL",
}  # fmt: skip
_EVENT = ", ".join(_EVENTS)
# A stage is charged at the station after it, or at the job's end if that came first.
# At one time come first the stations of jobs under way, in the order of stations and of jobs; then what the
# server does, turn by turn, each turn with the stations at once of the jobs that it dispatches; then tails.
SCHEMA_SQL += f"""
CREATE VIEW events (seq, {_EVENT}) AS
  WITH stages AS (
    SELECT *, 1 AS place, 'received' AS station, dispatched_s AS since_s, received_s AS at_s,
      receive_s AS s, down_bytes AS down, 0 AS up, 0 AS work, receive_j AS j, earlier_tail_j AS tail_j,
      receive_idle_j AS idle_j FROM jobs
    UNION ALL
    SELECT *, 2, 'worked', received_s, worked_s,
      work_s, 0, 0, flops, work_j, work_tail_j, work_idle_j FROM jobs
    UNION ALL
    SELECT *, 3, 'arrived', worked_s, arrived_s,
      transmit_s, 0, up_bytes, 0, transmit_j, 0.0, transmit_idle_j FROM jobs
    UNION ALL
    SELECT *, 4, NULL, arrived_s, NULL, 0.0, 0, 0, 0, 0.0, 0.0, 0.0 FROM jobs WHERE into_version IS NULL
  ), every ({_EVENT}, turn, place) AS (
    SELECT t_s, kind, exchange, round, client, -1, version, 0.0, 0, 0, 0, 0.0, 0.0, 0.0, turn, 0
      FROM server_events
    UNION ALL
    SELECT dispatched_s, 'dispatched', exchange, round, client, job, version, 0.0, 0, 0, 0, 0.0, 0.0, 0.0,
      dispatched_turn, 0 FROM jobs
    UNION ALL
    SELECT IFNULL(at_s, ended_s), IIF(at_s IS NULL, ending, station), exchange, round, client, job, version,
      s, down, up, work, j + tail_j + idle_j, tail_j, idle_j,
      CASE WHEN at_s IS NULL AND ended_turn THEN ended_turn
        WHEN IFNULL(at_s, ended_s) = dispatched_s THEN dispatched_turn ELSE 0 END,
      IIF(at_s IS NULL, 4, place) FROM stages WHERE since_s IS NOT NULL
    UNION ALL
    SELECT t_s, 'settled', exchange, round, client, job, version, 0.0, 0, 0, 0, joules, joules, 0.0,
      {2**62}, 5 FROM settled_tails JOIN jobs USING (client, job)
  )
  SELECT ROW_NUMBER() OVER (ORDER BY t_s, turn, place, job) - 1, {_EVENT} FROM every;
"""  # noqa: S608 - our own names


def schema_of(database: sqlite3.Connection) -> list[tuple[str, ...]]:
    """The definitions of a database's tables and views, in the order in which they were made."""
    rows = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid")
    return [tuple(row) for row in rows]


# What ``schema_of`` says of a run; the columns of each table and view with their types.
with closing(sqlite3.connect(":memory:")) as _database:
    _database.executescript(SCHEMA_SQL)
    SCHEMA = schema_of(_database)
    COLUMNS: dict[str, dict[str, str]] = {
        table: {name: kind for _, name, kind, *_ in _database.execute(f"PRAGMA table_info({table})")}
        for kind, table, *_ in SCHEMA
        if kind != "index"
    }
_OF_CLIENTS = COLUMNS["refused_kinds"] | COLUMNS["kinds"] | COLUMNS["fleet"]
COLUMNS["events"] = {"seq": "INTEGER", **_EVENTS}
for _view in ("clients", "refusals"):
    COLUMNS[_view] = {name: _OF_CLIENTS[name] for name in COLUMNS[_view]}
