"""What a figure for a paper shows: the report page's curves, or what runs spent to reach a target."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgefl.analysis.curves import AXES, curves
from edgefl.analysis.groups import SeedGroup, seeds_together
from edgefl.analysis.history import History, histories
from edgefl.analysis.metrics import MODELS, metrics
from edgefl.analysis.run import Run
from edgefl.analysis.summary import COSTS, Summary, check_target, each_run, summary
from edgefl.core.errors import UserError, closest, one_of, short
from edgefl.core.units import LADDERS, common_unit
from edgefl.show.answers import several
from edgefl.show.compare import energy_of
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, styles
from edgefl.show.page.sections.learning import accuracy_plot
from edgefl.show.values import cell
from edgefl.store.reader import Reader

SUFFIXES = (".pdf", ".svg", ".png")
METADATA: Mapping[str, Mapping[str, Any]] = {
    "pdf": {"Creator": "edgefl", "CreationDate": None},
    "svg": {"Creator": "edgefl", "Date": None},
    "png": {"Software": "edgefl"},
}
"""What Matplotlib writes into a file of each type: no date, so that the same runs give the same bytes."""

MEASURES = ("accuracy", "loss", "target")
# What a target took, by axis: the metric's key, with the model's place.
_REACHED = {
    "time": "target.{}.t_s",
    "bytes": "target.{}.bytes",
    "joules": "target.{}.joules",
    **{name: f"costs.{name}.to_target.{{}}.total.amount" for name in COSTS},
}
# Beyond such a ratio, the least of what is on a linear axis could not be told from 0.
_WIDE = 30
COLUMNS = (1, 2)


@dataclass(frozen=True)
class PlotChoice:
    """What is drawn against what.

    Attributes:
        x: one of ``AXES``, or several with commas between them; hyphens will do for underscores.
        y: "accuracy", "loss", or "target" for what was spent until the target was reached.
        model: "global" or "personal"; None for "global" if any run has evaluated it, otherwise "personal".
        columns: the width: 1 or 2 columns of a paper; None for 2 if there are several x.
        log_x: whether x is logarithmic; what was spent until a target is so anyway over a wide range.
        target: accuracies in (0, 1], to draw a line at; None for none, or for the runs' own if they are y.

    Raises:
        UserError: one has no such value, or there is a target and y is the loss.
    """

    x: str = "time"
    y: str = "accuracy"
    model: str | None = None
    columns: int | None = None
    log_x: bool = False
    target: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        known = tuple(_REACHED if self.y == "target" else AXES)
        for axis in str(self.x).split(","):
            _check(
                "x", axis.strip().replace("-", "_"), known, got=axis if isinstance(self.x, str) else self.x
            )
        _check("y", self.y, MEASURES)
        _check("model", self.model, (*MODELS, None))
        _check("columns", self.columns, (*COLUMNS, None))
        for target in self.targets:
            check_target(target, "target")
        if self.targets and self.y == "loss":
            raise UserError("a target is an accuracy: it cannot be drawn with y = loss")

    @property
    def room(self) -> int:
        """The width in columns."""
        return self.columns or 1 + ("," in self.x)

    @property
    def axis(self) -> str:
        """The key of x in ``AXES``."""
        return self.x.replace("-", "_")

    @property
    def targets(self) -> Sequence[float]:
        """The targets, each once."""
        return list(dict.fromkeys(several(self.target)))


class Printed(NamedTuple):
    """How a column is printed: its title with the unit, and how many base units are one of these."""

    title: str
    scale: float


@dataclass(frozen=True, eq=False)
class Chart:
    """A declared plot as a figure of a paper draws it, and what its caption has to say.

    Attributes:
        choice: what was asked for; its model is never None, and x is one.
        plot: lines or points with one x; its frame has what is drawn alone.
        looks: each group's name, and its colour and dash on the report page.
        targets: to draw lines at, or the points'; none where these are of the runs' own.
        notes: what is not drawn, a line each.
    """

    choice: PlotChoice
    plot: Plot
    looks: Sequence[tuple[str, str, str]]
    targets: Sequence[float]
    caption: str
    notes: Sequence[str] = ()

    def printed(self, name: str) -> Printed:
        """A column in a unit that suits its greatest value."""
        title, unit, _ = self.plot.frame.columns[name]
        if unit == "share":
            return Printed(f"{title} (%)", 0.01)
        if unit not in LADDERS:
            return Printed(f"{title} ({unit})" if unit not in {"", "loss"} else title, 1.0)
        found = [np.max(block[name]) for block in self.plot.frame.blocks if block[name] is not None]
        scale, unit = common_unit(unit, float(max(found)))
        return Printed(f"{title} ({unit})", scale)


def charts(
    folders: list[Path], choice: PlotChoice, *, note: Callable[[str], None] | None = None
) -> list[Chart]:
    """The charts of runs or groups, one for each x; those that differ in nothing but their seeds are one.

    ``note`` is as of ``summary.each_run``.

    Raises:
        UserError: a run cannot be read, or there is nothing to draw: no evaluation, or none whose x is known.
    """
    choices = [replace(choice, x=one.strip(), columns=choice.room) for one in choice.x.split(",")]
    if choice.y == "target":
        runs = each_run(folders, lambda reader, _: _reaching(reader, choice.targets), note=note)
        return [reached(list(zip(*runs, strict=True)), one) for one in choices]
    read = each_run(folders, lambda reader, _: _told_of(Run(reader)), note=note)
    groups, of_run = seeds_together([run for run, _ in read]), {id(run): mine for run, mine in read}
    return [chart_of(groups, lambda run: of_run[id(run)], one) for one in choices]


def _reaching(reader: Reader, targets: Sequence[float]) -> list[Summary]:
    """A run's summary for each target, or for its own."""
    run = Run(reader)
    return [summary(run, one) for one in targets] or [summary(run)]


