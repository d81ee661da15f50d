"""What a figure for a paper shows: curves of runs in printed units, and what its caption has to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgefl.core.errors import UserError
from edgefl.core.nodes import short
from edgefl.core.units import common_unit
from edgefl.report.averages import Compared, seeds_together
from edgefl.report.colours import styles
from edgefl.report.curves import AXES, Curve, axes, curves
from edgefl.report.history import History, histories
from edgefl.report.rows import MODELS
from edgefl.report.summary import Summary, check_target, each_run, summary
from edgefl.report.timeline import Floats

MEASURES = ("accuracy", "loss")
COLUMNS = (1, 2)


@dataclass(frozen=True)
class Choice:
    """What is drawn against what.

    Attributes:
        x: one of ``AXES``; hyphens will do for underscores.
        y: "accuracy" or "loss".
        model: "global" or "personal"; None for "global" if any run has evaluated it, otherwise "personal".
        columns: the width: 1 or 2 columns of a paper.
        log_x: whether x is logarithmic.
        target: an accuracy in (0, 1] to draw a line at.

    Raises:
        UserError: one has no such value, or there is a target and y is the loss.
    """

    x: str = "time"
    y: str = "accuracy"
    model: str | None = None
    columns: int = 1
    log_x: bool = False
    target: float | None = None

    def __post_init__(self) -> None:
        _check("x", str(self.x).replace("-", "_"), tuple(AXES), got=self.x)
        _check("y", self.y, MEASURES)
        _check("model", self.model, (*MODELS, None))
        _check("columns", self.columns, COLUMNS)
        check_target(self.target, "target")
        if self.target is not None and self.y == "loss":
            raise UserError("a target is an accuracy: it cannot be drawn with y = loss")

    @property
    def axis(self) -> str:
        """The key of x in ``AXES``."""
        return self.x.replace("-", "_")


class Line(NamedTuple):
    """A curve, in the units of its chart; x is ascending, values that are not finite are NaN.

    Attributes:
        name: of the run, or what the names of its seeds have in common.
        seeds: how many runs it is the mean of.
        place: among all runs that are compared, which its marker follows.
        colour, dash: as on the report page.
        x, y: (n,).
        low, high: the band, (n,); None for one run.
    """

    name: str
    seeds: int
    place: int
    colour: str
    dash: str
    x: Floats
    y: Floats
    low: Floats | None
    high: Floats | None


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves of one model in one figure.

    Attributes:
        choice: what was asked for; its model is never None.
        lines: one or more.
        x_label, y_label: with units.
        target: in the unit of y; None without one.
        caption: what the figure's caption has to say.
        notes: what is not drawn, a line each.
    """

    choice: Choice
    lines: Sequence[Line]
    x_label: str
    y_label: str
    target: float | None
    caption: str
    notes: Sequence[str]


def chart(folders: list[Path], choice: Choice, *, note: Callable[[str], None] | None = None) -> Chart:
    """The chart of some runs; those that differ in nothing but their seeds are one line.

    Args:
        folders: runs or groups.
        choice: what is drawn.
        note: as in ``summary.each_run``.

    Raises:
        UserError: a run cannot be read, or there is nothing to draw: no evaluation, or none whose x is known.
    """
    read = each_run(folders, lambda reader, _: (summary(reader), histories(reader)), note=note)
    of_run = {id(run): mine for run, mine in read}
    return drawn(seeds_together([run for run, _ in read]), lambda run: of_run[id(run)], choice)


def drawn(
    compared: Sequence[Compared], of_run: Callable[[Summary], Mapping[str, History]], choice: Choice
) -> Chart:
    """The chart of runs that have been read.

    Args:
        compared: the runs.
        of_run: the histories of one.
        choice: what is drawn.

    Raises:
        UserError: there is nothing to draw.
    """
    every = curves(compared, of_run)
    found, choice = _chosen(every, choice)
    if not found:
        raise UserError("nothing was evaluated", hint="the null engine trains and evaluates nothing")
    shown = [curve for curve in found if choice.axis in curve.x]
    if not shown:
        label, known = AXES[choice.axis].label, [_spelled(axis) for axis in found[0].x]
        raise UserError(f"the {label} of these runs is unknown", hint=f"known: {', '.join(known)}")
    if choice.log_x and not any((curve.x[choice.axis] > 0).any() for curve in shown):
        raise UserError("all evaluations are at 0, which a logarithmic axis does not have")
    names = _names(compared)
    scale, unit = _unit(choice.axis, max(float(curve.x[choice.axis].max()) for curve in shown))
    looks = styles([one.name for one in compared])
    lines = [_line(curve, choice, scale, (names[curve.group], *looks[curve.group])) for curve in shown]
    percent = 100.0 if choice.y == "accuracy" else 1.0
    return Chart(
        choice=choice,
        lines=lines,
        x_label=_titled(axes(shown)[choice.axis].label, unit),
        y_label=_y_label(choice),
        target=None if choice.target is None else percent * choice.target,
        caption=_caption(compared, names, shown, choice),
        notes=list(_notes(names, found, choice)),
    )


