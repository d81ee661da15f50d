"""Event hashes: equal wherever the events are, and nowhere else."""

import shutil

import pytest
from damage import rewritten
from nightly import sampled

import edgefl
from edgefl.core.event import Kind, ServerEvent
from edgefl.store.reader import read
from edgefl.store.schema import COLUMNS
from edgefl.store.writer import Store

# Of mobile links, whose radios leave tails open.
SCENARIO = {
    "name": "hashed",
    "task": {"dataset": "digits", "clients": 6},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedclassavg",
    "local": {"epochs": 1, "batch_size": 64},
    "fleet": {"members": [{"device": "phone-mid", "link": "4g"}, {"device": "phone-high", "link": "5g"}]},
    "server": {"policy": {"name": "fedbuff", "buffer": 2}, "participants": 4, "rounds": 3},
}


def _hash(folder):
    with read(folder) as reader:
        return reader.event_hash()


@pytest.fixture(scope="module")
def loop(tmp_path_factory):
    """A run by the loop engine."""
    return edgefl.run(SCENARIO, engine="loop", out=tmp_path_factory.mktemp("hashed") / "loop").runs[0].folder


def test_engines_have_one_hash(loop, tmp_path):
    """The same plan gives the same hash whatever trains, also where nothing does."""
    (run,) = edgefl.run(SCENARIO, engine="null", out=tmp_path / "run").runs
    assert _hash(run.folder) == _hash(loop)
    assert run.summary().event_hash == _hash(loop)


@sampled(2, "setting", [{"seed": 1}, {"server.rounds": 4}, {"method": "fedavg"}, {"local.batch_size": 32}])
def test_other_events_have_another_hash(loop, tmp_path, setting):
    """Another seed, another end, other payloads, another time of work."""
    (run,) = edgefl.run(SCENARIO, overrides=setting, engine="null", out=tmp_path / "run").runs
    assert _hash(run.folder) != _hash(loop)


def test_names_and_learning_rates_change_no_event(loop, tmp_path):
    """What the run is called, and what changes training alone."""
    changed = {"name": "other", "local.optimizer.lr": 0.01, "evaluate.target": 0.5}
    (run,) = edgefl.run(SCENARIO, overrides=changed, engine="loop", out=tmp_path / "run").runs
    assert _hash(run.folder) == _hash(loop)


@pytest.mark.parametrize("table", ["jobs", "server_events", "settled_tails"])
def test_every_column_counts(loop, tmp_path, table):
    """But for what training reports."""
    folder = tmp_path / "run"
    shutil.copytree(loop, folder)
    whole = _hash(folder)
    for column, kind in COLUMNS[table].items():
        before = (folder / "run.sqlite").read_bytes()
        other = f"{column} || 'x'" if kind == "TEXT" else f"{column} + 1000000"
        other = f"iif({column} = 'lost', 'late', 'lost')" if column == "ending" else other
        first = f"rowid = (SELECT MAX(rowid) FROM {table} WHERE {column} IS NOT NULL)"  # noqa: S608 - our own names
        rewritten(folder, f"UPDATE {table} SET {column} = {other} WHERE {first}")  # noqa: S608 - our own names
        assert (_hash(folder) == whole) == (column == "scalars"), column
        (folder / "run.sqlite").write_bytes(before)


def test_where_nothing_happened_there_is_no_hash():
    """A run that was planned, and no more; its first event has one before it is committed."""
    store = Store.in_memory()
    assert store.reader().event_hash() is None
    store.add_events([ServerEvent(1, 0.0, Kind.MERGED, "train", 0, -1, 1)])
    assert len(store.reader().event_hash()) == 16
    store.abandon()
