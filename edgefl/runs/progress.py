"""A live display of running scenarios; plain lines, now and then, where nothing can be redrawn."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import Self

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from edgefl.core.errors import UserError
from edgefl.core.units import show_bytes, show_seconds, show_share
from edgefl.runs.callbacks import Both, Callbacks, Progress
from edgefl.show.texts import visible
from edgefl.store import is_group

# More notes would fill a screen.
_MOST_NOTES = 10
# Between two plain lines of a run, which a log may keep for ever.
_EVERY_S = 10.0
# Cells: of a name at most, and of a bar at most and at least.
_NAME, _BAR, _LEAST_BAR = 24, 20, 5
_INDENT = "  "
# Settings of rich's that have it take any file for a terminal.
_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")


class Display(Callbacks):
    """The run in progress: how far it is, its clock, last accuracies, traffic, waste and time left.

    Attributes:
        console: where to.
        redraws: whether its last lines can be redrawn; otherwise plain lines are printed.
    """

    def __init__(self, console: Console) -> None:
        """Uses a console; inside of a ``with`` the display is shown."""
        self.console = console
        self.redraws = _redraws(console)
        self._runs = self._number = 0
        self._began_s = self._printed_s = 0.0
        self._planning = False
        self._name = self._engine = ""
        self._rounds: int | None = None
        self._so_far: Progress | None = None
        self._folder: Path | None = None
        self._live = Live(get_renderable=self._shown, console=console, transient=True, refresh_per_second=8)

    def __enter__(self) -> Self:
        if self.redraws:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def planning(self, runs: int) -> None:
        """Shows that planning has begun."""
        self._runs, self._planning, self._began_s = runs, True, time.monotonic()

    def planned(self, notes: Sequence[str]) -> None:
        """Prints which clients were refused."""
        self._planning = False
        for note in notes[:_MOST_NOTES]:
            self.console.print(f"note: {note}", style="yellow", soft_wrap=True)
        if len(notes) > _MOST_NOTES:
            more = len(notes) - _MOST_NOTES
            self.console.print(f"note: {more} more; see the runs' tables 'refusals'", style="yellow")

    def started(self, name: str, rounds: int | None, folder: Path) -> None:
        """Shows a run."""
        self._number += 1
        name = visible(name).replace("\n", " ")
        self._name = name if self._runs <= 1 else f"{self._number}/{self._runs} {name}"
        self._rounds, self._folder, self._so_far = rounds, folder, None
        self._began_s = self._printed_s = time.monotonic()

    def engine(self, line: str) -> None:
        """Prints what trains, unless it is the same as before."""
        if line != self._engine:
            self.console.print(line, style="dim", soft_wrap=True)
        self._engine = line

    def progressed(self, so_far: Progress) -> None:
        """Notes what is shown next, and prints a plain line if the last one was long ago."""
        self._so_far = so_far
        if not self.redraws and time.monotonic() - self._printed_s >= _EVERY_S:
            self._printed_s = time.monotonic()
            of = "" if self._rounds is None else f" of {self._rounds}"
            parts = [f"{_ended(so_far)}{of} rounds", _figures(so_far), *_left(so_far)]
            self.console.print(f"{self._name}: {', '.join(parts)}", soft_wrap=True)

    def interrupted(self) -> None:
        """Prints what an interrupt leaves on disk."""
        self._stop()
        kept = " before anything was saved"
        if self._folder is not None:
            folder = self._folder.parent if is_group(self._folder.parent) else self._folder
            kept = f"; to go on: edgefl run --resume {quote(str(folder))}"
        self.console.print(f"interrupted{kept}", style="red", soft_wrap=True)

    def ended(self, name: str, status: str, reason: str) -> None:
        """Prints how a run ended."""
        self._end()
        if status != "done":
            self.console.print(f"{name} failed: {reason}", style="red", soft_wrap=True)

    def _stop(self) -> None:
        self._live.stop()
        self._end()

    def _end(self) -> None:
        """Prints the last figures of the run that is shown, which then stay."""
        if self._so_far is not None:
            room = self.console.width if self.redraws else None
            line = _figures(self._so_far, None if room is None else room - len(self._name) - 2)
            self.console.print(f"{self._name}: {line}", soft_wrap=not self.redraws)
        self._so_far, self._name = None, ""

    def _shown(self) -> RenderableType:
        """What is redrawn: lines that are no wider than the console."""
        if not self._name and not self._planning:
            return Text()
        elapsed = show_seconds(round(time.monotonic() - self._began_s))
        if self._planning:
            return self._line(f"planning {self._runs} run{'s' * (self._runs > 1)}", None, elapsed)
        so_far = self._so_far
        ended = 0 if so_far is None else _ended(so_far)
        count = str(ended) if self._rounds is None else f"{ended}/{self._rounds}"
        share = None if self._rounds is None else ended / self._rounds
        told = "  ".join([count, elapsed, *([] if so_far is None else _left(so_far))])
        lines: list[RenderableType] = [self._line(self._name, share, told)]
        if so_far is not None:
            figures = _figures(so_far, self.console.width - len(_INDENT))
            lines.append(Text(_INDENT + figures, no_wrap=True, overflow="ellipsis"))
        return Group(*lines)

    def _line(self, name: str, share: float | None, told: str) -> Table:
        """A name, a bar where there is room for one, and a text that is shown in full."""
        table = Table.grid(padding=(0, 1))
        table.add_column(max_width=_NAME, no_wrap=True, overflow="ellipsis")
        room = self.console.width - min(cell_len(name), _NAME) - len(told) - 2
        pulse = share is None
        bar = ProgressBar(1.0, share or 0.0, width=min(room, _BAR), pulse=pulse)
        table.add_column()
        table.add_column(no_wrap=True, overflow="ellipsis")
        table.add_row(Text(name), bar if room >= _LEAST_BAR else "", Text(told))
        return table


def _ended(so_far: Progress) -> int:
    """How many rounds have ended; exchanges after the last are none."""
    ended = max(so_far.round + 1, 0)
    return ended if so_far.rounds is None else min(ended, so_far.rounds)


def _left(so_far: Progress) -> list[str]:
    """The time left, if something is known of it."""
    return [f"{show_seconds(_two_digits(so_far.left_s))} left"] if so_far.left_s else []


def _two_digits(seconds: float) -> float:
    """An estimate without the digits that it does not have."""
    return float(f"{seconds:.1e}")


def _figures(so_far: Progress, width: int | None = None) -> str:
    """The last scores, the virtual clock, traffic and waste; less of them where there is no room."""
    texts = [", ".join(_parts(so_far, without)) for without in range(_MOST_WITHOUT + 1)]
    return next((text for text in texts if width is None or cell_len(text) <= width), texts[-1])


_MOST_WITHOUT = 4


def _parts(so_far: Progress, without: int) -> Iterator[str]:
    """The figures; what is said without is, one after the other: "global", "clock", waste and traffic."""
    for model, accuracy in so_far.accuracies.items():
        yield f"{accuracy:.1%}" if without >= 1 and model == "global" else f"{model} {accuracy:.1%}"
    yield f"{'clock ' if without < 2 else ''}{show_seconds(so_far.t_s)}"  # noqa: PLR2004 - the second step
    if without < _MOST_WITHOUT:
        yield show_bytes(so_far.bytes)
    if so_far.wasted_share is not None and without < _MOST_WITHOUT - 1:
        yield f"{show_share(so_far.wasted_share)} wasted"


def _redraws(console: Console) -> bool:
    """Whether a console can redraw its last lines; a notebook can with ipywidgets alone."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    forced = any(name in os.environ for name in _FORCED) and not console.file.isatty()
    return console.is_terminal and not console.is_dumb_terminal and not forced


@contextmanager
def shown(callbacks: Callbacks | None, progress: bool | None) -> Iterator[Callbacks]:  # noqa: FBT001 - as in run
    """What a group of runs calls: a display, a user's callbacks, or both.

    Args:
        callbacks: the user's.
        progress: whether progress is shown; None shows it in a terminal or a notebook, unless there are
            callbacks.

    Raises:
        UserError: the callbacks are of another class.
    """
    if callbacks is not None and not isinstance(callbacks, Callbacks):
        raise UserError(
            "callbacks must be an object of a subclass of edgefl.Callbacks",
            where="callbacks",
            hint="pass an object, not its class" if isinstance(callbacks, type) else "",
        )
    console = Console(stderr=True, highlight=False, markup=False)
    if progress is None:
        progress = callbacks is None and (console.is_terminal or console.is_jupyter)
    if not progress:
        yield callbacks or Callbacks()
        return
    with Display(console) as display:
        yield display if callbacks is None else Both(display, callbacks)
