"""A live display of running scenarios on standard error; plain lines where that is no terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from edgefl.core.units import show_seconds
from edgefl.runs import Callbacks


class Display(Callbacks):
    """One bar a run, with its last accuracy and the virtual time."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description:<16.16}"),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TextColumn("{task.fields[shown]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None
        self._scores = ""
        self._clock = ""
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def planning(self, runs: int) -> None:
        """Says that planning begins."""
        self._task = self._progress.add_task(f"planning {runs} run{'s' * (runs > 1)}", total=None, shown="")

    def planned(self, notes: Sequence[str]) -> None:
        """Ends the planning bar and prints what was refused."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = None
        for note in notes[:10]:
            self._console.print(f"note: {note}", style="yellow", soft_wrap=True)
        if len(notes) > 10:  # noqa: PLR2004 - a screen has room for ten
            self._console.print(
                f"note: and {len(notes) - 10} more, in the run's table 'refusals'", style="yellow"
            )

    def started(self, name: str, rounds: int, folder: Path) -> None:
        """Begins a run's bar."""
        self._folder = folder
        self._scores = self._clock = ""
        self._task = self._progress.add_task(name, total=rounds, shown="")

    def merged(self, round_: int, t_s: float, loss: float | None) -> None:
        """Moves the bar."""
        del loss
        self._clock = f"clock {show_seconds(t_s)}"
        self._show(completed=max(round_ + 1, 0))

    def evaluated(self, accuracies: dict[str, float]) -> None:
        """Shows the accuracies."""
        self._scores = ", ".join(f"{model} {value:.1%}" for model, value in accuracies.items())
        self._show()

    def _show(self, completed: int | None = None) -> None:
        if self._task is None:
            return
        total = self._progress.tasks[self._progress.task_ids.index(self._task)].total
        at_most = None if completed is None else min(completed, int(total or completed))
        self._progress.update(
            self._task, completed=at_most, shown=" ".join(filter(None, (self._scores, self._clock)))
        )

    def interrupted(self) -> None:
        """Says what an interrupt leaves."""
        self._progress.stop()
        where = f" in {self._folder}" if self._folder else "; nothing was saved yet"
        self._console.print(
            f"interrupted: finished runs and what was saved stay{where}", style="red", soft_wrap=True
        )

    def ended(self, name: str, status: str, reason: str) -> None:
        """Says how a run ended."""
        if status != "done":
            self._console.print(f"{name} failed: {reason}", style="red", soft_wrap=True, markup=False)
        elif not self._console.is_terminal:
            shown = ", ".join(filter(None, (self._scores, self._clock)))
            self._console.print(f"{name}: {shown}", soft_wrap=True)
