"""A run that goes on one merge at a time, and the page that is served meanwhile."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import edgefl
from edgefl.cli.watch import Watch
from edgefl.runs.callbacks import Both, Progress
from edgefl.show.page.following import Follower
from edgefl.show.page.server import Server

SCENARIO = {
    "name": "watched",
    "task": {"dataset": "digits", "clients": 4, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.1}},
    "fleet": "home-lab",
    "server": {"participants": 2, "rounds": 4},
    "evaluate": {"models": ["global"]},
    "engine": "loop",
}
PATIENCE_S = 60.0


class Answer(NamedTuple):
    """What a server answered; the body as it came, and without its compression."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> bytes:
        """The body, unpacked."""
        return gzip.decompress(self.raw) if self.headers.get("content-encoding") == "gzip" else self.raw

    @property
    def page(self) -> Any:
        """The page that the data hold."""
        return json.loads(self.body)["page"]


def ask(server: Server, path: str = "data", method: str = "GET", **headers: str) -> Answer:
    """Asks below the token, or for a path that begins with a slash."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE_S)
    try:
        where = path if path.startswith("/") else f"/{server.token}/{path}"
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, where, headers={"Accept-Encoding": "gzip", **given})
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Gate(edgefl.Callbacks):
    """Lets a run pass its progress one at a time."""

    def __init__(self) -> None:
        self.waiting, self.may_pass = threading.Semaphore(0), threading.Semaphore(0)
        self.open = False
        self.error: BaseException | None = None

    def progressed(self, so_far: Progress) -> None:
        """Waits to be let through."""
        del so_far
        if not self.open:
            self.waiting.release()
            assert self.may_pass.acquire(timeout=PATIENCE_S)
        if self.error is not None:
            raise self.error


class Watched(NamedTuple):
    """A run in a thread, and its page's server."""

    server: Server
    gate: Gate
    thread: threading.Thread
    watch: Watch

    def reached(self) -> None:
        """Waits for the run's next progress."""
        assert self.gate.waiting.acquire(timeout=PATIENCE_S)

    def go_on(self, steps: int = 1) -> None:
        """Lets it make so many, and waits for the next."""
        for _ in range(steps):
            self.gate.may_pass.release()
            self.reached()

    def end(self, error: BaseException | None = None) -> None:
        """Lets the run end, by an error if there is one."""
        self.gate.error, self.gate.open = error, True
        self.gate.may_pass.release()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive()


@contextmanager
def watched(folder: Path, **settings: Any) -> Iterator[Watched]:
    """A run that waits at its first progress, after the first merge."""
    notes: list[str] = []
    server = Server(Follower(notes.append))
    watch, gate = Watch(server, Console(file=io.StringIO())), Gate()

    def run() -> None:
        with suppress(KeyboardInterrupt):
            edgefl.run({**SCENARIO, **settings}, out=folder, callbacks=Both(watch, gate))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    found = Watched(server, gate, thread, watch)
    try:
        found.reached()
        yield found
        assert notes == []
    finally:
        found.end()
        server.close()


def soon(true: Any) -> None:
    """Waits until something is true."""
    until_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.02)
