"""`edgefl runs` and `edgefl rm`: what there is, what to go on with, and what may go."""

import io
import json
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from commands import run_command
from damage import rewritten, status_of
from hooks import Hooks
from small import SMALL

import edgefl
from edgefl.core.errors import UserError
from edgefl.store.locks import locked
from edgefl.store.writer import Store

SCENARIO = {
    **SMALL,
    "task": {"dataset": "digits", "clients": 2},
    "local": {"epochs": 1, "batch_size": 64, "optimizer": {"name": "sgd", "lr": 0.5}},
    "server": {"rounds": 2},
    "evaluate": {"target": 0.1},
}


class _Stop(Hooks):
    """Copies the group after the first evaluation, as a kill would leave it, and stops it."""

    def __init__(self, group, copy):
        self.group, self.copy = group, copy

    def evaluated(self, so_far):  # noqa: ARG002 - the callback's own signature
        shutil.copytree(self.group, self.copy)
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a run, and with groups that are done, interrupted and killed, in that order."""
    folder = tmp_path_factory.mktemp("managing") / "runs"
    two = {**SCENARIO, "sweep": {"seed": [1, 2]}}
    edgefl.run(SCENARIO, out=folder / "alone")
    edgefl.run(two, engine="null", out=folder / "costs")
    with suppress(KeyboardInterrupt):
        edgefl.run(two, out=folder / "stopped", callbacks=_Stop(folder / "stopped", folder / "shot"))
    return folder


@pytest.fixture
def runs(whole, tmp_path, monkeypatch):
    """Such a folder, to be changed: ``runs`` in the current directory."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, tmp_path / "runs")
    return Path("runs")


def _listed(capsys, *arguments):
    status, out, _ = run_command(capsys, "runs", *arguments, "--json")
    assert status == 0
    return {one["run_dir"]: one for one in json.loads(out)["runs"]}


def _files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("[!.]*"))


def test_every_run_is_listed_as_it_stands(runs, capsys):
    """With the figures that compare shows, and the bytes that it takes."""
    found = _listed(capsys, runs)
    assert {name: one["status"] for name, one in found.items()} == {
        "runs/alone": "done",
        "runs/costs/01-seed-1": "done",
        "runs/costs/02-seed-2": "done",
        "runs/stopped/01-seed-1": "interrupted",
        "runs/stopped/02-seed-2": "planned",
        "runs/shot/01-seed-1": "killed",
        "runs/shot/02-seed-2": "planned",
    }
    alone, (summary,) = found["runs/alone"], edgefl.open("runs/alone").summary()
    assert alone["accuracy"] == summary.accuracy["global"].value
    assert (alone["target"], alone["target_s"]) == (0.1, summary.target.global_.t_s)
    assert (alone["virtual_s"], alone["event_hash"]) == (summary.virtual_s, summary.event_hash)
    assert (alone["rounds"], alone["of_rounds"], alone["method"]) == (2, 2, "fedavg")
    assert alone["group_dir"] is None
    assert found["runs/shot/01-seed-1"]["rounds"] == 1
    assert found["runs/shot/02-seed-2"]["group_dir"] == "runs/shot"
    on_disk = sum(path.stat().st_size for path in Path("runs/alone").rglob("*") if path.is_file())
    assert alone["size_bytes"] == on_disk


@pytest.mark.usefixtures("runs")
def test_a_group_has_a_line_and_says_how_it_goes_on(capsys):
    """A line a group, unless all runs are asked for; one command for each that did not end."""
    status, out, _ = run_command(capsys, "runs")
    assert status == 0
    assert "costs (2 runs)" in out
    assert "02-seed-2" not in out
    assert "7 runs in runs: 3 done, 2 planned, 1 killed, 1 interrupted" in out
    commands = [line for line in out.splitlines() if line.startswith("next: ")]
    assert sorted(commands) == [f"next: edgefl run --resume runs/{name}" for name in ("shot", "stopped")]
    out = run_command(capsys, "runs", "--all")[1]
    assert ("02-seed-2" in out, "costs (2 runs)" in out) == (True, False)


def test_statuses_choose(runs, capsys):
    """Several, too; the words are checked, and a folder where none is left says so."""
    found = _listed(capsys, runs, "--status", "killed", "--status", "interrupted")
    assert set(found) == {"runs/stopped/01-seed-1", "runs/shot/01-seed-1"}
    assert run_command(capsys, "runs", "--status", "failed")[:2] == (0, "no failed runs in runs\n")
    status, _, err = run_command(capsys, "runs", "--status", "lost")
    assert (status, "unknown status 'lost'" in err, "planned, running, killed" in err) == (2, True, True)


