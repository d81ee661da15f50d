"""Figures: sizes and fonts of a printed paper, lines that differ without colours, files without dates."""

from __future__ import annotations

import io
import re

import pytest

matplotlib = pytest.importorskip(
    "matplotlib", reason="Matplotlib, which the extra plot brings, is not installed"
)

import numpy as np  # noqa: E402
from charted import chart_of, history, target_chart  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.colors import to_rgb  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from edgefl.show.charts import PlotChoice  # noqa: E402
from edgefl.show.drawing import figure, write_figure  # noqa: E402

SEEDS = [[history([0.1, 0.5, 0.95])], [history([0.2, 0.4, 1])], [history([0.3, 0.6, 0.9])]]
# As many as there are colours.
NAMES = ["sync", "fedasync", "fedasync hinge", "fedbuff", "fedbuff 10", "x", "y", "z"]


def texts(made):
    """The texts that are drawn."""
    FigureCanvasAgg(made).draw()
    found = made.findobj(Text)
    return [text for text in found if text.get_text() and text.get_visible()]


@pytest.mark.parametrize(("columns", "width"), [(1, 3.5), (2, 7.16)])
@pytest.mark.parametrize("log_x", [False, True])
def test_figures_have_the_width_of_a_paper_and_texts_that_can_be_read(columns, width, log_x):
    """One column of the IEEE is 3.5 in wide, two are 7.16 in; no text is smaller than 7 points, or cut."""
    runs = dict.fromkeys(NAMES, SEEDS)
    made = figure(chart_of(runs, PlotChoice(columns=columns, log_x=log_x, target=0.9)))
    assert made.get_figwidth() == width
    shown = texts(made)
    assert {"10", "20"} <= {text.get_text() for text in shown} or not log_x
    assert min(text.get_fontsize() for text in shown) >= 7
    assert not [text.get_text() for text in shown if "^" in text.get_text()]
    drawn = made.get_tightbbox()
    assert min(drawn.x0, drawn.y0) >= -0.01
    assert drawn.x1 <= width + 0.01
    assert drawn.y1 <= made.get_figheight() + 0.01


def test_the_legend_is_outside_the_axes_whatever_the_names_are():
    """Above them, where long names are wrapped; the axes keep their size."""
    short = figure(chart_of({"a": SEEDS}))
    name = "fedavg, local.optimizer.lr 0.05, server.participants 10, compression top-k of 0.01, seed 12345"
    long = figure(chart_of({name: SEEDS, **{f"{name} {place}": SEEDS for place in range(5)}}))
    sizes = []
    for made in (short, long):
        texts(made)
        (axes,), (legend,) = made.axes, made.legends
        assert legend.get_window_extent().y0 >= axes.get_window_extent().y1
        assert legend.get_window_extent().width <= made.bbox.width
        sizes.append(axes.get_window_extent().height / made.dpi)
    assert long.get_figheight() > short.get_figheight() + 1
    assert sizes[1] == pytest.approx(sizes[0], abs=0.15)


def test_lines_differ_without_their_colours():
    """Each of twelve has a dash and a marker of its own; bands have edges with the same dash."""
    made = figure(chart_of({f"run {place}": SEEDS for place in range(12)}))
    marked, edges = [], []
    for line in made.axes[0].lines:
        # The dash as matplotlib.lines keeps it, which ``get_linestyle`` makes "--" of.
        look = vars(line)["_unscaled_dash_pattern"]
        (edges if line.get_marker() == "None" else marked).append((str(look), line.get_marker()))
    assert len(marked) == len(set(marked)) == 12
    assert [dash for dash, _ in edges] == [dash for dash, _ in marked for _ in range(2)]


