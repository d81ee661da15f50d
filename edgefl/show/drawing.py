"""Charts as Matplotlib figures, of the widths, sizes and fonts of a printed paper."""

import io
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.style import context
from matplotlib.ticker import LogFormatter

from edgefl.core.files import atomically
from edgefl.show.charts import METADATA, Chart
from edgefl.show.page.frames import Block
from edgefl.show.table import visible

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

# Of ``show.page.frames``, in line widths, as Plotly draws them.
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
# Inches around the rows of runs, of a row, and of another target in it; characters of a name in a line.
_FRAME, _ROW, _MORE, _LONGEST = 0.55, 0.19, 0.12, 24
_GREY = "0.35"
_POINT: Mapping[str, Any] = {"linestyle": "none", "markersize": 4, "markeredgewidth": 0.9, "zorder": 3,
    "clip_on": False,
}  # fmt: skip
_INTERVAL: Mapping[str, Any] = {"linewidth": 1, "marker": "|", "markersize": 5, "markeredgewidth": 1,
    "label": "95% interval over seeds",
}  # fmt: skip
_BOUNDS: Mapping[str, Any] = {"linewidth": 5, "alpha": 0.3, "solid_capstyle": "butt",
    "label": "bounds of devices' and links' numbers",
}  # fmt: skip
_SAID: Mapping[str, Any] = {"ha": "right", "va": "center", "fontsize": _SMALL, "color": _GREY}
_LEGEND: Mapping[str, Any] = {
    "loc": "outside upper center", "frameon": False, "handlelength": 3.5, "columnspacing": 1.2,
    "borderaxespad": 0.1, "borderpad": 0.1, "labelspacing": 0.25,
}  # fmt: skip
# Dots an inch on a screen, where a column is then about as wide as that of a notebook.
_SCREEN = 150


class PaperFigure(Figure):
    """A figure that belongs to no window: notebooks show it as it is, and it is saved without a date."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """As Matplotlib's, with embedded TrueType fonts; the same figure gives the same bytes."""
        kind = options.get("format") or str(getattr(fname, "name", fname)).rpartition(".")[2].lower()
        metadata = {**METADATA.get(kind, {}), **(options.pop("metadata", None) or {})}
        with _style():
            super().savefig(fname, metadata=metadata, **options)

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=_SCREEN)
        return content.getvalue()


def figure(*charts: Chart) -> PaperFigure:
    """Charts side by side as a figure of one or two columns' width, the legend above their axes."""
    first, *_ = charts
    columns = first.choice.room
    height, rows = _HEIGHTS[columns], first.plot.mark == "points"
    if rows:
        lines = "\n".join(_wrapped(name) for name, *_ in first.looks).count("\n") + 1
        height = _FRAME + lines * (_ROW + _MORE * max(0, len(first.targets) - 1))
    with _style():
        made = PaperFigure(figsize=(WIDTHS[columns], height), layout="constrained")
        every = made.subplots(1, len(charts), sharey=True, squeeze=False)[0]
        handles: dict[str, Artist] = {}
        for chart, axes in zip(charts, every, strict=True):
            draw(chart, axes)
            axes.label_outer()
            found, labels = axes.get_legend_handles_labels()
            handles |= dict(zip(labels, found, strict=True))
        if handles:
            legend = _legend(made, columns, handles)
            for handle in filter(None, legend.legend_handles if rows else ()):
                handle.set(color=_GREY)  # runs have their names beside them
            made.set_figheight(height + legend.get_window_extent(_renderer(made)).height / made.dpi)
    return made


def draw(chart: Chart, axes: Axes) -> None:
    """Draws the chart into axes of any figure: lines, labelled with names, and axis labels; no legend."""
    x_label, scale = chart.printed(chart.plot.x[0])
    for block in chart.plot.frame.blocks:
        {"lines": _draw_line, "points": _draw_point}[chart.plot.mark](block, chart, scale, axes)
    if chart.choice.log_x:
        axes.set_xscale("log")
        for axis in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
            axis(_PlainLog(minor_thresholds=(1, 0.4)))
    elif chart.choice.axis != "round":
        axes.set_xlim(left=0)
    axes.set_xlabel(x_label)
    for name in chart.plot.y:
        axes.set_ylabel(chart.printed(name).title)
        for target in chart.targets:
            axes.axhline(100 * target, **_TARGET, label=f"target {100 * target:g}%")
    if not chart.plot.y:
        axes.set_yticks(range(len(chart.looks)), [_wrapped(name) for name, *_ in chart.looks])
        axes.set_ylim(len(chart.looks) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
    if chart.choice.y == "accuracy":
        # Bands may reach beyond 0 and 100%, accuracies do not.
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, -1), min(high, 101))


