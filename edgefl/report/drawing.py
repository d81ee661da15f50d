"""Charts as Matplotlib figures, of the widths, sizes and fonts of a printed paper."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.style import context
from matplotlib.ticker import LogFormatter

from edgefl.core.files import atomically
from edgefl.report.charts import Chart, Line
from edgefl.report.figure_files import METADATA
from edgefl.report.texts import visible, wrapped

# Inches of one column and of two, of the IEEE: https://ieeeauthorcenter.ieee.org/create-your-ieee-article/
# create-graphics-for-your-article/size-requirements-for-graphics/
WIDTHS = {1: 3.5, 2: 7.16}
# Inches without the legend.
_HEIGHTS = {1: 2.1, 2: 2.8}
_POINTS = 72
# Points; nothing is smaller than the second.
_TEXT, _SMALL = 8, 7
# A character's width as a share of its size, and the inches beside a legend's text.
_CHARACTER, _BESIDE = 0.6, 0.5

# Of ``report.colours``, in line widths, as Plotly draws them.
_DASHES: Mapping[str, Any] = {
    "solid": "solid",
    "dash": (0, (3, 2)),
    "dot": (0, (1, 1.5)),
    "dashdot": (0, (4, 1.5, 1, 1.5)),
    "longdash": (0, (7, 2)),
    "longdashdot": (0, (7, 1.5, 1.5, 1.5)),
}
_MARKERS = "osD^vPX<>p"
# A line of so many points has a marker at each; a longer one so far apart, as a share of the axes' diagonal.
_MARKED, _APART = 7, 0.14

_STYLE: dict[str, Any] = {
    "savefig.dpi": 600,
    "font.family": ["DejaVu Sans"],
    "font.size": _TEXT,
    "axes.labelsize": _TEXT,
    "xtick.labelsize": _SMALL,
    "ytick.labelsize": _SMALL,
    "legend.fontsize": _SMALL,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    # TrueType, which publishers ask for in place of Type 3.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # Element ids that do not change from one writing to the next.
    "svg.hashsalt": "edgefl",
}
_TARGET: Mapping[str, Any] = {"color": "0.35", "linewidth": 0.7, "linestyle": (0, (6, 3)), "zorder": 1.5}
_LEGEND: Mapping[str, Any] = {
    "loc": "outside upper center", "frameon": False, "handlelength": 3.5, "columnspacing": 1.2,
    "borderaxespad": 0.1, "borderpad": 0.1, "labelspacing": 0.25,
}  # fmt: skip
# Dots an inch on a screen, where a column is then about as wide as that of a notebook.
_SCREEN = 150


class Plot(Figure):
    """A figure that belongs to no window: notebooks show it as it is, and it is saved without a date."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """As Matplotlib's, with embedded TrueType fonts; the same figure gives the same bytes."""
        kind = options.get("format") or str(getattr(fname, "name", fname)).rpartition(".")[2].lower()
        metadata = {**METADATA.get(kind, {}), **(options.pop("metadata", None) or {})}
        with _style():
            super().savefig(fname, metadata=metadata, **options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=_SCREEN)
        return content.getvalue()


def figure(chart: Chart) -> Plot:
    """The chart as a figure of one or two columns' width, its legend above the axes."""
    columns = chart.choice.columns
    with _style():
        made = Plot(figsize=(WIDTHS[columns], _HEIGHTS[columns]), layout="constrained")
        draw(chart, made.add_subplot())
        legend = _legend(made, chart)
        made.set_figheight(_HEIGHTS[columns] + legend.get_window_extent(_renderer(made)).height / made.dpi)
    return made


def draw(chart: Chart, axes: Axes) -> None:
    """Draws the chart into axes of any figure: lines, labelled with names, and axis labels; no legend."""
    if chart.target is not None:
        axes.axhline(chart.target, **_TARGET, label=_target(chart))
    for line in chart.lines:
        _line(line, axes)
    if chart.choice.log_x:
        axes.set_xscale("log")
        for axis in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
            axis(_PlainLog(minor_thresholds=(1, 0.4)))
    elif chart.choice.axis != "round":
        axes.set_xlim(left=0)
    if chart.choice.y == "accuracy":
        # Bands may reach beyond 0 and 100%, accuracies do not.
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, -1), min(high, 101))
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)


def write(chart: Chart, path: Path) -> tuple[Plot, list[str]]:
    """Writes the chart's figure to a file of the type that its name ends in.

    Returns:
        The figure, and a note for each character that the font lacks.

    Raises:
        RunError: it cannot be written; an existing file is unchanged.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = figure(chart)
        content = io.BytesIO()
        made.savefig(content, format=path.suffix.lower()[1:])
    atomically(path, content.getvalue())
    return made, list(dict.fromkeys(str(one.message).strip() for one in caught))


class _PlainLog(LogFormatter):
    """Labels such as 0.1 and 100: exponents would be too small to read."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:,.12g}" if super().__call__(x, pos) else ""


def _style() -> Any:
    """Matplotlib's defaults and our own sizes, whatever the user's configuration is."""
    return context(["default", _STYLE])


def _renderer(made: Figure) -> Any:
    """What measures texts."""
    return FigureCanvasAgg(made).get_renderer()  # type: ignore[no-untyped-call]


def _target(chart: Chart) -> str:
    return f"target {chart.target:g}%"


def _look(line: Line) -> dict[str, Any]:
    """What tells a line apart, with and without colours."""
    return {
        "color": line.colour,
        "linestyle": _DASHES[line.dash],
        "linewidth": 1.2,
        "marker": _MARKERS[line.place % len(_MARKERS)],
        "markersize": 3.2,
        "markerfacecolor": "white",
        "markeredgewidth": 0.8,
    }


def _line(line: Line, axes: Axes) -> None:
    axes.plot(line.x, line.y, **_look(line), markevery=_marked(line), label=_label(line.name))
    if line.low is None or line.high is None:
        return
    axes.fill_between(line.x, line.low, line.high, color=line.colour, alpha=0.15, linewidth=0)
    for edge in (line.low, line.high):
        axes.plot(line.x, edge, color=line.colour, linestyle=_DASHES[line.dash], linewidth=0.4)


def _marked(line: Line) -> tuple[float, float] | None:
    """Where a line's markers are, in shares of the axes' diagonal; None for everywhere.

    Lines that lie on each other have them side by side.
    """
    if len(line.x) <= _MARKED or not np.isfinite(line.y).all():
        return None
    return line.place % 4 / 4 * _APART, _APART


def _label(name: str) -> str:
    """A name as a label: a dollar begins no formula, and an underscore hides nothing."""
    text = visible(name).replace("$", r"\$")
    return f"\N{HAIR SPACE}{text}" if text.startswith("_") else text


def _legend(made: Figure, chart: Chart) -> Legend:
    """The names above the axes, in as many columns as the figure has room for."""
    handles: list[Artist] = [Line2D([], [], **_look(line)) for line in chart.lines]
    room = int((WIDTHS[chart.choice.columns] - _BESIDE) * _POINTS / (_CHARACTER * _SMALL))
    names = [_label("\n".join(wrapped(visible(line.name), room))) for line in chart.lines]
    if chart.target is not None:
        handles.append(Line2D([], [], **_TARGET))
        names.append(_target(chart))
    for columns in range(min(len(names), 4 * chart.choice.columns), 1, -1):
        legend = made.legend(handles, names, ncols=columns, **_LEGEND)
        if legend.get_window_extent(_renderer(made)).width <= made.bbox.width:
            return legend
        legend.remove()
    return made.legend(handles, names, ncols=1, **_LEGEND)
