"""`edgefl run --watch`: the report page of the runs in progress, on 127.0.0.1."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from edgefl.core.errors import EdgeflError
from edgefl.runs.callbacks import Both, Callbacks
from edgefl.store import is_settled, settle_later

if TYPE_CHECKING:
    from edgefl.show.page.server import Server


class Watch(Callbacks):
    """Tells a page which runs to follow; does nothing without a server."""

    def __init__(self, server: Server | None, console: Console) -> None:
        """Takes a server that listens.

        Args:
            server: None if there is none.
            console: where to say how long the page stays.
        """
        self._server = server
        self._console = console
        self._runs = 1
        self._folder: Path | None = None
        self._finished = False

    def beside(self, callbacks: Callbacks) -> Callbacks:
        """Other callbacks, and this."""
        return callbacks if self._server is None else Both(callbacks, self)

    def planning(self, runs: int) -> None:
        """Notes whether there will be a group."""
        self._runs = runs

    def started(self, name: str, rounds: int | None, folder: Path) -> None:
        """Follows the run, with those of its group before it."""
        del name, rounds
        self._folder = folder
        if self._server is not None:
            self._server.follower.follow(folder if self._runs == 1 else folder.parent)

    def ended(self, name: str, status: str, reason: str) -> None:
        """Settles a run whose directory was being read when it ended."""
        del name, status, reason
        if self._server is not None and self._folder is not None and not is_settled(self._folder):
            with self._server.follower.quiet:
                settle_later(self._folder)

    def stay(self) -> None:
        """Serves the page until Ctrl-C, if somebody is there to press it."""
        if self._server is not None and _at_a_terminal():
            self._server.follower.over()
            self._console.print(f"watch: {self._server.url} is served until Ctrl-C", soft_wrap=True)
            with suppress(KeyboardInterrupt):
                _for_ever()

    def close(self) -> None:
        """After the runs, however they ended: shows a browser that is there how, and ends."""
        if self._server is not None:
            self.ended("", "", "")
            self._server.finish()
            self._server.close()


@contextmanager
def watching(asked: bool, port: int | None, console: Console) -> Iterator[Watch]:  # noqa: FBT001 - as the option
    """Serves the page of runs meanwhile; where that cannot be, a note says so.

    Args:
        asked: whether to.
        port: None for any that is free.
        console: where the page's address is printed.
    """

    def note(line: str) -> None:
        console.print(f"note: {line}", style="yellow", soft_wrap=True)

    server = None
    if asked or port is not None:
        from edgefl.show.page.following import Follower
        from edgefl.show.page.server import Server

        try:
            server = Server(Follower(note), port or 0)
        except (EdgeflError, RuntimeError) as error:
            # Python says so of a thread that cannot be started.
            what = error.what if isinstance(error, EdgeflError) else error
            note(f"--watch: {what}; the run goes on without the page")
        else:
            console.print(f"watch: {server.url}", soft_wrap=True)
    watch = Watch(server, console)
    try:
        yield watch
    finally:
        watch.close()


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _for_ever() -> None:
    threading.Event().wait()
