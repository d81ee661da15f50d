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

from edgefl.cli import watch
from edgefl.report.page import following, server
from edgefl.report.page.server import Server

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
    points = [len(curve["accuracy"]) for each in browser.pages for curve in each["curves"]]
    assert points == sorted(points)
    assert points[-1] == 6
    assert err.splitlines()[0] == f"watch: {browser.url}"
    assert browser.token not in out
    with pytest.raises(OSError):  # noqa: PT011 - refused: the server has ended
        ask(browser)
    _, alone, _ = run_command(capsys, "run", scenario, "--json", "--out", tmp_path / "alone")
    assert results(out) == results(alone)
    assert (tmp_path / "run" / "SHA256SUMS").exists()


def test_without_being_asked_nothing_is_served(scenario, tmp_path, capsys, browsers):
    """No port is opened."""
    status, _, err = run_command(capsys, "run", scenario, "--engine", "null", "--out", tmp_path / "run")
    assert (status, browsers) == (0, [])
    assert "watch" not in err.replace("watched", "")


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


def test_a_port_can_be_chosen(scenario, tmp_path, capsys, browsers):
    """It is that of the page's address; one that is none is refused."""
    with_any = Server(following.Follower(pytest.fail))
    port = with_any.server_port
    with_any.close()
    arguments = ("--watch", "--watch-port", port, "--engine", "null", "--out", tmp_path / "run")
    assert run_command(capsys, "run", scenario, *arguments)[0] == 0
    assert browsers[0].url.startswith(f"http://127.0.0.1:{port}/")
    status, _, err = run_command(capsys, "run", scenario, "--watch-port", 70_000)
    assert (status, "--watch-port" in err) == (2, True)


def test_a_server_that_dies_stops_no_run(scenario, tmp_path, capsys, monkeypatch):
    """However it fails."""

    class Dead(Server):
        def finish_request(self, *_):
            raise MemoryError

        def serve_forever(self, *_):
            raise OSError("too many files")

        def shutdown(self):
            pass

    monkeypatch.setattr(server, "Server", Dead)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    status, out, _ = run_command(capsys, "run", scenario, "--watch", "--out", tmp_path / "run")
    assert (status, "saved in" in out) == (0, True)


def test_a_failed_run_is_shown_as_one(scenario, tmp_path, capsys, browsers):
    """And the command's status is that of any failed run."""
    rate = "local.optimizer.lr=1e30"
    status, _, err = run_command(capsys, "run", scenario, "--set", rate, "--watch", "--out", tmp_path / "run")
    assert (status, "diverged" in err) == (1, True)
    assert browsers[0].statuses[-1] == ("failed",)
    assert "diverged" in browsers[0].pages[-1]["runs"][0]["reason"]


@pytest.mark.parametrize(("rate", "expected"), [("0.1", 0), ("1e30", 1)])
def test_in_a_terminal_the_page_stays_until_an_interrupt(
    scenario, tmp_path, capsys, browsers, monkeypatch, rate, expected
):
    """With the last data; the command's status is the run's then."""
    seen = []

    def pressed():
        # There may be no page yet, and one that was begun before the end may be the next, and not the last.
        soon(lambda: browsers[0].statuses[-1:] not in ([], [("running",)]))
        seen.extend(browsers[0].statuses[-1])
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_at_a_terminal", lambda: True)
    monkeypatch.setattr(watch, "_for_ever", pressed)
    status, out, err = run_command(
        capsys, "run", scenario, "--watch", "--set", f"local.optimizer.lr={rate}", "--out", tmp_path / "run"
    )
    assert (status, seen) == (expected, ["failed" if expected else "done"])
    assert err.splitlines()[-1] == f"watch: {browsers[0].url} is served until Ctrl-C"
    assert "saved in" in out


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
