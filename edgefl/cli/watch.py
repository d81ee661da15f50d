"""`edgefl run --watch`: the report page of runs, a file that is written again as they go on."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from edgefl.core.errors import in_one_line
from edgefl.trackers import Began, Callbacks, Progress

NAME = "report.html"
# It is written so often at most, and takes a twentieth of the time at most.
_EVERY_S, _REST = 3.0, 20


class Watch(Callbacks):
    """Writes the page of a run, or of its group; the first time that it cannot, that is said, and all."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._folder: Path | None = None
        self._next_s, self._off = 0.0, False

    def began(self, run: Began) -> None:
        if self._folder is None:
            self._folder = run.group_folder
            self._console.print(f"watch: {self._folder / NAME}", soft_wrap=True)
        self.write(live=True)

    def told(self, so_far: Progress) -> None:  # noqa: ARG002 - as all callbacks
        if time.monotonic() >= self._next_s:
            self.write(live=True)

    def write(self, *, live: bool) -> None:
        """Writes the page; one that is live loads itself again."""
        if self._folder is None or self._off:
            return
        from edgefl.show.page.build import page
        from edgefl.show.page.html import write_page

        start_s = time.monotonic()
        try:
            write_page(self._folder / NAME, page([self._folder], live=live, note=lambda _: None))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the page, the runs go on
            self._off = True
            self._console.print(
                f"note: --watch was turned off: {in_one_line(error)}", style="yellow", soft_wrap=True
            )
        end_s = time.monotonic()
        self._next_s = end_s + max(_EVERY_S, _REST * (end_s - start_s))


@contextmanager
def watching(asked: bool, console: Console) -> Iterator[Callbacks]:  # noqa: FBT001 - as the option
    """The page meanwhile, if it was asked for; however the runs end, the last one is final."""
    if not asked:
        yield Callbacks()
        return
    watch = Watch(console)
    try:
        yield watch
    finally:
        watch.write(live=False)
