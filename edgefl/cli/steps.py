"""A bar on standard error for work of some steps; imports no torch."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Steps:
    """One bar over steps that are known beforehand; nothing where standard error is no terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("getting ready", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, label: str, done: int, total: int) -> None:
        """Says what is next and how much is done."""
        self._progress.update(self._task, description=label, completed=done, total=total)