def require_matplotlib() -> None:
    """Refuses to draw without Matplotlib, which is an extra.

    Raises:
        UserError: it is not installed.
    """
    if find_spec("matplotlib") is None:
        raise UserError("figures need Matplotlib", hint="pip install 'edgefl-emulator[plot]'")


def _check(key: str, value: object, known: Sequence[object], got: object = None) -> None:
    if value not in known:
        *names, last = (_spelled(one) for one in known if one is not None)
        quoted = short(repr(value if got is None else got))
        raise UserError(f"{key} must be {', '.join(names)} or {last}, not {quoted}")


def _chosen(every: Sequence[Curve], choice: Choice) -> tuple[list[Curve], Choice]:
    """The curves of the model that was asked for, or of the first of ``MODELS`` that there is."""
    there = {curve.model for curve in every}
    model = choice.model or next((model for model in MODELS if model in there), MODELS[0])
    if there and model not in there:
        raise UserError(
            f"no run has evaluated a {model} model", hint=f"evaluated: {', '.join(sorted(there))}"
        )
    return [curve for curve in every if curve.model == model], replace(choice, model=model)


def _spelled(key: object) -> str:
    """A key as the command line has it."""
    return str(key).replace("_", "-")


def _names(compared: Sequence[Compared]) -> list[str]:
    """The groups' names, each in one line."""
    return [one.name.replace("\n", ", ") for one in compared]


def _unit(axis: str, greatest: float) -> tuple[float, str]:
    """The unit in which an axis is printed: (base units in one, its name)."""
    unit = "client-seconds" if axis == "client_seconds" else AXES[axis].unit
    return common_unit(unit, greatest) if unit else (1.0, "")


def _titled(label: str, unit: str) -> str:
    return f"{label} ({unit})" if unit else label


def _y_label(choice: Choice) -> str:
    of = " of personal models" if choice.model == "personal" else ""
    return _titled(choice.y + of, "%" if choice.y == "accuracy" else "")


def _line(curve: Curve, choice: Choice, scale: float, shown: tuple[str, str, str]) -> Line:
    percent = 100.0 if choice.y == "accuracy" else 1.0
    x = curve.x[choice.axis] / scale
    kept = x > 0 if choice.log_x else np.ones(len(x), dtype=bool)

    def column(name: str) -> Floats | None:
        values: Floats | None = getattr(curve, name)
        if values is None:
            return None
        return np.where(np.isfinite(values), percent * values, np.nan)[kept]

    name, colour, dash = shown
    y = column(choice.y)
    assert y is not None  # noqa: S101 - a curve has its means
    return Line(
        name, len(curve.seeds), curve.group, colour, dash, x[kept], y,
        column(f"{choice.y}_low"), column(f"{choice.y}_high"),
    )  # fmt: skip


def _caption(
    compared: Sequence[Compared], names: Sequence[str], found: Sequence[Curve], choice: Choice
) -> str:
    """What was evaluated on what, what bands are, and of how many clients an energy is."""
    shown = [compared[curve.group] for curve in found]
    on = ", ".join(dict.fromkeys(run.evaluated_on for one in shown for run in one.runs))
    of = {"global": "of the global model", "personal": "of personal models, mean over clients"}
    counts = sorted({len(one.runs) for one in shown} - {1})
    seeds = " or ".join(map(str, counts))
    bands = f"; mean and its 95% interval (Student's t) over {seeds} seeds" if counts else ""
    some = [f"{names[curve.group]}: {curve.energy_of}" for curve in found if curve.energy_of]
    energies = f"; energy, {'; '.join(some)}" if some and choice.axis == "joules" else ""
    return f"{choice.y} {of[str(choice.model)]}, on {on} data{bands}{energies}"


def _notes(names: Sequence[str], found: Sequence[Curve], choice: Choice) -> Iterator[str]:
    """What is not drawn."""
    drawn_groups = {curve.group for curve in found}
    for group, name in enumerate(names):
        if group not in drawn_groups:
            yield f"{name} is left out: it has no evaluation of a {choice.model} model"
    for curve in found:
        name, x = names[curve.group], curve.x.get(choice.axis)
        if curve.left_out:
            have = "evaluation has" if curve.left_out == 1 else "evaluations have"
            yield f"{name}: {curve.left_out} {have} no counterpart in all seeds and " + (
                "is left out" if curve.left_out == 1 else "are left out"
            )
        if x is None:
            yield f"{name} is left out: its energy is unknown"
            continue
        values = getattr(curve, choice.y)
        if missing := int(np.sum(~np.isfinite(values))):
            yield f"{name}: {missing} of {len(values)} values are not finite and are left out"
        if choice.log_x and (zero := int(np.sum(x <= 0))):
            yield f"{name}: {zero} of {len(x)} evaluations are at 0, which a logarithmic axis does not have"
