"""A report page of runs in progress, made anew when somebody asks for it and they have gone on."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from edgefl.core.errors import UserError
from edgefl.show.page.build import page
from edgefl.show.page.html import data, html
from edgefl.show.page.records import Page
from edgefl.store import changed, runs_in

# The run is left alone for so many times as long as a page took, which thus costs it 5% of its time at most.
_REST = 20
_QUICK = 1


@dataclass(frozen=True)
class Version:
    """The page as of one moment.

    Attributes:
        page: it.
        tag: names the moment: it changes when a run commits, begins or ends.
    """

    page: Page
    tag: str

    @cached_property
    def html(self) -> bytes:
        """The page as HTML, compressed by gzip."""
        return gzip.compress(html(self.page).encode(), _QUICK, mtime=0)

    @cached_property
    def data(self) -> bytes:
        """What the page's script asks for, JSON, compressed by gzip."""
        return gzip.compress(data(self.page).encode(), _QUICK, mtime=0)


class Follower:
    """The page of runs that this process writes; any thread may ask for it.

    Nothing happens until somebody asks. One page is made at a time, and none before the run has had the
    processor for a while.

    Attributes:
        quiet: held, no page is made, and nobody reads the runs.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        """Follows nothing yet.

        Args:
            note: called with a line where the page cannot be made.
        """
        self._note = note
        self._folder: Path | None = None
        self._making = self.quiet = threading.Lock()
        self._last: Version | None = None
        self._next_s = 0.0
        self._over = False
        self._noted: set[str] = set()

    def follow(self, folder: Path) -> None:
        """Says which runs: a run's directory, or a group's."""
        self._folder = folder

    def over(self) -> None:
        """The runs have ended: the next page is the last, is made at once and asks for no other."""
        self._over = True

    @property
    def tag(self) -> str:
        """The tag of what the runs have committed."""
        found = [] if self._folder is None else [changed(run) for run in self._runs(self._folder)]
        return hashlib.blake2b(repr((found, self._over)).encode(), digest_size=12).hexdigest()

    def version(self) -> Version | None:
        """The page, as of now or of a moment ago; None while there is no run to show."""
        if not self._making.acquire(blocking=self._last is None):
            return self._last
        try:
            if self._over or time.monotonic() >= self._next_s:
                self._renew()
        finally:
            self._making.release()
        return self._last

    def _renew(self) -> None:
        """Makes the page, unless it is there as of now."""
        # Before the runs are read: what they commit meanwhile is in the next page.
        over, tag, folder = self._over, self.tag, self._folder
        if folder is None or (self._last is not None and self._last.tag == tag) or not self._runs(folder):
            return
        start_s = time.monotonic()
        try:
            version = Version(page([folder], live=not over, note=lambda _: None), tag)
            _ = version.data
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the page, the run goes on
            self._complain(error)
        else:
            self._last = version
        end_s = time.monotonic()
        self._next_s = end_s + _REST * (end_s - start_s)

    def _runs(self, folder: Path) -> Sequence[Path]:
        try:
            return runs_in(folder)
        except (UserError, OSError):
            return []

    def _complain(self, error: Exception) -> None:
        line = f"--watch: the page cannot be made: {type(error).__name__}: {error}"
        if line not in self._noted:
            self._noted.add(line)
            self._note(line)