def write_figure(charts: Sequence[Chart], path: Path) -> tuple[PaperFigure, list[str]]:
    """Writes the charts' figure to a file of the type that its name ends in.

    Returns:
        The figure, and a note for each character that the font lacks.

    Raises:
        RunError: it cannot be written; an existing file is unchanged.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = figure(*charts)
        content = io.BytesIO()
        made.savefig(content, format=path.suffix.lower()[1:])
    atomically({path: content.getvalue()})
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


def _draw_line(block: Block, chart: Chart, scale: float, axes: Axes) -> None:
    """A group's mean, told apart with and without colours, in its band."""
    group, y_name, y_scale = block["group"], chart.plot.y[0], chart.printed(chart.plot.y[0]).scale
    name, colour, dash = chart.looks[group]
    x = block[chart.plot.x[0]] / scale
    kept = x > 0 if chart.choice.log_x else np.ones(len(x), dtype=bool)
    y, *band = (
        np.where(np.isfinite(block[one]), block[one] / y_scale, np.nan)[kept]
        for one in (y_name, f"{y_name}_low", f"{y_name}_high")
        if one in block
    )
    # Lines that lie on each other have their markers side by side; apart in shares of the axes' diagonal.
    all_marked = len(y) <= _MARKED or not np.isfinite(y).all()
    axes.plot(
        x[kept], y,
        color=colour, linestyle=_DASHES[dash], linewidth=1.2, label=_label(name),
        marker=_MARKERS[group % len(_MARKERS)], markersize=3.2, markerfacecolor="white", markeredgewidth=0.8,
        markevery=None if all_marked else (group % 4 / 4 * _APART, _APART),
    )  # fmt: skip
    if band:
        axes.fill_between(x[kept], *band, color=colour, alpha=0.15, linewidth=0)
    for edge in band:
        axes.plot(x[kept], edge, color=colour, linestyle=_DASHES[dash], linewidth=0.4)


def _draw_point(block: Block, chart: Chart, scale: float, axes: Axes) -> None:
    """A group's mean in its intervals, or words in its row; several targets lie above one another."""
    (_, colour, _), target, spent = chart.looks[block["group"]], block["target"], block["spent"]
    count = max(len(chart.targets), 1)
    y = block["group"] + (target - (count - 1) / 2) * _MORE / (_ROW + _MORE * (count - 1))
    to = f"{100 * chart.targets[target]:g}%" if count > 1 else ""
    if spent is None:
        text = f"{to} {block['told']}".strip()
        axes.annotate(text, (0.99, y), xycoords=("axes fraction", "data"), **_SAID)
        return
    for ends, look in ((block["bounds"], _BOUNDS), (block["seeds"], _INTERVAL)):
        if ends and ends.high is not None:
            axes.plot([ends.low / scale, ends.high / scale], [y, y], color=colour, **look)
    words = [f"to {to}"] * bool(to) + ["not by all seeds"] * (not block["whole"])
    look = {**_POINT, "marker": _MARKERS[target % len(_MARKERS)], "label": ", ".join(words) or None}
    face: Mapping[str, Any] = {} if block["whole"] else {"markerfacecolor": "white"}
    axes.plot(spent / scale, y, color=colour, **look, **face)


def _wrapped(name: str) -> str:
    return _label(_draw_filled(name, _LONGEST))


def _draw_filled(name: str, room: int) -> str:
    """A name in lines of so many characters."""
    return "\n".join(fill(line, room) for line in visible(name).split("\n"))


def _label(name: str) -> str:
    """A name as a label: a dollar begins no formula, and an underscore hides nothing."""
    text = visible(name).replace("$", r"\$")
    return f"\N{HAIR SPACE}{text}" if text.startswith("_") else text


def _legend(made: Figure, columns: int, handles: Mapping[str, Artist]) -> Legend:
    """The names above the axes, in as many columns as the figure has room for."""
    room = int((WIDTHS[columns] - _BESIDE) * _POINTS / (_CHARACTER * _SMALL))
    names = [_draw_filled(name, room) for name in handles]
    for count in range(min(len(names), 4 * columns), 1, -1):
        legend = made.legend(handles.values(), names, ncols=count, **_LEGEND)
        if legend.get_window_extent(_renderer(made)).width <= made.bbox.width:
            return legend
        legend.remove()
    return made.legend(handles.values(), names, ncols=1, **_LEGEND)
