"""Progress bars on standard error; imports no torch."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)


class Bars:
    """A live display of bars; shows nothing if standard error is not a terminal.

    Args:
        console: standard error.
        columns: those of each bar; the time elapsed is added.
        transient: whether the bars disappear at the end.
    """

    def __init__(self, console: Console, *columns: ProgressColumn, transient: bool = False) -> None:
        self._progress = Progress(
            *columns,
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=transient,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class Steps(Bars):
    """One bar over a known number of steps."""

    def __init__(self, console: Console) -> None:
        columns = BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}")
        super().__init__(console, *columns, transient=True)
        self._task = self._progress.add_task("getting ready", total=None)

    def show(self, label: str, done: int, total: int) -> None:
        """Shows the step that begins and how many are done."""
        self._progress.update(self._task, description=label, completed=done, total=total)
