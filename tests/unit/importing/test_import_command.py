"""``edgefl import``: what it prints, refuses and leaves behind."""

import errno
import json
import os

import pytest
from commands import run_command
from imported import BEHAVIOR, CAPACITY, SPEEDS, pickled, written

import edgefl


@pytest.fixture
def trace(tmp_path, monkeypatch):
    """A file of FedScale's capacities, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEFL_PATH", raising=False)
    return pickled(tmp_path, CAPACITY, "capacity")


def test_it_says_what_was_made_and_how_to_run_it(trace, capsys, monkeypatch):
    """Users, what was read and dropped, the files, and last a command that really runs."""
    users = CAPACITY | {1: {"computation": 0, "communication": 1}}
    pickled(trace.parent, users, "capacity")
    status, out, err = run_command(capsys, "import", "fedscale", "capacity", "--out", "their fleet",
                                   "--name", "theirs")  # fmt: skip
    assert (status, err) == (0, "")
    first, *_, last = out.splitlines()
    assert first == "3 users, dealt together"
    assert "dropped: 1 user without a possible speed and rate" in out
    assert "saved their fleet/profiles/theirs.yaml" in out
    assert last == (
        "run it: EDGEFL_PATH='their fleet'${EDGEFL_PATH:+:$EDGEFL_PATH} "
        "edgefl run quickstart --set fleet=theirs"
    )
    monkeypatch.setenv("EDGEFL_PATH", "their fleet")
    few = {"fleet": "theirs", "server.rounds": 1, "method": "fedavg", "sweep": None}
    (run,) = edgefl.run("quickstart", overrides=few, engine="null", out="run").runs
    assert {row["slowdown"] for row in run.table("clients")} == {0.5, 1.0, 2.0}


def test_json_is_one_document(trace, capsys):
    """With the files, their sources and what was dropped; in a folder that is searched, no path is needed."""
    _, out, _ = run_command(capsys, "import", "fedscale", trace, "--out", ".", "--name", "theirs")
    assert out.splitlines()[-1] == "run it: edgefl run quickstart --set fleet=theirs"
    status, out, _ = run_command(capsys, "import", "fedscale", trace, "--out", "x", "--json")
    found = json.loads(out)
    assert (status, found["path"], found["users"], found["dropped"]) == (0, "x/profiles/x.yaml", 3, [])
    assert found["sources"][0]["file"] == "capacity"


def test_nothing_is_overwritten_unasked(trace, capsys):
    """A profile that exists stays, unless it is forced; another's name is never taken."""
    command = ["import", "fedscale", trace, "--out", "x"]
    assert run_command(capsys, *command)[0] == 0
    before = (trace.parent / "x/profiles/x.yaml").read_bytes()
    status, _, err = run_command(capsys, *command, "--device", "pixel-6")
    assert status == 2
    assert "--force" in err
    assert (trace.parent / "x/profiles/x.yaml").read_bytes() == before
    assert run_command(capsys, *command, "--device", "pixel-6", "--force")[0] == 0
    assert (trace.parent / "x/profiles/x.yaml").read_bytes() != before
    status, _, err = run_command(capsys, *command, "--name", "home-lab")
    assert status == 2
    assert "belongs to another profile" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("fedscal capacity --out x", "did you mean 'fedscale'"),
        ("fedscale capacity capacity --out x", "give one of each"),
        ("fedscale capacity capacity capacity --out x", "two that go together"),
        ("fedscale nowhere --out x", "No such file"),
        ("fedscale . --out x", "Is a directory"),
        ("fedscale capacity --out X_Y", "invalid profile name 'X_Y'"),
        ("fedscale capacity --out capacity", "cannot make the folder"),
        ("fedscale capacity --out x --device nokia", "unknown device"),
        ("fedscale capacity --out x --link pigeon", "unknown link"),
        ("fedscale capacity --out x --ready wifi", "--ready is only for"),
        ("fedscale capacity --out x --repeat 1h", "is only for csv"),
        ("csv speeds --out x --repeat 1", "is no time"),
        ("fedscale capacity --out x --users 0", "--users"),
        ("fedscale speeds --out x", "not a pickle"),
        ("flash capacity --out x", "not valid JSON: expected value at line 1"),
        ("flash speeds --out x --ready ,", "unknown condition"),
    ],
)
def test_bad_input_is_one_message(trace, arguments, said, capsys):
    """Status 2, what is wrong, and no folder left behind."""
    written(trace.parent, SPEEDS, "speeds")
    status, _, err = run_command(capsys, "import", *arguments.split())
    assert status == 2
    assert said in " ".join(err.split())
    assert "Traceback" not in err
    assert {path.name for path in trace.parent.iterdir()} == {"capacity", "speeds"}


def test_a_full_disk_leaves_nothing(trace, capsys, monkeypatch):
    """Where the last of three files cannot be written, none is there."""
    pickled(trace.parent, BEHAVIOR, "behavior")
    calls = []

    def full(_):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    status, _, err = run_command(capsys, "import", "fedscale", "capacity", "behavior", "--out", "a/b")
    assert status == 1
    assert "no space left" in err
    assert not [path for path in (trace.parent / "a").rglob("*") if path.is_file()]
