"""`edgefl run --watch`: the command serves its page while it runs, and nothing of that changes the run."""

from __future__ import annotations

import _thread
import json
import threading
import time
from contextlib import suppress

import pytest
from commands import run_command
from watched import ask, soon

from edgefl.show.page import following, server
from edgefl.show.page.server import Server

SCENARIO = """
name: watched
task: {dataset: digits, clients: 4, partition: iid}
model: {name: mlp, hidden: [8]}
method: fedavg
local: {epochs: 1, batch_size: 32, optimizer: {name: sgd, lr: 0.1}}
fleet: home-lab
server: {participants: 2, rounds: 6}
evaluate: {models: [global]}
engine: loop
"""


@pytest.fixture
def scenario(tmp_path):
    """A file."""
    (tmp_path / "watched.yaml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path / "watched.yaml"


class Browser(Server):
    """A server that asks itself for the data, as a page does, and keeps what was answered."""

    servers: list[Browser] = []  # noqa: RUF012 - emptied by the fixture

    def __init__(self, *given):
        super().__init__(*given)
        self.answers = []
        self.servers.append(self)
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self):
        with suppress(OSError):
            while True:
                self.answers.append(ask(self))
                time.sleep(0.02)

    @property
    def pages(self):
        """What was shown."""
        return [each.page for each in self.answers if each.status == 200]

    @property
    def statuses(self):
        """What the runs were shown to be, one after the other."""
        return list(dict.fromkeys(tuple(one["status"] for one in page["runs"]) for page in self.pages))


@pytest.fixture
def browsers(monkeypatch):
    """The servers that commands start, with a browser each; the page is made anew at any time."""
    monkeypatch.setattr(following, "_REST", 0)
    monkeypatch.setattr(server, "Server", Browser)
    Browser.servers = []
    return Browser.servers


def results(out):
    """The runs of a JSON document without what differs between two runs of a scenario."""
    return [{**run, "run_dir": "", "host_s": 0} for run in json.loads(out)["runs"]]


def test_a_command_serves_its_page_while_it_runs(scenario, tmp_path, capsys, browsers):
    """A browser sees the run run and end; the results are the same as without, and stdout has them alone."""
    status, out, err = run_command(capsys, "run", scenario, "--watch", "--json", "--out", tmp_path / "run")
    assert status == 0
    (browser,) = browsers
    assert browser.statuses == [("running",), ("done",)]
    curves = [one for each in browser.pages for one in each["plots"][0]["frame"]["blocks"]]
    points = [len(one["accuracy"]) for one in curves]
    assert points == sorted(points)
    assert points[-1] == 6
    assert err.splitlines()[0] == f"watch: {browser.url}"
    assert browser.token not in out
    with pytest.raises(OSError):  # noqa: PT011 - refused: the server has ended
        ask(browser)
    _, alone, _ = run_command(capsys, "run", scenario, "--json", "--out", tmp_path / "alone")
    assert results(out) == results(alone)
    assert (tmp_path / "run" / "SHA256SUMS").exists()


def test_a_port_that_is_taken_stops_no_run(scenario, tmp_path, capsys):
    """A note says so."""
    taken = Server(following.Follower(pytest.fail))
    try:
        arguments = ("--watch-port", taken.server_port, "--engine", "null", "--out", tmp_path / "run")
        status, out, err = run_command(capsys, "run", scenario, *arguments)
    finally:
        taken.close()
    assert status == 0
    assert "saved in" in out
    note = f"note: --watch: cannot listen on 127.0.0.1:{taken.server_port}: Address already in use"
    assert err.splitlines()[0] == f"{note}; the run goes on without the page"


def test_an_interrupted_run_is_shown_as_one(scenario, tmp_path, capsys, browsers):
    """Ctrl-C ends the command as ever; the page says what became of the run."""

    def press():
        soon(lambda: browsers and browsers[0].pages)
        _thread.interrupt_main()

    threading.Thread(target=press, daemon=True).start()
    arguments = ("--watch", "--set", "server.rounds=100000", "--out", tmp_path / "run")
    status, _, err = run_command(capsys, "run", scenario, *arguments)
    assert (status, "interrupted; to go on: edgefl run --resume" in err) == (130, True)
    assert browsers[0].statuses == [("running",), ("interrupted",)]
