"""Damaged runs that are resumed: the same run in the end, or one message; never another result."""

from __future__ import annotations

import random
import shutil

import pytest
from commands import run_command
from damage import files_of_at_most, flipped
from hooks import Hooks
from interrupted import POLICIES, interrupted, scenario
from resumed import difference, same_runs

import edgefl
from edgefl.core.errors import RunError, UserError
from edgefl.core.notes import note
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.store import is_run, read, verify

# Server states, clients' states, and jobs that were trained ahead and are not merged.
SETTINGS = scenario(
    {"method": "fedclassavg", "server": {"policy": POLICIES["fedbuff"], "participants": 4, "rounds": 5}}
)
TABLES = ("versions", "states", "outcomes")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The uninterrupted run, and one that was killed with several checkpoints."""
    whole, copies = interrupted(SETTINGS, tmp_path_factory.mktemp("runs"), most=10**6, engine="vmapped")
    middle = copies.kept[len(copies.kept) // 2 :]
    killed = next(copy for copy in middle if list((copy / "outcomes").iterdir()))
    with read(killed) as reader:
        assert len(reader.rows("checkpoints")) > 1
    for copy in copies.kept:
        if copy != killed:
            shutil.rmtree(copy)
    return whole, killed


def _files(folder):
    """One file of each kind, of versions also those that only one checkpoint has."""
    with read(folder) as reader:
        kept = {table: [row["file"] for row in reader.rows(table)] for table in TABLES}
    named = {f"{table} {place}": kept[table][place] for table in TABLES for place in (0, -1)}
    fixed = ("plan.yaml", "run.sqlite", "run.sqlite-wal")
    return {**{name: name for name in fixed}, **named}


def _damages(content, seed):
    """The content damaged in many ways; None is a file that is gone."""
    rng = random.Random(seed)  # noqa: S311 - no secrets
    yield "flipped", flipped(content, rng.randrange(8 * len(content)))
    yield "cut", content[: rng.randrange(len(content))]
    yield "gone", None


HOW = ("flipped", "cut", "gone")
KINDS = ["plan.yaml", "run.sqlite", "run.sqlite-wal"]
# A log that ends earlier is what an earlier kill would have left; what it has is not read from the database.
# plan.yaml is not read, but written again.
UNSEEN = {("run.sqlite", "flipped"), *((kind, how) for kind in KINDS[::2] for how in HOW)}
KINDS += [f"{table} {place}" for table in TABLES for place in (0, -1)]
# A run is known by it; there is nothing to go on with without.
REFUSED = {"run.sqlite"}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_damaged_is_never_gone_on_with(runs, tmp_path, capsys, kind):
    """A file of each kind, flipped, cut or gone: one message, or the run as it was."""
    whole, killed = runs
    name, folder, statuses = _files(killed)[kind], tmp_path / "run", []
    for how, content in _damages((killed / name).read_bytes(), kind):
        shutil.copytree(killed, folder)
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        assert _exported(folder) in {None, _exported(killed)}, (how, "exported")
        status, said = _resumed(folder, capsys)
        assert status in {0, 2}, (how, said)
        if status:
            assert len(said) < 1500
            assert str(folder) in said
        else:
            same_runs(whole, folder)
            # What only an older checkpoint needs is not looked at.
            unseen = kind.endswith(" 0") or (kind, how) in UNSEEN
            assert unseen or "damaged" in said or "cannot be read" in said, how
        statuses.append(status)
        shutil.rmtree(folder)
    assert statuses == [0] * len(statuses) or kind in REFUSED


def _resumed(folder, capsys):
    """The status of the command, and what it says, be it the same as before."""
    note.cache_clear()
    status, _, err = run_command(capsys, "run", "--resume", folder)
    return status, err


def _exported(folder):
    """What an export would be made of, or None if it is refused."""
    try:
        found = trained(folder, DataAccess())
    except UserError:
        return None
    return found.version


@pytest.mark.parametrize("size", [1000, 150_000])
def test_a_full_disk_from_the_beginning(tmp_path, size):
    """Files that cannot hold a plan: one message, and nothing is left."""
    folder = tmp_path / "run"
    with files_of_at_most(size), pytest.raises(RunError, match="cannot write"):
        edgefl.run(SETTINGS, engine="vmapped", out=folder)
    assert not folder.exists()


@pytest.mark.parametrize("size", [220_000, 300_000])
def test_a_full_disk_and_then_room(runs, tmp_path, size):
    """Files that could not grow: the run fails, and with room it is resumed to the same."""
    whole, _ = runs
    folder = tmp_path / "run"
    with files_of_at_most(size):
        (run,) = edgefl.run(SETTINGS, engine="vmapped", out=folder).runs
    assert run.status == "failed"
    assert difference(whole, folder)
    (run,) = edgefl.resume(folder).runs
    assert run.status == "done", run.reason
    same_runs(whole, folder)


# Accuracies of 39, 39, 53 and 37% after 2, 4, 5 and 6 rounds.
UNEVEN = scenario(
    {
        "seed": 2,
        "checkpoint": {"minutes": 5},
        "local": {"optimizer": {"name": "sgd", "lr": 0.3}},
        "server": {"rounds": 5, "participants": 2},
        "evaluate": {"every": 2, "models": ["global"]},
    }
)


def test_a_longer_run_knows_the_best_version_that_it_passes(tmp_path):
    """The last evaluation of the shorter run was its best, and the longer run does not make it."""
    (run,) = edgefl.run(UNEVEN, engine="loop", out=tmp_path / "run").runs
    scores = {row["version"]: row["accuracy"] for row in run.table("evaluations")}
    assert max(scores, key=scores.__getitem__) == 5
    edgefl.resume(run.folder, overrides=["server.until.rounds=6"])
    longer = {**UNEVEN, "server": {**UNEVEN["server"], "rounds": 6}}
    (whole,) = edgefl.run(longer, engine="loop", out=tmp_path / "whole").runs
    with read(whole.folder) as reader:
        (best,) = (row["version"] for row in reader.rows("versions") if row["best"])
    assert best < 5
    same_runs(whole.folder, run.folder)


def test_the_best_version_is_known_whichever_checkpoint_is_gone_on_from(tmp_path):
    """Runs that go on from their older checkpoint and are stopped at once: the best is that of then."""
    _, copies = interrupted({**UNEVEN, "evaluate": {"models": ["global"]}}, tmp_path, most=10**6)
    seen = 0
    for copy in filter(is_run, copies.kept):
        with read(copy) as reader:
            rows = reader.rows("checkpoints")
            if len(rows) < 2 or reader.meta["status"] == "done":
                continue
            (last,) = (row["file"] for row in reader.rows("versions") if row["last"])
        seen += 1
        (copy / last).write_bytes(b"")
        with pytest.raises(KeyboardInterrupt):
            edgefl.resume(copy, callbacks=_AtOnce())
        with read(copy) as reader:
            scores = {row["version"]: row["accuracy"] for row in reader.rows("evaluations")}
            best = [row["version"] for row in reader.rows("versions") if row["best"]]
        assert best == [max(sorted(scores), key=scores.__getitem__)]
        assert verify(copy) == []
    assert seen > 5


class _AtOnce(Hooks):
    """Interrupts a run before it evaluates again."""

    def merged(self, so_far):
        del so_far
        raise KeyboardInterrupt