def test_what_is_in_progress_is_running(runs, capsys):
    """As long as a command holds its group; then nothing is to be done about that."""
    for held in (runs / "shot", runs / "shot" / "01-seed-1"):
        with locked(held):
            assert _listed(capsys)["runs/shot/01-seed-1"]["status"] == "running"
            out = run_command(capsys, "runs", "--json")[1]
        assert json.loads(out)["resumable"] == ["runs/stopped"]


def test_a_killed_run_of_a_group_that_goes_on_is_not_running(runs, capsys):
    """The command is at another run of it, and comes to this one later."""
    with locked(runs / "shot"):
        store = Store.open(runs / "shot" / "02-seed-2")
        found = _listed(capsys)
        store.abandon()
    assert [found[f"runs/shot/{name}"]["status"] for name in ("01-seed-1", "02-seed-2")] == [
        "killed",
        "running",
    ]


def test_no_run_is_for_two_commands(runs, capsys):
    """None goes on while a command has its group, or another run of that."""
    group, first, second = runs / "shot", runs / "shot" / "01-seed-1", runs / "shot" / "02-seed-2"
    for held in (group, first):
        with locked(held):
            for folder in (group, first, second):
                with pytest.raises(UserError, match="another command writes into"):
                    edgefl.resume(folder)
                assert run_command(capsys, "run", "--resume", folder)[0] == 2
            assert status_of(second) == "planned"
    assert status_of(first) == "killed"


def test_runs_that_cannot_be_read_are_listed(runs, capsys):
    """A damaged database, a damaged plan, facts without sense, and another format: each says what it is."""
    (runs / "alone" / "run.sqlite").write_bytes(b"no database" * 100)
    rewritten(runs / "costs" / "01-seed-1", "UPDATE plan SET content = 'x'")
    rewritten(runs / "costs" / "02-seed-2", "UPDATE meta SET value = '[]' WHERE key = 'seed'")
    rewritten(runs / "shot" / "01-seed-1", "UPDATE meta SET value = '3' WHERE key = 'format'")
    found = _listed(capsys)
    assert {name: one["reason"] for name, one in found.items() if one["status"] == "damaged"} == {
        "runs/alone": "alone: run.sqlite cannot be read: file is not a database",
        "runs/costs/01-seed-1": "01-seed-1: run.sqlite cannot be read: its plan is damaged",
        "runs/costs/02-seed-2": "02-seed-2: its facts make no sense: TypeError",
    }
    other = found["runs/shot/01-seed-1"]
    assert (other["status"], other["name"], other["rounds"]) == ("other-format", "01-seed-1", None)
    assert "is a run of format 3; this edgefl reads format" in other["reason"]
    out = run_command(capsys, "runs")[1]
    assert "3 damaged, 1 other-format" in out
    assert "runs/alone: alone: run.sqlite cannot be read" in out


def test_a_group_names_the_run_that_it_lost(runs, capsys):
    """Wherever its runs are listed, compared or drawn; the others are shown."""
    gone, why = runs / "costs" / "02-seed-2", "its folder is gone"
    shutil.rmtree(gone)
    assert {run["status"] for run in _listed(capsys, runs / "costs").values()} == {"done", "damaged"}
    assert _listed(capsys, runs)[str(gone)]["reason"] == why
    for command in (["compare", runs / "costs"], ["report", runs / "costs", "--out", "page.html"]):
        status, _, err = run_command(capsys, *command)
        assert (status, f"note: {gone} is left out: {why}" in err) == (0, True)
    assert f"{gone} is left out: {why}" in Path("page.html").read_text()


def test_a_run_and_a_group_are_removed(runs, capsys):
    """All of them, and their directories; what is beside them stays."""
    sizes = {name: one["size_bytes"] for name, one in _listed(capsys).items()}
    status, out, err = run_command(capsys, "rm", "runs/alone", "runs/costs", "runs/costs/", "--yes", "--json")
    told = json.loads(out)
    assert (status, err) == (0, "")
    assert told["removed"] == ["runs/alone", "runs/costs/01-seed-1", "runs/costs/02-seed-2"]
    listed = sum(sizes[name] for name in told["removed"])
    assert listed < told["freed_bytes"] < listed + 200
    assert sorted(path.name for path in runs.iterdir()) == ["shot", "stopped"]
    status, out, _ = run_command(capsys, "rm", runs, "--yes")
    assert (status, out.startswith("removed 4 runs, freed ")) == (0, True)
    assert not runs.exists()


def test_a_run_and_its_group_are_named_together(runs, capsys):
    """In whatever order."""
    assert run_command(capsys, "rm", runs / "costs" / "01-seed-1", runs / "costs", "--yes")[0] == 0
    assert not (runs / "costs").exists()


def test_a_run_of_a_group_leaves_its_list(runs, capsys):
    """A resume of the group does not run it again; with the last run goes the group."""
    first, second = (runs / "stopped" / name for name in ("01-seed-1", "02-seed-2"))
    assert run_command(capsys, "rm", first, "--yes")[0] == 0
    assert json.loads((runs / "stopped" / "group.json").read_text())["runs"] == [second.name]
    resumed = edgefl.resume(runs / "stopped")
    assert [run.folder for run in resumed.runs] == [second]
    assert not first.exists()
    assert status_of(second) == "done"
    assert run_command(capsys, "rm", second, "--yes")[0] == 0
    assert not (runs / "stopped").exists()


