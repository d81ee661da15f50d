"""The run directory: whole files or none, nothing lost, nothing pickled."""

import math
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError

import edgefl
from edgefl.core import files as files_module
from edgefl.core.errors import RunError, UserError
from edgefl.core.files import atomically
from edgefl.protocol import files as trees_module
from edgefl.protocol import read_tree, write_tree
from edgefl.store import reader as reader_module
from edgefl.store.checkpoints import CheckpointPlace, Saved, SavedFile, state_file
from edgefl.store.folders import is_run, read_group, runs_in, write_group
from edgefl.store.reader import Reader, read
from edgefl.store.writer import Store


def _tree(value=0.0):
    return {
        "body": {"w": torch.full((2, 3), value), "b": torch.zeros(3)},
        "head": {},
        "count": torch.tensor(4),
    }


def _version(reader, which="version"):
    version = reader.rows("checkpoints")[-1][which]
    (row,) = (row for row in reader.rows("versions") if row["version"] == version)
    return read_tree(reader.folder / row["file"])


def _state(reader, client):
    (row,) = (row for row in reader.rows("states") if row["client"] == client)
    return read_tree(reader.folder / row["file"])


def _checkpoint(store, version, states, *, best):
    """A checkpoint of ``_tree(version)`` and of states by client, each the job that wrote it, as its tree."""
    saved = {}
    for client, job in states.items():
        path = store.folder / "states" / state_file(job)
        saved[client] = job, SavedFile(f"states/{path.name}", write_tree(path, _tree(job)))
    place = CheckpointPlace(
        needs=version + 1, version=version, evaluated=True, regular=True, round=0, t_s=float(version)
    )
    store.checkpoint(place, Saved({version: _tree(version)}, saved, {}, {}), write_tree, best=best)


def _same(tree, other):
    if isinstance(tree, torch.Tensor):
        return isinstance(other, torch.Tensor) and tree.dtype == other.dtype and torch.equal(tree, other)
    return tree.keys() == other.keys() and all(_same(tree[key], other[key]) for key in tree)


@pytest.fixture
def store(tmp_path):
    with Store.planned(tmp_path / "run"):
        pass
    return Store.open(tmp_path / "run")


BARE = torch.arange(3.0)
TREES = {
    "empty dicts": {"a": {}, "b": {"c": {}, "d": {"e": torch.ones(1)}}},
    "dtypes": {
        "half": torch.ones(2, dtype=torch.float16),
        "brain": torch.ones(2, dtype=torch.bfloat16),
        "double": torch.ones(2, dtype=torch.float64),
        "long": torch.tensor([2**40]),
        "bool": torch.tensor([True, False]),
        "none": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "special": torch.tensor([math.inf, -math.inf, -0.0, 1e-45]),
    },
    "transposed": {"x": torch.arange(6.0).reshape(2, 3).T},
    "a bare tensor": BARE,
    "dots in names": {"body": {"layer.0.weight": torch.ones(1), "layer.0": torch.zeros(1)}},
    "one tensor twice": {"a": BARE, "b": {"c": BARE}},
    "overlapping views": {"a": BARE[:2], "b": BARE[1:]},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_trees_come_back(tree, tmp_path):
    path = tmp_path / "tree.safetensors"
    write_tree(path, tree)
    assert _same(read_tree(path), tree)
    assert list(tmp_path.iterdir()) == [path]


ERRORS = [OSError(28, "No space left on device"), SafetensorError("broken"), KeyboardInterrupt()]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_failing_tree_leaves_the_old_file(tmp_path, monkeypatch, error):
    """It says which file, and leaves no part of one beside it; an interrupt goes on."""
    path = tmp_path / "tree.safetensors"
    write_tree(path, _tree(1))

    def half(leaves, name, metadata):  # noqa: ARG001 - the writer's own signature
        Path(name).write_bytes(b"half")
        raise error

    monkeypatch.setattr(trees_module, "save_file", half)
    with pytest.raises((RunError, KeyboardInterrupt), match=r"cannot write tree\.safetensors|^$"):
        write_tree(path, _tree(2))
    assert list(tmp_path.iterdir()) == [path]
    assert _same(read_tree(path), _tree(1))


def test_bytes_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "plan.yaml"
    atomically({path: b"old"})

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files_module.os, "fsync", fail)
    with pytest.raises(RunError, match=r"cannot write plan\.yaml"):
        atomically({path: b"new"})
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (b"old", [path])


@pytest.mark.parametrize("key", [3, "a/b"])
def test_keys_that_no_file_can_hold_are_told(tmp_path, key):
    with pytest.raises(RunError, match=rf"must be a name without '/', not {key!r}") as told:
        write_tree(tmp_path / "tree", {"prototypes": {key: torch.zeros(2)}})
    assert "str(label)" in str(told.value)
    assert not list(tmp_path.iterdir())


