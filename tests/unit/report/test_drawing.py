"""Figures: sizes and fonts of a printed paper, lines that differ without colours, files without dates."""

from __future__ import annotations

import io
import re

import pytest

matplotlib = pytest.importorskip(
    "matplotlib", reason="Matplotlib, which the extra plot brings, is not installed"
)

from charted import chart_of, history  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from edgefl.report.charts import Choice  # noqa: E402
from edgefl.report.drawing import draw, figure, write  # noqa: E402

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
    made = figure(chart_of(runs, Choice(columns=columns, log_x=log_x, target=0.9)))
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
    assert write(chart, first)[1] == []
    with matplotlib.rc_context(
        {"font.size": 30, "pdf.fonttype": 3, "lines.linewidth": 9, "svg.hashsalt": None}
    ):
        assert write(chart, second)[1] == []
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
    _, (note,) = write(chart_of({"中": SEEDS}), tmp_path / "fig.pdf")
    assert "Glyph 20013" in note
    assert (tmp_path / "fig.pdf").stat().st_size


def test_a_notebook_shows_a_figure():
    """As a PNG file, without pyplot."""
    assert figure(chart_of({"a": SEEDS}))._repr_png_().startswith(b"\x89PNG")


def test_axes_of_the_user_get_lines_with_labels():
    """A legend is the user's to place; the figure keeps its size."""
    made = Figure(figsize=(5, 4))
    left, right = made.subplots(1, 2)
    draw(chart_of({"a": SEEDS, "b": SEEDS}), left)
    assert left.get_legend_handles_labels()[1] == ["a", "b"]
    assert (left.get_xlabel(), left.get_ylabel()) == ("virtual time (s)", "accuracy (%)")
    assert right.lines[:] == []
    assert tuple(made.get_size_inches()) == (5, 4)


def test_long_lines_have_markers_apart():
    """As far from each other on the page, on any scale; at each point where there is a gap."""
    long = [place / 100 for place in range(100)]
    made = figure(
        chart_of({"a": [[history(long)]], "b": [[history([*long, float("nan")])]]}, Choice(log_x=True))
    )
    even, gap = made.axes[0].lines
    assert (even.get_markevery(), gap.get_markevery()) == ((0.0, 0.14), None)
    texts(made)
