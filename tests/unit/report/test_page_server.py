"""The server of a page that follows runs: who may ask, what is answered, and what it costs the run."""

from __future__ import annotations

import json
import re
import socket
import threading
from contextlib import ExitStack, closing

import pytest
from watched import SCENARIO, ask, soon, watched

import edgefl
from edgefl.report.page import following
from edgefl.report.page.build import page
from edgefl.report.page.following import Follower
from edgefl.report.page.html import data, policy
from edgefl.report.page.server import Server
from edgefl.store import checks, read


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """The page may be made anew at any time."""
    monkeypatch.setattr(following, "_REST", 0)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A run's directory."""
    return edgefl.run(SCENARIO, out=tmp_path_factory.mktemp("runs") / "done", progress=False).folder


@pytest.fixture
def server(done):
    """A server of its page."""
    follower = Follower(pytest.fail)
    follower.follow(done)
    found = Server(follower)
    yield found
    found.close()


def test_only_the_token_opens_the_page(server):
    """Everything else is not found, and says no more."""
    token = server.token
    wrong = [
        "/",
        "/data",
        "/x/",
        f"/{token}",
        f"/{token}x/",
        f"/{token[:-1]}/",
        f"/{token}/x",
        f"/{token}/data/",
        f"//{token}//",
        f"/x/../{token}/",
        f"/{token}/../",
        f"/?/{token}/",
        f"/{token}%2f",
        "/%ff/",
    ]
    for path in wrong:
        answer = ask(server, path)
        assert (path, answer.status, answer.body) == (path, 404, b"404 Not Found\n")
    assert ask(server, "").status == ask(server, "data").status == ask(server, "?x=1").status == 200
    assert len(token) >= 22
    follower = Follower(pytest.fail)
    with closing(Server(follower)) as other:
        assert other.token != token


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:9000", 200),
        ("LOCALHOST", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:80", 403),
        ("localhost.", 403),
        ("", 403),
    ],
)
def test_only_names_of_this_machine_are_answered(server, host, status):
    """A foreign name that leads here (DNS rebinding) opens nothing; a tunnel's port may differ."""
    assert ask(server, "data", Host=host).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "SPAM"])
def test_nothing_but_reading_is_allowed(server, method):
    """Whatever the path."""
    for path in ("data", "/"):
        answer = ask(server, path, method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_the_body(server):
    """The same headers, the length among them."""
    for path in ("", "data", "/none/"):
        head, get = ask(server, path, "HEAD"), ask(server, path)
        assert (head.status, head.raw) == (get.status, b"")
        assert {**head.headers, "date": ""} == {**get.headers, "date": ""}


def test_headers_of_every_answer(server):
    """Nothing is stored, nobody learns the address, and no other page may read or frame it."""
    for path in ("", "data", "/none/"):
        headers = ask(server, path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["server"] == "edgefl"
        assert not [name for name in headers if name.startswith("access-control")]
    answer = ask(server, "")
    (own,) = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', answer.body.decode())
    own = own.replace("&#39;", "'")
    assert own == policy(live=True)
    assert "connect-src 'self'" in own
    assert answer.headers["content-security-policy"] == f"{own}; frame-ancestors 'none'"


def test_the_data_are_the_pages(server, done):
    """The document that Python makes of the runs, compressed for who can read that."""
    packed, plain = ask(server, "data"), ask(server, "data", Accept_Encoding="identity")
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.body == plain.raw == data(page([done], live=True)).encode()
    assert len(packed.raw) < len(plain.raw) / 2
    assert json.loads(plain.raw)["page"]["live"] is True


def test_a_tag_spares_sending_what_is_known(server):
    """The same tag until a run commits something; an old one gets the new data."""
    first = ask(server, "data")
    tag = first.headers["etag"]
    again = ask(server, "data", If_None_Match=tag)
    assert (again.status, again.raw, again.headers["etag"]) == (304, b"", tag)
    assert ask(server, "data", If_None_Match='W/"other"').status == 200


def test_a_run_in_progress_is_followed(tmp_path):
    """Points are added as the run goes on, and it is not hindered: it ends settled, in one file."""
    with watched(tmp_path / "run") as run:
        run.go_on()
        first = ask(run.server)
        assert first.page["runs"][0]["status"] == "running"
        assert [len(curve["x"]["round"]) for curve in first.page["curves"]] == [1]
        assert ask(run.server, If_None_Match=first.headers["etag"]).status == 304
        run.go_on(2)
        second = ask(run.server, If_None_Match=first.headers["etag"])
        assert second.headers["etag"] != first.headers["etag"]
        assert [len(curve["x"]["round"]) for curve in second.page["curves"]] == [2]
        run.end()
        run.server.follower.over()
        last = ask(run.server, If_None_Match=second.headers["etag"])
        assert last.page["runs"][0]["status"] == "done"
        assert [len(curve["x"]["round"]) for curve in last.page["curves"]] == [4]
    assert (tmp_path / "run" / "SHA256SUMS").exists()
    assert not (tmp_path / "run" / "run.sqlite-wal").exists()


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (edgefl.RunError("the disk has gone"), "failed", "the disk has gone"),
        (KeyboardInterrupt(), "interrupted", "KeyboardInterrupt"),
    ],
)
def test_a_run_that_ends_early_shows_it(tmp_path, error, status, reason):
    """With its reason, and all that it had done."""
    with watched(tmp_path / "run") as run:
        run.go_on()
        run.end(error)
        run.server.follower.over()
        (shown,) = ask(run.server).page["runs"]
    assert (shown["status"], reason in shown["reason"]) == (status, True)