def test_names_are_texts():
    """A dollar begins no formula, an underscore hides nothing, a control character is spelled out."""
    names = ["a $x^2$ b", "_hidden", "tab\there \x1b[31m", "50% & <b>"]
    made = figure(chart_of(dict.fromkeys(names, SEEDS)))
    shown = [text.get_text().strip("\N{HAIR SPACE}") for text in made.legends[0].get_texts()]
    assert shown == [r"a \$x^2\$ b", "_hidden", r"tab here \x1b[31m", "50% & <b>"]
    texts(made)


def test_accuracies_end_at_100_percent():
    """Though the interval of the mean reaches beyond; nor do they begin below 0."""
    low, high = figure(chart_of({"a": SEEDS})).axes[0].get_ylim()
    assert low < 10
    assert 100 < high <= 101
    two = [[history([0.1, 0.5])], [history([0.9, 0.6])]]
    low, high = figure(chart_of({"a": two})).axes[0].get_ylim()
    assert (low, high) == (-1, 101)


def test_a_single_evaluation_is_seen():
    """A line of one point has a marker."""
    made = figure(chart_of({"a": [[history([0.5], first=4)]]}))
    (line,) = made.axes[0].lines
    assert (line.get_marker(), line.get_markevery()) == ("o", None)
    assert line.get_xdata().tolist() == [40]


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_same_chart_gives_the_same_bytes(kind, tmp_path):
    """Whatever the user's configuration is, and with no date in them."""
    chart = chart_of({"a": SEEDS, "b": SEEDS})
    first, second = tmp_path / f"first.{kind}", tmp_path / f"second.{kind}"
    assert write_figure([chart], first)[1] == []
    with matplotlib.rc_context(
        {"font.size": 30, "pdf.fonttype": 3, "lines.linewidth": 9, "svg.hashsalt": None}
    ):
        assert write_figure([chart], second)[1] == []
    content = first.read_bytes()
    assert content == second.read_bytes()
    assert not re.search(rb"CreationDate|<dc:date>|\d{4}-\d\d-\d\dT", content)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"first.{kind}", f"second.{kind}"]


def test_a_pdf_has_truetype_fonts():
    """As publishers ask, and none of Type 3; also where a user saves it from Python."""
    content = io.BytesIO()
    figure(chart_of({"a": SEEDS})).savefig(content, format="pdf")
    assert b"/TrueType" in content.getvalue() or b"/CIDFontType2" in content.getvalue()
    assert b"/Type3" not in content.getvalue()


def test_a_character_that_the_font_lacks_is_a_note(tmp_path):
    """The figure is written all the same."""
    _, (note,) = write_figure([chart_of({"中": SEEDS})], tmp_path / "fig.pdf")
    assert "Glyph 20013" in note
    assert (tmp_path / "fig.pdf").stat().st_size


class Picture:
    """What is painted of a figure: (rows, columns, 3), from 0 to 1."""

    def __init__(self, made):
        made.set_dpi(200)
        canvas = FigureCanvasAgg(made)
        canvas.draw()
        self.pixels = np.asarray(canvas.buffer_rgba())[..., :3] / 255
        self.axes = made.axes

    def at(self, x, y, panel=0):
        """The colour at a point of some axes, in their data."""
        column, row = self.axes[panel].transData.transform((x, y))
        return self.pixels[len(self.pixels) - 1 - round(row), round(column)]

    def row(self, y, panel=0):
        """The pixels between the left and the right of some axes, at a height."""
        left, right = self.axes[panel].get_xlim()
        ends = [round(self.axes[panel].transData.transform((x, y))[0]) for x in (left, right)]
        height = len(self.pixels) - 1 - round(self.axes[panel].transData.transform((0, y))[1])
        return self.pixels[height, ends[0] + 3 : ends[1] - 2]


def is_pale(colour, of):
    """Whether a colour is another that lets through most of the paper."""
    return np.allclose(colour, 1 - 0.3 * (1 - np.array(to_rgb(of))), atol=0.02)


SPENT = {"a": [40.0, 50.0, 60.0], "b": [90.0, None], "c": [None], "d $x$_": [20.0]}