def _told_of(run: Run) -> tuple[Summary, Mapping[str, History]]:
    return summary(run), histories(run)


def reached(runs: Sequence[Sequence[Summary]], choice: PlotChoice) -> Chart:
    """The chart of what runs, all of them for each target, spent until they reached it.

    Raises:
        UserError: there is nothing to draw.
    """
    groups = [seeds_together(each) for each in runs]
    choice = _of_model({model for run in runs[0] for model in run.accuracy}, choice)
    key = _REACHED[choice.axis].format(choice.model)
    rows = [metric for each in runs for metric in metrics(each) if metric.key == key]
    if not rows:
        raise UserError("the runs have no target", where="target", hint="give one, such as 0.9")
    blocks: list[dict[str, Any]] = [
        {
            "group": group,
            "target": target,
            "whole": value is not None and value.mean is not None and value.runs == len(one.runs),
            "told": cell(value, row.unit),
            "spent": value.mean if value else None,
            "seeds": value.interval_95 if value else None,
            "bounds": value.between if value else None,
        }
        for target, (row, each) in enumerate(zip(rows, groups, strict=True))
        for group, one in enumerate(each)
        for value in [row.value(one.runs)]
    ]
    means = [block["spent"] for block in blocks if block["spent"] is not None]
    what, _, target = rows[0].label.removesuffix(f", {choice.model}").partition(" to ")
    target = target if len(rows) == 1 else "a target"
    if not means:
        raise UserError(f"no run has a known {what} to {target}", hint="edgefl compare says why")
    wide = min(means) > 0 and (choice.log_x or max(means) > _WIDE * min(means))
    return Chart(
        choice=replace(choice, log_x=wide),
        plot=Plot(
            "target",
            "Cost to a target",
            "What each run spent until the first evaluation at or above a target.",
            "no run has reached it.",
            "points",
            Frame({"spent": FrameColumn(f"{what} to {target}", rows[0].unit)}, blocks),
            x=["spent"],
        ),
        looks=_looks(groups[0]),
        targets=choice.targets,
        caption=_told(f"cost until the first evaluation at or above {target}", groups[0], choice),
    )