def test_a_sweep_shows_all_its_runs_so_far(tmp_path):
    """The first is done when the second has begun; they are one group of two seeds."""
    with watched(tmp_path / "runs", sweep={"seed": [1, 2]}, server={"participants": 2, "rounds": 1}) as run:
        run.go_on()
        assert [one["status"] for one in ask(run.server).page["runs"]] == ["running"]
        run.go_on(2)
        assert [one["status"] for one in ask(run.server).page["runs"]] == ["done", "running"]


def test_a_run_that_ended_while_it_was_read_is_settled_later(tmp_path):
    """A page that was being made keeps the log in place; afterwards there is one file with its digest."""
    with watched(tmp_path / "run") as run:
        run.go_on()
        with read(tmp_path / "run", trusted=True) as reader:
            reader.rows("jobs")
            run.end()
            assert not (tmp_path / "run" / "SHA256SUMS").exists()
        run.watch.close()
        assert (tmp_path / "run" / "SHA256SUMS").exists()
        assert not (tmp_path / "run" / "run.sqlite-wal").exists()
    with read(tmp_path / "run") as reader:
        assert reader.meta["status"] == "done"


def test_following_looks_for_no_damage(tmp_path, monkeypatch):
    """Which would read every row again and again; whoever opens the run otherwise does look."""
    with watched(tmp_path / "run") as run:
        run.go_on()
        calls = []
        monkeypatch.setattr("edgefl.store.reader.damage_of", lambda _: calls.append(1) or {})
        assert ask(run.server).status == 200
        assert calls == []
        with read(tmp_path / "run"):
            assert calls == [1]
    assert checks.is_settled(tmp_path / "run")


def test_the_run_has_the_processor_in_between(done, monkeypatch):
    """After a page that took 2 s nobody gets another for 40 s, however often one asks; the last at once."""
    now, made = [100.0], []
    monkeypatch.setattr(following, "_REST", 20)
    monkeypatch.setattr(following.time, "monotonic", lambda: now[0])
    found = page([done], live=True)

    def slow(*_, **__):
        made.append(now[0])
        now[0] += 2.0
        return found

    monkeypatch.setattr(following, "page", slow)
    tags = iter(range(1000))
    monkeypatch.setattr(following, "changed", lambda _: next(tags))
    follower = Follower(pytest.fail)
    follower.follow(done)
    for _ in range(100):
        now[0] += 1.0
        follower.version()
    assert made == [101.0, 143.0, 185.0]
    follower.over()
    follower.version()
    assert len(made) == 4