def test_what_edgefl_did_not_write_stays(runs, capsys):
    """A file, a folder or a link, in a run or in its group; the rest goes, with a note of what is left."""
    own = ("notes.txt", "wandb", "report.html-notes.md", "plan.yaml.mine", "versions/mine.txt", "states-old")
    left = ["costs/mine.html", *(f"costs/01-seed-1/{each}" for each in own)]
    for name in left:
        (runs / name).symlink_to("nowhere")
    status, out, err = run_command(capsys, "rm", runs / "alone", runs / "costs", "--yes")
    assert (status, out.startswith("removed 3 runs")) == (0, True)
    assert f"note: {runs / 'costs'} is left: something is in it that edgefl did not write" in err
    assert not (runs / "alone").exists()
    found = {str(path.relative_to(runs)) for path in (runs / "costs").rglob("*") if path.is_symlink()}
    assert found == set(left)
    assert "runs/costs" not in run_command(capsys, "runs", runs)[1]


def test_no_link_is_followed(runs, capsys):
    """One in place of a run's folder goes, what it leads to stays."""
    states, elsewhere = runs / "costs" / "01-seed-1" / "states", runs / "elsewhere"
    shutil.rmtree(states)
    elsewhere.mkdir()
    (elsewhere / "00000001.safetensors").touch()
    states.symlink_to(Path("../../elsewhere"))
    assert run_command(capsys, "rm", runs / "costs", "--yes")[0] == 0
    assert not (runs / "costs").exists()
    assert _files(elsewhere) == ["00000001.safetensors"]


def test_what_is_in_progress_stays(runs, capsys):
    """The run, its group, the folder around them, and what was named beside it."""
    before, run = _files(runs), runs / "shot" / "01-seed-1"
    for held in (run, runs / "shot"):
        for named in (run, runs / "shot", runs):
            with locked(held):
                status, out, err = run_command(capsys, "rm", runs / "alone", named, "--yes")
            assert (status, out) == (2, "")
            assert "another command writes into runs/shot" in err
            assert "nothing of it was removed" in err
    assert _files(runs) == before


@pytest.mark.parametrize("answer", ["y\n", "\n"])
def test_it_asks_on_a_terminal(runs, capsys, monkeypatch, answer):
    """And removes nothing unless the answer is yes; without a terminal it must be given beforehand."""
    status, out, err = run_command(capsys, "rm", runs / "alone")
    assert (status, out, "1 run would be removed; nothing was" in err, "--yes" in err) == (2, "", True, True)
    stdin = io.StringIO(answer)
    stdin.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    status, out, err = run_command(capsys, "rm", runs / "costs")
    assert "Remove 2 runs?" in err
    assert "runs/costs: 2 runs, " in err
    kept = answer != "y\n"
    assert (status, out.startswith("removed 2 runs"), (runs / "costs").exists()) == (kept, not kept, kept)


def test_what_is_no_run_is_refused(runs, capsys, monkeypatch):
    """With a message, and nothing is removed, not even of what was named beside it."""
    here = Path.cwd()
    monkeypatch.setenv("HOME", str(here / "home"))
    (here / "empty").mkdir()
    shutil.copytree(runs / "alone", here / "home" / "run")
    for name in ("run.sqlite.bak", "report.html", "plan.yaml"):
        (here / "empty" / name).touch()
    (here / "link").symlink_to("runs")
    before = _files(here)
    refused = {".": f"is or holds {here}", "link": "is a link", "home": f"is or holds {here / 'home'}"}
    for path, words in {**refused, "empty": "is neither a run nor a group of runs"}.items():
        status, out, err = run_command(capsys, "rm", runs / "alone", path, "--yes")
        assert (status, out, words in err) == (2, "", True), path
    assert _files(here) == before


def test_damaged_and_half_made_runs_can_be_removed(runs, capsys):
    """Whatever their rows say: of another format, unreadable, or killed before they began."""
    (runs / "alone" / "run.sqlite").write_bytes(b"")
    (runs / "half" / "01-a").mkdir(parents=True)
    (runs / "half" / ".edgefl.lock").touch()
    with closing(sqlite3.connect(runs / "half" / "01-a" / "run.sqlite.1-1.tmp")) as database:
        database.execute("CREATE TABLE meta (key, value)")
    assert "runs/half/01-a" not in _listed(capsys)
    assert run_command(capsys, "rm", runs / "alone", runs / "half", "--yes")[0] == 0
    assert sorted(path.name for path in runs.iterdir()) == ["costs", "shot", "stopped"]
