"""A live display of running scenarios; plain lines where nothing can be redrawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from edgefl.core.errors import UserError
from edgefl.core.units import show_seconds
from edgefl.runs.callbacks import Both, Callbacks

# More notes would fill a screen.
_MOST_NOTES = 10


class Display(Progress, Callbacks):
    """One bar per run, with its last accuracies and the virtual time."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            # A name may have brackets.
            TextColumn("{task.description:<16.16}", markup=False),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            disable=not _live(console),
        )
        self._bar: TaskID | None = None
        self._rounds: int | None = None
        self._scores = self._clock = self._engine = ""
        self._folder: Path | None = None

    def planning(self, runs: int) -> None:
        """Shows that planning has begun."""
        self._bar = self.add_task(f"planning {runs} run{'s' * (runs > 1)}", total=None, shown="")

    def planned(self, notes: Sequence[str]) -> None:
        """Removes the planning bar and prints which clients were refused."""
        if self._bar is not None:
            self.remove_task(self._bar)
        self._bar = None
        for note in notes[:_MOST_NOTES]:
            self.console.print(f"note: {note}", style="yellow", soft_wrap=True)
        if len(notes) > _MOST_NOTES:
            more = len(notes) - _MOST_NOTES
            self.console.print(f"note: {more} more; see the runs' tables 'refusals'", style="yellow")

    def started(self, name: str, rounds: int | None, folder: Path) -> None:
        """Adds a run's bar."""
        self._folder = folder
        self._scores = self._clock = ""
        self._rounds = rounds
        self._bar = self.add_task(name, total=rounds, shown="")

    def engine(self, line: str) -> None:
        """Prints what trains, unless it is the same as before."""
        if line != self._engine:
            self.console.print(line, style="dim", soft_wrap=True)
        self._engine = line

    def merged(self, round_: int, t_s: float, loss: float | None) -> None:
        """Moves the bar."""
        del loss
        self._clock = f"clock {show_seconds(t_s)}"
        ended = max(round_ + 1, 0)
        self._show(ended if self._rounds is None else min(ended, self._rounds))

    def evaluated(self, accuracies: dict[str, float]) -> None:
        """Shows the accuracies."""
        self._scores = ", ".join(f"{model} {value:.1%}" for model, value in accuracies.items())
        self._show()

    def _show(self, merged: int | None = None) -> None:
        if self._bar is not None:
            shown = " ".join(filter(None, (self._scores, self._clock)))
            self.update(self._bar, completed=merged, shown=shown)

    def interrupted(self) -> None:
        """Prints what an interrupt leaves on disk."""
        self.stop()
        kept = f"; what was saved stays in {self._folder}" if self._folder else " before anything was saved"
        self.console.print(f"interrupted{kept}", style="red", soft_wrap=True)

    def ended(self, name: str, status: str, reason: str) -> None:
        """Prints how a run ended."""
        if status != "done":
            self.console.print(f"{name} failed: {reason}", style="red", soft_wrap=True)
        elif self.disable:
            shown = ", ".join(filter(None, (self._scores, self._clock)))
            self.console.print(f"{name}: {shown}", soft_wrap=True)


def _live(console: Console) -> bool:
    """Whether a console can redraw its last lines; a notebook can with ipywidgets alone."""
    return find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal


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