def test_one_page_is_made_at_a_time(done, monkeypatch):
    """Who asks meanwhile gets the last one; the first is waited for."""
    follower = Follower(pytest.fail)
    follower.follow(done)
    first = follower.version()
    begun, go_on, made = threading.Event(), threading.Event(), []

    def slow(*given, **how):
        made.append(1)
        begun.set()
        assert go_on.wait(60)
        return page(*given, **how)

    monkeypatch.setattr(following, "page", slow)
    monkeypatch.setattr(following, "changed", lambda _: len(made))
    thread = threading.Thread(target=follower.version)
    thread.start()
    assert begun.wait(60)
    assert follower.version() is first
    go_on.set()
    thread.join(60)
    assert made == [1]


def test_a_page_that_cannot_be_made_is_noted_once(done, monkeypatch):
    """The last one stays; where there is none, the data are not there yet."""
    notes = []
    follower = Follower(notes.append)
    follower.follow(done)

    def broken(*_, **__):
        raise ValueError("no such plot")

    monkeypatch.setattr(following, "page", broken)
    with closing(Server(follower)) as server:
        assert ask(server, "data").status == ask(server, "data").status == 503
        assert "No run yet" in ask(server, "").body.decode()
        assert notes == ["--watch: the page cannot be made: ValueError: no such plot"]
        monkeypatch.setattr(following, "page", page)
        assert ask(server, "data").status == 200
        monkeypatch.setattr(following, "page", broken)
        follower.over()
        assert ask(server, "data").status == 200


def test_before_the_first_run_there_is_a_page_that_waits():
    """It loads itself again."""
    with closing(Server(Follower(pytest.fail))) as server:
        assert ask(server, "data").status == 503
        answer = ask(server, "")
        assert answer.status == 200
        assert 'http-equiv="refresh"' in answer.body.decode()


def test_a_port_that_is_taken_is_told():
    """With what to do."""
    with closing(Server(Follower(pytest.fail))) as server:
        with pytest.raises(edgefl.UserError, match=r"cannot listen on 127\.0\.0\.1") as raised:
            Server(Follower(pytest.fail), server.server_port)
        assert raised.value.hint == "choose another --watch-port"


def test_nobody_else_is_listened_to(server):
    """The socket is bound to this machine's own address, and the address is its."""
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/{server.token}/"


def test_what_is_no_request_disturbs_nobody(server, capsys):
    """Nothing is printed, and the next request is answered."""
    for sent in (
        b"",
        b"\x00\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET " + b"/" * 70_000,
        b"GET /\r\n\r\n",
    ):
        with closing(socket.create_connection(server.server_address)) as one:
            one.sendall(sent)
            one.shutdown(socket.SHUT_WR)
            one.recv(100)
    assert ask(server, "data").status == 200
    assert capsys.readouterr() == ("", "")


def test_idle_connections_leave_the_run_its_threads(server, monkeypatch):
    """There are so many threads at most; once the others are gone, the page is there again."""
    with ExitStack() as opened:
        before = threading.active_count()
        idle = [opened.enter_context(socket.create_connection(server.server_address)) for _ in range(50)]
        idle[-1].settimeout(5)
        assert idle[-1].recv(1) == b""
        assert threading.active_count() - before <= 32
    soon(lambda: threading.active_count() == before)
    assert ask(server, "data").status == 200

    def none(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none)
        for _ in range(40):
            with closing(socket.create_connection(server.server_address)) as one:
                assert one.recv(1) == b""
    assert ask(server, "data").status == 200


def test_a_browser_that_is_there_gets_the_last_page(server):
    """Ending waits for it a moment, and for nobody if nobody has asked."""
    server.finish()
    assert not server.given
    ask(server, "data")
    seen = []
    thread = threading.Thread(target=lambda: (server.finish(), seen.append(server.given)))
    server.given = ""
    thread.start()
    ask(server, "data")
    soon(lambda: not thread.is_alive())
    assert seen == [server.follower.tag]
