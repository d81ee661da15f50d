"""`edgefl run --watch`: the page in the runs' directory, which changes nothing of the run."""

import _thread
import json
import re
import threading
import time

import pytest
from commands import run_command

from edgefl.cli import watch
from edgefl.show.page import build

SCENARIO = """
name: watched
task: {dataset: digits, clients: 4, partition: iid}
model: {name: mlp, hidden: [8]}
method: fedavg
local: {epochs: 1, batch_size: 32, optimizer: {name: sgd, lr: 0.1}}
fleet: home-lab
server: {participants: 2, rounds: 3}
evaluate: {models: [global]}
engine: loop
sweep: {seed: [1, 2]}
"""
LIVE = "while the runs went on; this page loads itself again until they have ended"


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "_EVERY_S", 0.0)
    monkeypatch.setattr(watch, "_REST", 0)
    (tmp_path / "watched.yaml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path / "watched.yaml"


@pytest.fixture
def pages(monkeypatch):
    """What was written: (the statuses of the runs, whether the page is live)."""
    found, page = [], build.page

    def noted(folders, *, live, note):
        made = page(folders, live=live, note=note)
        found.append(([run.summary.status for run in made.told.runs], live))
        return made

    monkeypatch.setattr(build, "page", noted)
    return found


def results(out):
    """The runs of a JSON document without what differs between two runs of a scenario."""
    return [{**run, "run_dir": "", "host_s": 0} for run in json.loads(out)["runs"]]


def test_a_groups_page_follows_its_runs_and_ends_with_them(scenario, tmp_path, capsys, pages):
    """Its path is printed once; the last page is final; the results are those without it."""
    folder = tmp_path / "runs"
    status, out, err = run_command(capsys, "run", scenario, "--watch", "--json", "--out", folder)
    assert status == 0
    assert err.count(f"watch: {folder / 'report.html'}\n") == 1
    assert pages[0] == (["running"], True)
    assert (["done", "running"], True) in pages
    assert [one for one in pages if not one[1]] == [(["done", "done"], False)] == pages[-1:]
    text = (folder / "report.html").read_text("utf-8")
    assert LIVE not in text
    _, alone, _ = run_command(capsys, "run", scenario, "--json", "--out", tmp_path / "alone")
    assert results(out) == results(alone)
    assert len(list(folder.glob("*/SHA256SUMS"))) == 2
    status, _, _ = run_command(capsys, "rm", folder, "--yes")
    assert status == 0
    assert not folder.exists()


def test_what_a_kill_leaves_says_when_it_was_written(scenario, tmp_path, capsys):
    folder, left = tmp_path / "runs", []

    def press():
        while not (folder / "report.html").exists():
            time.sleep(0.02)
        left.append((folder / "report.html").read_text("utf-8"))
        _thread.interrupt_main()

    threading.Thread(target=press, daemon=True).start()
    long = ("--set", "server.rounds=100000", "--set", "sweep=null")
    status, _, err = run_command(capsys, "run", scenario, *long, "--watch", "--out", folder)
    assert status == 130, err
    assert "interrupted; to go on: edgefl run --resume" in err
    assert re.search(rf"Written at \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d, {LIVE}", left[0])
    final = (folder / "report.html").read_text("utf-8")
    assert LIVE not in final
    assert "interrupted" in final


def test_a_page_that_cannot_be_made_stops_no_run(scenario, tmp_path, capsys, monkeypatch):
    def broken(*_, **__):
        raise ValueError("no page")

    monkeypatch.setattr(build, "page", broken)
    status, out, err = run_command(capsys, "run", scenario, "--watch", "--out", tmp_path / "runs")
    assert status == 0
    assert "saved in" in out
    assert err.count("note: --watch was turned off: ValueError: no page") == 1