@pytest.mark.parametrize("log_x", [False, True])
def test_what_a_target_took_is_seen_where_it_is(log_x):
    """In each run's row and colour: its mean, the interval over seeds, and paler the bounds; no more."""
    chart = target_chart(SPENT, PlotChoice(y="target", log_x=log_x))
    seen = Picture(figure(chart))
    assert seen.axes[0].get_xscale() == ("log" if log_x else "linear")
    mean, some, never, _ = chart.plot.frame.blocks
    first, *_, last = (colour for _, colour, _ in chart.looks)
    low, high = mean["seeds"]
    assert seen.at(50, 0) == pytest.approx(to_rgb(first), abs=0.02)
    for x in (low + 5, high - 5):
        assert seen.at(x, 0) == pytest.approx(to_rgb(first), abs=0.15)  # a line of some pixels
    assert is_pale(seen.at(high + 10, 0), first)  # the bounds end at 100
    assert is_pale(seen.at(98, 0.05), first)
    assert seen.at(105, 0.05) == pytest.approx(1)
    assert seen.at(90, 1) == pytest.approx(1)  # hollow, since one seed did not reach it
    assert 0 < np.count_nonzero(np.ptp(seen.row(some["group"]), axis=1) > 0.1) < 12  # and has no interval
    assert seen.at(20, 3) == pytest.approx(to_rgb(last), abs=0.02)
    # No mark where the target was not reached: grey words on white, at the right.
    row = seen.row(never["group"])
    assert np.ptp(row, axis=1).max() < 0.02
    dark = np.flatnonzero(row.mean(axis=1) < 0.7)
    assert dark.size
    assert dark.min() > 0.6 * len(row)


def test_a_legend_says_what_is_drawn():
    """Of intervals and bounds, each once and in grey; nothing of what is not there."""
    made = figure(target_chart(SPENT, PlotChoice(y="target")))
    names = [text.get_text() for text in made.legends[0].get_texts()]
    assert sorted(names) == [
        "95% interval over seeds",
        "bounds of devices' and links' numbers",
        "not by all seeds",
    ]
    assert {handle.get_color() for handle in made.legends[0].legend_handles} == {"0.35"}
    shown = [text.get_text().strip() for text in texts(made)]
    assert shown.count("not reached") == 1
    assert r"d \$x\$_" in shown
    assert figure(target_chart({"a": [1.0]}, PlotChoice(y="target"))).legends != []


@pytest.mark.parametrize(("columns", "x"), [(1, "time"), (2, "time,bytes,joules")])
@pytest.mark.parametrize("count", [2, 8])
def test_rows_of_runs_fit_and_do_not_overlap(columns, x, count):
    """Of two targets, with long names and one run that reached neither; one panel, or three abreast."""
    spent = {f"a rather long name of run {place}": [place + 1.0, place + 2.0] for place in range(count - 1)}
    choices = [PlotChoice(axis, "target", None, columns, target=[0.5, 0.75]) for axis in x.split(",")]
    made = figure(*(target_chart({**spent, "none": [None]}, choice) for choice in choices))
    assert len(made.axes) == len(choices)
    # A tick's label beyond the axes is there and not drawn.
    ticks = {label for axes in made.axes for label in axes.get_xticklabels()}
    boxes = [text.get_window_extent() for text in texts(made) if text not in ticks]
    assert not [1 for place, box in enumerate(boxes) for other in boxes[:place] if box.overlaps(other)]
    drawn = made.get_tightbbox()
    assert min(drawn.x0, drawn.y0) >= -0.01
    assert drawn.x1 <= made.get_figwidth() + 0.01
    assert drawn.y1 <= made.get_figheight() + 0.01
    seen = Picture(made)
    for panel in range(len(made.axes)):
        for place in range(count):
            coloured = (
                np.ptp(np.concatenate([seen.row(place + at, panel) for at in (-0.2, 0.2)]), axis=1) > 0.1
            )
            assert coloured.any() == (place < count - 1)
