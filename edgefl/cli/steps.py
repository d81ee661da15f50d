"""Progress bars on standard error, shown where that is a terminal; imports no torch."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Steps(Progress):
    """One bar over a known number of steps; it disappears at the end."""

    def __init__(self, console: Console) -> None:
        columns = (
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
        )
        super().__init__(
            *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal, transient=True
        )
        self._step = self.add_task("getting ready", total=None)

    def show(self, label: str, done: int, total: int) -> None:
        """Shows the step that begins and how many are done."""
        self.update(self._step, description=label, completed=done, total=total)

    def tell(self, label: str, done: int, total: int) -> None:
        """Likewise; where standard error is no terminal, such as a log, in a line of its own."""
        self.show(label, done, total)
        if not self.console.is_terminal:
            self.console.print(f"{done + 1} of {total}: {label}", soft_wrap=True)
