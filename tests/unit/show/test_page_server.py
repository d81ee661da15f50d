"""The server of a page that follows runs: who may ask, what is answered, and what it costs the run."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from watched import SCENARIO, ask, watched

import edgefl
from edgefl.show.page import following
from edgefl.show.page.following import Follower
from edgefl.show.page.html import policy
from edgefl.show.page.server import Server


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


def points(answer):
    """How many evaluations each curve of a page has."""
    return [len(one["round"]) for one in answer.page["plots"][0]["frame"]["blocks"]]


def test_a_run_in_progress_is_followed(tmp_path):
    """Points are added as the run goes on, and it is not hindered: it ends settled, in one file."""
    with watched(tmp_path / "run") as run:
        run.go_on()
        first = ask(run.server)
        assert first.page["runs"][0]["status"] == "running"
        assert points(first) == [1]
        assert ask(run.server, If_None_Match=first.headers["etag"]).status == 304
        run.go_on(2)
        second = ask(run.server, If_None_Match=first.headers["etag"])
        assert second.headers["etag"] != first.headers["etag"]
        assert points(second) == [2]
        run.end()
        run.server.follower.over()
        last = ask(run.server, If_None_Match=second.headers["etag"])
        assert last.page["runs"][0]["status"] == "done"
        assert points(last) == [4]
    assert (tmp_path / "run" / "SHA256SUMS").exists()
    assert not (tmp_path / "run" / "run.sqlite-wal").exists()


def test_nobody_else_is_listened_to(server):
    """The socket is bound to this machine's own address, and the address is its."""
    assert server.server_address[0] == "127.0.0.1"
    assert server.url == f"http://127.0.0.1:{server.server_port}/{server.token}/"
