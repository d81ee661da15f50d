"""Client states: what is got is what was put, wherever it lay in between, and memory keeps to its budget."""

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgefl.protocol import leaves, nbytes, write_tree
from edgefl.runs.states import States
from edgefl.store import CheckpointPlace, Saved, Store, read, state_file

SIZE = 40  # bytes of ``_tree``'s tensors
MAPS = Path("/proc/self/maps")


def _tree(value, floats=4):
    weights = {"w": torch.full((floats,), float(value)), "b": torch.zeros(2, 2)}
    half = torch.tensor([value, value], dtype=torch.float16)
    return {"head": {}, "count": torch.tensor(value, dtype=torch.int32), "body": weights, "a": half}


def _bits(tree):
    if isinstance(tree, torch.Tensor):
        return (tree.dtype, tuple(tree.shape), tree.stride(), tree.reshape(-1).view(torch.uint8).tolist())
    return [(key, _bits(inner)) for key, inner in tree.items()]


def _filled(folder, count, budget):
    states = States(folder, budget)
    for client in range(count):
        states.put(client, client + 10, _tree(client))
    return states


def _names(folder):
    return {path.name for path in folder.iterdir()}


def _held(states):
    return list(states._held)  # noqa: SLF001 - nothing else tells memory from disk


CLIENT = st.integers(0, 4)
PUT = st.tuples(st.just("put"), CLIENT, st.integers(0, 60))
OTHER = st.tuples(st.just("get"), CLIENT), st.just(("save",)), st.just(("fail",))
STEPS = st.lists(st.one_of(PUT, PUT, *OTHER), max_size=40)


def _place(needs):
    return CheckpointPlace(needs=needs, version=needs, evaluated=True, regular=True, round=0, t_s=0.0)


class _Broken(Exception):  # noqa: N818 - no error of the package's
    pass


class _Beside:
    """States, the store and a plain dict, taken through the same steps."""

    def __init__(self, folder, budget):
        self.store = Store.create(folder, write_tree)
        self.store.commit()
        self.states, self.budget = States(folder / "states", budget), budget
        self.model, self.saved, self.seen, self.step = {}, {}, {}, 0

    def take(self, kind, *values):
        self.step += 1
        getattr(self, kind)(*values)
        self.check()

    def put(self, client, floats):
        tree = _tree(self.step, floats)
        self.model[client] = (self.step, _bits(tree))
        self.states.put(client, self.step, tree)

    def get(self, client):
        state = self.states.get(client)
        assert (state is None) == (client not in self.model)
        assert state is None or _bits(state) == self.model[client][1]

    def save(self):
        with self.states.saving() as changed:
            assert {client: job for client, (job, _) in changed.items()} == {
                client: job for client, (job, _) in self.model.items() if self.saved.get(client) != job
            }
            self.store.checkpoint(_place(self.step), Saved({}, changed))
        before, self.saved = self.saved, {client: job for client, (job, _) in self.model.items()}
        kept = {*before.values(), *self.saved.values()}
        assert _names(self.store.folder / "states") == {state_file(job) for job in kept}

    def fail(self):
        with suppress(_Broken), self.states.saving():
            raise _Broken

    def check(self):
        states, folder = self.states, self.store.folder / "states"
        held = [nbytes(tree) for tree in states._held.values()]  # noqa: SLF001
        assert states.held_bytes == sum(held) <= self.budget
        assert states.clients() == sorted(self.model)
        for client, (job, bits) in self.model.items():
            assert client in states
            assert states.job(client) == job
            file = states.file(client)
            assert (file is None) == (states.path(client) is None)
            assert file is not None or client in _held(states)
            assert file is None or (file.path, _bits(file.read())) == (states.path(client), bits)
        with read(self.store.folder) as reader:
            assert {row["client"]: row["job"] for row in reader.rows("states")} == self.saved
            assert all((self.store.folder / row["file"]).is_file() for row in reader.rows("states"))
        files = {path.name: (path.stat().st_ino, path.read_bytes()) for path in folder.iterdir()}
        assert all(self.seen[name] == files[name] for name in files.keys() & self.seen.keys())
        self.seen = files


@given(st.sampled_from([0, SIZE, 3 * SIZE, 10**6]), STEPS)
def test_states_are_a_dict(budget, steps):
    """The bits that were put, the budget kept, files that never change, rows with files and no others."""
    with tempfile.TemporaryDirectory() as folder:
        beside = _Beside(Path(folder) / "run", budget)
        for step in steps:
            beside.take(*step)
        for client in range(5):
            beside.take("get", client)
        beside.take("save")
        beside.store.close("done")


VIEWS = {
    "a column": lambda: torch.arange(600.0).reshape(3, 200)[:, 1],
    "nothing of a stack": lambda: torch.arange(600.0)[:0],
    "a transposed stack": lambda: torch.arange(600.0).reshape(3, 200).T,
    "one value many times": lambda: torch.ones(1).expand(50),
    "a parameter": lambda: torch.nn.Parameter(torch.ones(3)),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS.keys())
@pytest.mark.parametrize("budget", [0, 10**6])
def test_a_state_holds_its_own_memory_alone(tmp_path, make, budget):
    """A view keeps no stacked tensor alive; layout and gradients are the same with and without a file."""
    view = make()
    states = States(tmp_path, budget)
    states.put(0, 1, {"x": view, "y": torch.ones(3)})
    for leaf, given_leaf in zip(leaves(states.get(0)), (view, torch.ones(3)), strict=True):
        assert leaf.untyped_storage().nbytes() == leaf.nbytes
        assert leaf.is_contiguous()
        assert leaf._base is None  # noqa: SLF001 - a view's own tensor
        assert not leaf.requires_grad
        assert torch.equal(leaf, given_leaf)


@pytest.mark.skipif(not MAPS.exists(), reason="only Linux lists a process's mappings")
def test_a_state_that_was_read_keeps_no_mapping(tmp_path):
    """A process may have only so many, and a mapped tensor has an odd address."""
    states = _filled(tmp_path, 2, SIZE)
    tree = states.get(0)
    assert str(tmp_path) not in MAPS.read_text(encoding="utf-8")
    assert all(leaf.data_ptr() % 16 == 0 for leaf in leaves(tree))