def test_best_and_last_are_kept_and_nothing_else(store):
    """The best version, those of the last two checkpoints, and the states there; in the end, of one."""

    def kept():
        folders = store.folder / "versions", store.folder / "states"
        return [sorted(int(path.stem) for path in folder.iterdir()) for folder in folders]

    found = []
    for version, states, best in (
        (0, {}, True),
        (2, {5: 11, 6: 12}, True),
        (4, {5: 21}, False),
        (6, {}, False),
    ):
        _checkpoint(store, version, states, best=best)
        found.append(kept())
    assert found == [[[0], []], [[0, 2], [11, 12]], [[2, 4], [11, 12, 21]], [[2, 4, 6], [12, 21]]]
    store.close("done")
    assert kept() == [[2, 6], [12, 21]]
    with read(store.folder) as reader:
        assert _same(_version(reader, "best"), _tree(2))
        assert _same(_version(reader), _tree(6))
        assert [_same(_state(reader, client), _tree(job)) for client, job in ((5, 21), (6, 12))] == [True] * 2


def test_a_best_version_stays_best_when_saved_again(store):
    for version, best in ((1, True), (1, False), (2, False)):
        _checkpoint(store, version, {}, best=best)
    store.close("done")
    with read(store.folder) as reader:
        assert _same(_version(reader, "best"), _tree(1))


def _sqlite(path, *statements):
    with closing(sqlite3.connect(path)) as database, database:
        for statement in statements:
            database.execute(statement)


META = "CREATE TABLE meta (key TEXT, value TEXT)"
FORMAT_99 = "INSERT INTO meta VALUES ('format', '99')"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.mkdir(parents=True), "is not a run directory"),
        (lambda path: path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4000), "cannot be read"),
        (lambda path: path.write_bytes(b"not a database at all" * 99), "cannot be read"),
        (lambda path: _sqlite(path, "CREATE TABLE other (x)"), "cannot be read"),
        (lambda path: _sqlite(path, META, "INSERT INTO meta VALUES ('format', '{')"), "cannot be read"),
        (lambda path: _sqlite(path, META, FORMAT_99), "is a run of format 99; this edgefl reads format 17"),
        (lambda path: _sqlite(path, META), "has no format number"),
    ],
)
def test_what_is_no_run_is_refused(tmp_path, make, says):
    folder = tmp_path / "run"
    folder.mkdir()
    make(folder / "run.sqlite")
    with pytest.raises(UserError) as caught:
        Reader(folder)
    assert says in caught.value.what
    assert ("format 99" in says) == ("the edgefl that wrote it" in caught.value.hint)


def test_a_groups_runs_are_in_the_order_of_their_numbers(tmp_path):
    for name in ("100-c", "99-b", "01-a", "notes"):
        (tmp_path / name).mkdir()
        if name != "notes":
            (tmp_path / name / "run.sqlite").touch()
    assert [path.name for path in runs_in(tmp_path)] == ["01-a", "99-b", "100-c"]
    assert runs_in(tmp_path / "01-a") == [tmp_path / "01-a"]
    assert not is_run(tmp_path)
    for nothing in (tmp_path / "notes", tmp_path / "nowhere"):
        with pytest.raises(UserError, match="neither a run nor a group"):
            runs_in(nothing)


def test_nothing_is_pickled():
    """No module imports a pickler or torch's save and load, but for messages to our own workers.

    Others' traces are read by an unpickler that knows plain data alone; a model given in Python is code.
    """
    may = {
        "compute/trees.py",
        "compute/on_ray.py",
        "core/fresh.py",
        "importing/fedscale.py",
        "models/module.py",
    }
    refused = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "joblib", "marshal"}
    package = Path(edgefl.__file__).parent
    for path in package.rglob("*.py"):
        if str(path.relative_to(package)) in may:
            continue
        text = path.read_text(encoding="utf-8")
        imported = re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE)
        assert not {*imported} & refused, path
        assert not re.search(r"(?<!\.)\btorch\.(save|load)\b|allow_pickle=(?!False)", text), path


def test_a_run_is_read_where_nothing_can_be_written(store, monkeypatch):
    store.close("done")
    monkeypatch.setattr(reader_module.os, "access", lambda *_: False)
    with read(store.folder) as reader:
        assert reader.meta["status"] == "done"
        assert reader.rows("states") == []
        assert [path.name for path in store.folder.glob("run.sqlite*")] == ["run.sqlite"]


MERGE = {"exchange": "train", "round": 0, "t_s": 4.0, "jobs": 2, "host_s": 0.5}


def test_what_is_read_is_of_one_commit(store):
    store.add("merges", {**MERGE, "version": 1})
    store.commit()
    with read(store.folder) as reader:
        store.add("merges", {**MERGE, "version": 2})
        store.commit()
        assert len(reader.rows("merges")) == 1
    with read(store.folder) as reader:
        assert len(reader.rows("merges")) == 2


def test_a_flipped_bit_of_a_groups_list_is_noticed(tmp_path):
    """Wherever it is: a run of another name would be left out of a resume without a word."""
    listed = "sweep", ["01-seed-1", "02-seed-2"]
    write_group(tmp_path, *listed)
    assert read_group(tmp_path) == listed
    path = tmp_path / "group.json"
    content = path.read_bytes()
    for place in range(0, 8 * len(content), 3):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(UserError, match=r"group\.json is damaged"):
            read_group(tmp_path)
