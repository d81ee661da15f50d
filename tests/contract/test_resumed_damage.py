"""Damaged runs that are resumed: the same run in the end, or one message; never another result."""

import random
import shutil

import pytest
from commands import run_command
from damage import files_of_at_most, flipped
from interrupted import POLICIES, interrupted, scenario
from nightly import sampled
from resumed import same_runs

import edgefl
from edgefl.core.errors import RunError, UserError
from edgefl.core.notes import note
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.store.reader import read

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


@sampled(3, "kind", KINDS)
def test_what_is_damaged_is_never_gone_on_with(runs, tmp_path, capsys, kind):
    """A file of each kind, flipped, cut or gone: one message, or the run as it was."""
    whole, killed = runs
    name, folder, statuses = _files(killed)[kind], tmp_path / "run", []
    for how, content in _damages((killed / name).read_bytes(), kind):
        shutil.copytree(killed, folder)
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        # Of a damaged log an earlier commit is read.
        version = _exported(killed)
        known = {None, *range(version + 1)} if kind == "run.sqlite-wal" else {None, version}
        assert _exported(folder) in known, (how, "exported")
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
    try:
        found = trained(folder, DataAccess())
    except UserError:
        return None
    return found.version


def test_a_full_disk_from_the_beginning(tmp_path):
    """Files that cannot hold a plan: one message, and nothing is left."""
    folder = tmp_path / "run"
    with files_of_at_most(1000), pytest.raises(RunError, match="cannot write"):
        edgefl.run(SETTINGS, engine="vmapped", out=folder)
    assert not folder.exists()
