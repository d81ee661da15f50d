"""Finished runs, and runs in progress, in hand: their tables, summaries and settings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from rich.console import RenderableType

from edgefl.analysis.settings import settings_of
from edgefl.analysis.summary import Summary, summaries
from edgefl.analysis.summary import summary as summary_of
from edgefl.core.documents import document
from edgefl.core.errors import UserError, quoted
from edgefl.core.host import needs
from edgefl.core.notes import note
from edgefl.core.user_code import asked
from edgefl.show.answers import Shown, several
from edgefl.show.charts import PlotChoice, charts
from edgefl.show.compare import Comparison, Summaries, comparison
from edgefl.show.frames import sources, to_arrow, to_pandas
from edgefl.show.table import Line
from edgefl.store.folders import is_run, runs_in
from edgefl.store.reader import read

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from edgefl.analysis.explain.explain import Explanation, RoundExplanation

UNREADABLE = "unreadable"


@dataclass(frozen=True, repr=False)
class RunResult(Shown):
    """One run; its tables are read from its directory when they are asked for.

    Attributes:
        folder: its directory.
        status: "done", "failed", "running", "killed", "interrupted", or "unreadable".
        reason: why it failed or cannot be read; empty otherwise.
    """

    name: str
    folder: Path
    status: str
    reason: str

    def __repr__(self) -> str:
        return f"RunResult({self.name!r}, {self.status}, {str(self.folder)!r})"

    def __rich__(self) -> RenderableType:
        return Result(self.folder, (self,)).__rich__()

    def table(self, name: str) -> list[dict[str, Any]]:
        """One of the run's tables as a list of dicts.

        Args:
            name: "jobs", "events", "merges", "evaluations", "client_evaluations", "measures", "clients",
                "class_counts", "kinds", "exchanges", "prices", "payloads", "refusals" or "settled_tails".

        Raises:
            UserError: there is no such table, or the run cannot be read.
        """
        with read(self.folder) as reader:
            return reader.rows(name)

    @overload
    def frame(self, table: str, kind: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def frame(self, table: str, kind: Literal["arrow"]) -> pa.Table: ...
    def frame(self, table: str, kind: str = "pandas") -> pd.DataFrame | pa.Table:
        """One of the run's tables as a data frame; ``run`` and ``seed`` stand before its own columns.

        Args:
            table: as in ``table``.
            kind: as in ``Result.frame``.

        Raises:
            UserError: the library is not installed, there is no such table or kind, or the run cannot be
                read.
        """
        return _frame((self,), table, kind)

    def plot(self, x: str = "time", y: str = "accuracy", **options: Any) -> Figure:
        """Accuracy or loss against cost, as a Matplotlib figure; see ``Result.plot``.

        Raises:
            UserError: as ``Result.plot``.
        """
        return Result(self.folder, (self,)).plot(x, y, **options)

    def timeline(
        self,
        path: str | Path,
        *,
        clients: Iterable[int] | None = None,
        rounds: tuple[int, int] | None = None,
    ) -> Path:
        """Writes what happened in the run as a trace that https://ui.perfetto.dev opens.

        What is left out is said in notes. A file that is there is overwritten.

        Args:
            path: the file, such as "run.pftrace".
            clients: those that are shown; None for all that had a job, or for as many as one trace holds.
            rounds: the first and the last round that are shown, from 0; None for all.

        Returns:
            The path.

        Raises:
            UserError: the run cannot be read, has no such clients or rounds, or they have too many jobs.
            RunError: the file cannot be written.
        """
        needs("perfetto", "timelines need", "timeline")
        from edgefl.show.perfetto.build import write_timeline
        from edgefl.show.perfetto.choice import TimelineChoice

        with read(self.folder) as reader:
            named = None if clients is None else [(one, one) for one in clients]
            write_timeline(reader, Path(path), TimelineChoice(named, rounds), note=note)
        return Path(path)

    def summary(self, target: float | None = None) -> Summary:
        """The run's figures: what ``edgefl compare`` shows.

        Args:
            target: an accuracy in (0, 1]; None for the run's own.

        Raises:
            UserError: the run cannot be read, or the target is out of range.
        """
        with read(self.folder) as reader:
            return summary_of(reader, target)

    @overload
    def explain(self, round: None = None) -> Explanation: ...
    @overload
    def explain(self, round: int) -> RoundExplanation: ...
    def explain(self, round: int | None = None) -> Explanation | RoundExplanation:  # noqa: A002 - as the option
        """Why the run, or one of its rounds, took as long as it did: what ``edgefl explain`` shows.

        Args:
            round: counted from 0; -1 stands for what is before the first, the number of rounds for what is
                after the last. None for all rounds together.

        Raises:
            UserError: the run cannot be read, nothing was merged yet, or there is no such round.
        """
        # Few ask, and it takes a while to load.
        from edgefl.analysis.explain.explain import explain as explained

        with read(self.folder) as reader:
            return explained(reader, round)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """All settings of the run by dotted key, defaults included, such as ``method.temperature``.

        Lists are JSON texts. The name, the notes and the engine, which change no result, are left out.

        Raises:
            UserError: the run cannot be read.
        """
        with read(self.folder) as reader:
            settings, _ = settings_of(reader)
        return {
            key: json.dumps(value) if isinstance(value, list) else value for key, value in settings.items()
        }


@dataclass(frozen=True, repr=False)
class Result(Shown):
    """A group of runs, or a single one.

    Attributes:
        folder: the group's directory; of a single run its own.
        runs: in the order of the sweep.
    """

    folder: Path
    runs: tuple[RunResult, ...]

    def __repr__(self) -> str:
        counts = Counter(run.status for run in self.runs)
        states = ", ".join(f"{count} {status}" for status, count in counts.items())
        return f"Result({str(self.folder)!r}, {len(self.runs)} run{'s' * (len(self.runs) != 1)}: {states})"

    def __rich__(self) -> RenderableType:
        found = self.readable()
        return comparison(found) if found else Line(repr(self))

    @property
    def document(self) -> Any:
        """Plain data: what ``edgefl run --json`` prints."""
        return {"group_dir": str(self.folder), **document(Comparison(self.readable()))}

    def readable(self) -> list[Summary]:
        """The figures of runs that have a directory; where a disk is full, it may not tell how one ended."""
        saved = [run for run in self.runs if run.status != UNREADABLE and is_run(run.folder)]
        found = summaries([run.folder for run in saved])
        return [
            replace(one, status=run.status, reason=run.reason) for one, run in zip(found, saved, strict=True)
        ]

    @property
    def failed(self) -> tuple[RunResult, ...]:
        """The runs that failed, or were interrupted or killed."""
        return tuple(run for run in self.runs if run.status in {"failed", "interrupted", "killed"})

    def summary(self, target: float | None = None) -> Summaries:
        """Each run's figures: what ``edgefl compare`` shows; without those that cannot be read.

        Args:
            target: an accuracy in (0, 1]; None for each run's own.

        Raises:
            UserError: the target is out of range, or no run can be read.
        """
        return Summaries(run.summary(target) for run in self._readable)

    @overload
    def frame(self, table: str, kind: Literal["pandas"] = "pandas") -> pd.DataFrame: ...
    @overload
    def frame(self, table: str, kind: Literal["arrow"]) -> pa.Table: ...
    def frame(self, table: str, kind: str = "pandas") -> pd.DataFrame | pa.Table:
        """One table of all runs as a data frame; without the runs that cannot be read.

        Before the table's own columns are ``run``, the run's name; ``seed``; and a column for each setting
        in which the runs differ, by its dotted key, such as ``method.temperature`` and ``method.name``. A run
        without a setting has none there. Columns have the types of the table's: what is missing is NaN among
        reals, ``pandas.NA`` among integers, which are ``Int64`` then, and null in Arrow.

        Args:
            table: as in ``RunResult.table``.
            kind: "pandas" for a DataFrame, "arrow" for a pyarrow Table.

        Raises:
            UserError: the library is not installed, there is no such table or kind, or no run can be read.
        """
        return _frame(self._readable, table, kind)

    def plot(
        self,
        x: str = "time",
        y: str = "accuracy",
        *,
        model: str | None = None,
        columns: int | None = None,
        log_x: bool = False,
        target: float | Sequence[float] | None = None,
        ax: Axes | None = None,
    ) -> Figure:
        """Accuracy or loss against cost, or a target's cost, as a figure: what ``edgefl plot`` writes.

        Runs that differ in nothing but their seeds are one line, their mean, in a band of its 95% interval
        (Student's t, n - 1), at each evaluation by itself. What cannot be drawn is left out, with a note.

        Args:
            x: "time", "round", "epochs", "bytes", "joules" or "client_seconds"; several as "time,bytes", side
                by side.
            y: "accuracy", "loss", or "target" for the time, bytes or joules until a target was reached.
            model: "global" or "personal"; None for "global", unless no run has evaluated one.
            columns: the width: one column of a paper (3.5 in) or two (7.16 in); None for 2 if x are several.
            log_x: whether x is logarithmic.
            target: accuracies in (0, 1]: lines, or what the runs had to reach; there, None for their own.
            ax: axes to draw one x into, without a legend and whatever the width; None for a new figure.

        Returns:
            The figure. A new one is not registered with pyplot: a notebook shows it where it is a cell's
            value, and nothing has to be closed.

        Raises:
            UserError: Matplotlib is not installed, a value is not one of these, or there is nothing to draw:
                no run can be read, none has an evaluation, or none whose x is known.
        """
        choice = PlotChoice(x, y, model, columns, log_x, target)
        if ax is not None and "," in x:
            raise UserError("ax has room for one x", hint="draw each into axes of its own")
        needs("matplotlib", "figures need", "plot")
        from edgefl.show.drawing import draw, figure

        drawn = charts([run.folder for run in self._readable], choice)
        for line in dict.fromkeys(line for one in drawn for line in one.notes):
            note(line)
        if ax is None:
            return figure(*drawn)
        draw(drawn[0], ax)
        return ax.figure.figure

    @property
    def _readable(self) -> Sequence[RunResult]:
        found = [run for run in self.runs if run.status != UNREADABLE]
        if self.runs and not found:
            first = self.runs[0]
            raise UserError(first.reason, where=str(first.folder))
        return found


@asked
def open_result(folder: str | Path) -> Result:
    """What ``edgefl.run`` returned, from a directory that it, or ``edgefl run``, made.

    Runs in progress can be read, as far as they are.

    Args:
        folder: a run's directory, or a group's.

    Raises:
        UserError: it is neither.
    """
    return Result(Path(folder), tuple(_opened(path) for path in runs_in(Path(folder))))


Runs: TypeAlias = str | Path | RunResult | Result


def folders_of(runs: Runs | Sequence[Runs]) -> list[Path]:
    """The directories of runs, groups of runs, or folders of groups.

    Raises:
        UserError: it is nothing that a run can be given as, or there is none.
    """
    given = several(runs)
    for one in given:
        if not isinstance(one, str | Path | RunResult | Result):
            hint = "give a directory, or what edgefl.run returned"
            raise UserError(f"{quoted(one)} is no run", where="runs", hint=hint)
    if not given:
        raise UserError("no run is given", where="runs")
    return [one.folder if isinstance(one, RunResult | Result) else Path(one) for one in given]


def folder_of(run: Runs) -> Path:
    """The directory of a single run, or of a group.

    Raises:
        UserError: as ``folders_of``, or there are several.
    """
    found = folders_of(run)
    if len(found) > 1:
        raise UserError(f"{len(found)} runs are given", where="run", hint="give one")
    return found[0]


def _opened(folder: Path) -> RunResult:
    try:
        with read(folder) as reader:
            # Nothing can be made of it without its settings.
            _ = reader.document
    except UserError as error:
        return RunResult(folder.name, folder, UNREADABLE, error.what)
    return RunResult(reader.meta["name"], folder, reader.status, reader.meta.get("reason", ""))


def _frame(runs: Sequence[RunResult], table: str, kind: str) -> Any:
    makers = {"pandas": to_pandas, "arrow": to_arrow}
    if kind not in makers:
        raise UserError(f"the kind must be 'pandas' or 'arrow', not {kind!r}", where="kind")
    return makers[kind](sources([(run.name, run.folder, run.settings) for run in runs]), table)