def chart_of(
    groups: Sequence[SeedGroup], of_run: Callable[[Summary], Mapping[str, History]], choice: PlotChoice
) -> Chart:
    """The chart of runs that have been read.

    Raises:
        UserError: there is nothing to draw.
    """
    every = curves(groups, of_run)
    choice = _of_model({curve.model for curve in every}, choice)
    plot = accuracy_plot([curve for curve in every if curve.model == choice.model])
    columns, blocks = plot.frame
    shown = [block for block in blocks if choice.axis in block]
    if not shown:
        known = [_spelled(axis) for axis in AXES if axis in blocks[0]]
        label = AXES[choice.axis].label
        raise UserError(f"the {label} of these runs is unknown", hint=f"known: {', '.join(known)}")
    if choice.log_x and not any((block[choice.axis] > 0).any() for block in shown):
        raise UserError("all evaluations are at 0, which a logarithmic axis does not have")
    looks = _looks(groups)
    some = [f"{looks[at][0]}: {text}" for at in _groups_of(shown) if (text := energy_of(groups[at]))]
    energies = f"; energy, {'; '.join(some)}" if some and choice.axis == "joules" else ""
    # An hour of client-seconds is no unit of a figure.
    changed = {"client_seconds": columns["client_seconds"]._replace(unit="client-seconds")}
    if choice.model == "personal":
        changed[choice.y] = columns[choice.y]._replace(title=f"{choice.y} of personal models")
    frame = Frame({**columns, **changed}, shown)
    return Chart(
        choice=choice,
        plot=replace(plot, frame=frame, x=[choice.axis], y=[choice.y]),
        looks=looks,
        targets=choice.targets,
        caption=_told(choice.y, [groups[at] for at in _groups_of(shown)], choice) + energies,
        notes=list(_notes([name for name, *_ in looks], blocks, choice)),
    )


def _looks(groups: Sequence[SeedGroup]) -> list[tuple[str, str, str]]:
    return [(one.line, *look) for one, look in zip(groups, styles([one.name for one in groups]), strict=True)]


def _groups_of(blocks: Sequence[Block]) -> list[int]:
    return [block["group"] for block in blocks]


def _check(key: str, value: object, known: Sequence[object], got: object = None) -> None:
    if value not in known:
        every = *names, last = [_spelled(one) for one in known if one is not None]
        quoted, close = short(repr(value if got is None else got)), closest(str(value), every)
        hint = one_of([repr(close)] if close else [])
        raise UserError(f"{key} must be {', '.join(names)} or {last}, not {quoted}", hint=hint)


def _of_model(there: Collection[str], choice: PlotChoice) -> PlotChoice:
    """The choice with the model that was asked for, or with the first of ``MODELS`` that there is.

    Raises:
        UserError: it was not evaluated, or nothing was.
    """
    if not there:
        raise UserError("nothing was evaluated", hint="the null engine trains and evaluates nothing")
    model = choice.model or next(model for model in MODELS if model in there)
    if model not in there:
        hint = f"evaluated: {', '.join(sorted(there))}"
        raise UserError(f"no run has evaluated a {model} model", hint=hint)
    return replace(choice, model=model)


def _spelled(key: object) -> str:
    """A key as the command line has it."""
    return str(key).replace("_", "-")


def _told(what: str, shown: Sequence[SeedGroup], choice: PlotChoice) -> str:
    """What is shown, of which model, on what, and what intervals are."""
    on = ", ".join(dict.fromkeys(run.evaluated_on for one in shown for run in one.runs))
    of = {"global": "of the global model", "personal": "of personal models, mean over clients"}
    counts = sorted({len(one.runs) for one in shown} - {1})
    seeds = " or ".join(map(str, counts))
    bands = f"; mean and its 95% interval (Student's t) over {seeds} seeds" if counts else ""
    return f"{what} {of[str(choice.model)]}, on {on} data{bands}"


def _notes(names: Sequence[str], found: Sequence[Block], choice: PlotChoice) -> Iterator[str]:
    for group, name in enumerate(names):
        if group not in _groups_of(found):
            yield f"{name} is left out: it has no evaluation of a {choice.model} model"
    for block in found:
        name, x, left = names[block["group"]], block.get(choice.axis), block["left"]
        if left:
            have, are = ("evaluation has", "is") if left == 1 else ("evaluations have", "are")
            yield f"{name}: {left} {have} no counterpart in all seeds and {are} left out"
        if x is None:
            yield f"{name} is left out: its energy is unknown"
            continue
        values = block[choice.y]
        if missing := int(np.sum(~np.isfinite(values))):
            yield f"{name}: {missing} of {len(values)} values are not finite and are left out"
        if choice.log_x and (zero := int(np.sum(x <= 0))):
            yield f"{name}: {zero} of {len(x)} evaluations are at 0, which a logarithmic axis does not have"
