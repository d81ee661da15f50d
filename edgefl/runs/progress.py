"""A live display of running scenarios; plain lines, now and then, where nothing can be redrawn."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Self

from rich.cells import cell_len
from rich.console import Console
from rich.live import Live
from rich.text import Text

from edgefl.analysis.metrics import MODELS
from edgefl.core.errors import UserError
from edgefl.core.units import show_bytes, show_seconds, show_share
from edgefl.runs.tracking import Several
from edgefl.show.table import visible
from edgefl.trackers import Began, Callbacks, End, Progress

# Between two plain lines of a run, which a log may keep for ever.
_EVERY_S = 10.0
# Cells: of a name at most, and of the bar.
_NAME, _BAR = 24, 20


class Display(Callbacks):
    """The run in progress: how far it is, its clock, last accuracies, traffic, waste and time left.

    Attributes:
        redraws: whether its last lines can be redrawn; otherwise plain lines are printed.
    """

    def __init__(self, console: Console) -> None:
        """Uses a console; inside of a ``with`` the display is shown, at first as planning."""
        self.console = console
        # A setting that asks for colours makes no terminal of a file.
        self.redraws = console.is_interactive and console.file.isatty()
        self._began_s = self._printed_s = time.monotonic()
        self._run: Began | None = None
        self._so_far: Progress | None = None
        self._name, self._engine, self._failure = "planning", "", ""
        self._live = Live(get_renderable=self._shown, console=console, transient=True, refresh_per_second=8)

    def __enter__(self) -> Self:
        if self.redraws:
            self._live.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._live.stop()
        self._end()
        if error is None:
            self._say_failure()
        elif isinstance(error, KeyboardInterrupt):
            run, kept = self._run, " before anything was saved"
            if run is not None:
                folder = run.group_folder if run.runs > 1 else run.folder
                kept = f"; to go on: edgefl run --resume {quote(str(folder))}"
            self.console.print(f"interrupted{kept}", style="red", soft_wrap=True)

    def began(self, run: Began) -> None:
        """Prints the notes, and shows the run."""
        self._say_failure()
        for note in run.notes:
            self.console.print(f"note: {note}", style="yellow", soft_wrap=True)
        name = visible(run.name).replace("\n", " ")
        self._name = name if run.runs == 1 else f"{run.number}/{run.runs} {name}"
        self._run, self._so_far = run, None
        self._began_s = self._printed_s = time.monotonic()

    def told(self, so_far: Progress) -> None:
        """Notes what is shown next, and prints a plain line if the last one was long ago."""
        if so_far.engine != self._engine:
            self._engine = so_far.engine
            self.console.print(self._engine, style="dim", soft_wrap=True)
        self._so_far = so_far if so_far.version else None
        if not self.redraws and time.monotonic() - self._printed_s >= _EVERY_S:
            self._printed_s = time.monotonic()
            of = "" if so_far.rounds is None else f" of {so_far.rounds}"
            parts = [f"{_ended(so_far)}{of} rounds", _figures(so_far), *_left(so_far)]
            self.console.print(f"{self._name}: {', '.join(parts)}", soft_wrap=True)

    def ended(self, end: End) -> None:
        self._end()
        # A command that ends with an error says so itself.
        self._failure = f"{end.name} failed: {end.reason}" if end.status == "failed" else ""

    def _say_failure(self) -> None:
        if self._failure:
            self.console.print(self._failure, style="red", soft_wrap=True)
        self._failure = ""

    def _end(self) -> None:
        """Prints the last figures of the run that is shown, which then stay."""
        if self._so_far is not None:
            room = self.console.width if self.redraws else None
            line = _figures(self._so_far, None if room is None else room - len(self._name) - 2)
            self.console.print(f"{self._name}: {line}", soft_wrap=not self.redraws)
        self._so_far, self._name = None, ""

    def _shown(self) -> Text:
        """What is redrawn: lines that end where the console does."""
        if not self._name:
            return Text()
        line = Text(self._name, no_wrap=True, overflow="crop")
        line.truncate(_NAME, overflow="ellipsis")
        words = [show_seconds(round(time.monotonic() - self._began_s))]
        if self._run is None:
            return line.append(f"  {words[0]}")
        so_far, rounds = self._so_far, self._run.rounds
        ended = 0 if so_far is None else _ended(so_far)
        words = [
            str(ended) if rounds is None else f"{ended}/{rounds}",
            *words,
            *(_left(so_far) if so_far else []),
        ]
        line.append("  ".join(["", *words]))
        if rounds is not None:
            done = _BAR * ended // rounds
            line.append("  " + "━" * done, "bar.complete").append("─" * (_BAR - done), "bar.back")
        return line if so_far is None else line.append(f"\n  {_figures(so_far, self.console.width - 2)}")


def _ended(so_far: Progress) -> int:
    """How many rounds have ended; exchanges after the last are none."""
    ended = max(so_far.round + 1, 0)
    return ended if so_far.rounds is None else min(ended, so_far.rounds)


def _left(so_far: Progress) -> list[str]:
    """The time left, if something is known of it; an estimate has two digits."""
    return [f"{show_seconds(float(f'{so_far.left_s:.1e}'))} left"] if so_far.left_s else []


def _figures(so_far: Progress, width: int | None = None) -> str:
    """The last scores, the virtual clock, traffic and waste; the first where there is no room for all."""
    found = so_far.figures
    scores = {model: found.get(f"accuracy.{model}.value") for model in MODELS}
    parts = [f"{model} {score:.1%}" for model, score in scores.items() if score is not None]
    parts += [f"clock {show_seconds(found['virtual_s'])}", show_bytes(found["bytes"])]
    if found["bytes"]:
        parts.append(f"{show_share(found['wasted.bytes'] / found['bytes'])} wasted")
    while width is not None and len(parts) > 1 and cell_len(", ".join(parts)) > width:
        parts.pop()
    return ", ".join(parts)


@contextmanager
def shown(
    callbacks: Callbacks | None,
    progress: bool | None,  # noqa: FBT001 - as in run
    trackers: Sequence[tuple[str, Callbacks]],
) -> Iterator[Callbacks]:
    """What a group of runs calls: a display, a user's callbacks and trackers, as ``run`` says.

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
    each = [callbacks] if callbacks else []
    if progress:
        with Display(console) as display:
            yield Several(display, *each, trackers=trackers)
    else:
        yield Several(*each, trackers=trackers) if each or trackers else Callbacks()
