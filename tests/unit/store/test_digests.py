"""Digests of tables: what becomes of rows changes them, and what SQLite makes of a value does not."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import pytest

from edgefl.store import Store, read
from edgefl.store.checks import STRUCTURE, damage_of
from edgefl.store.digests import Digests

# Of each: version, client, accuracy and samples.
_ROWS = [(1, 0, 0.25, 7), (1, 7, 0.5, 3), (2, 4, 0.25, 9)]


def _digest(rows):
    found = Digests()
    found.add("client_evaluations", list(zip(*rows, strict=True)))
    return found


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([(1, 0, 0.5, 7), (1, 7, 0.25, 3), _ROWS[2]], id="one value of two rows"),
        pytest.param([(1, 0, 0.25, 3), (1, 7, 0.5, 7), _ROWS[2]], id="another value of two rows"),
        pytest.param([_ROWS[0], (7, 1, 0.5, 3), _ROWS[2]], id="two values of a row"),
    ],
)
def test_values_that_change_places_are_seen(rows):
    """Each column, and all rows together, have the same values as before."""
    assert _digest(_ROWS).matches("client_evaluations", _digest(_ROWS[::-1]))
    assert not _digest(rows).matches("client_evaluations", _digest(_ROWS))


@pytest.mark.parametrize("value", [math.nan, -math.nan, -0.0, math.inf, 5e-324])
def test_numbers_that_sqlite_reads_back_otherwise_are_no_damage(tmp_path, value):
    """NaN of any bits comes back as NULL, and -0 as 0."""
    store = Store.create(tmp_path / "run", lambda *_: "")
    row = {"exchange": "train", "round": 0, "t_s": 1.0, "jobs": 1, "host_s": 0.0}
    store.add("merges", {"version": 1, "loss": value, **row})
    store.close("done")
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as database:
        assert damage_of(database) == {}


def test_an_index_that_does_not_agree_with_its_table_is_damage(tmp_path):
    """The rows are those that were written, and a query by their key would find others."""
    store = Store.create(tmp_path / "run", lambda *_: "")
    store.add("payloads", {"exchange": "elsewhere", "model": "m", "direction": "up", "part": "p", "bytes": 1})
    store.close("done")
    file = tmp_path / "run" / "run.sqlite"
    content = file.read_bytes()
    places = [place for place in range(len(content)) if content.startswith(b"elsewhere", place)]
    assert len(places) == 2
    found = []
    for place in places:
        file.write_bytes(content[:place] + b"elsewhen!" + content[place + 9 :])
        with closing(sqlite3.connect(file)) as database:
            found += [damage_of(database)]
    assert {STRUCTURE} in [set(one) for one in found]
    assert all(found)
    file.write_bytes(content)
    with read(tmp_path / "run") as reader:
        assert len(reader.rows("payloads")) == 1
