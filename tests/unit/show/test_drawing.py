"""Figures: sizes and fonts of a printed paper, lines that differ without colours, files without dates."""

import re

import pytest
from nightly import sampled

matplotlib = pytest.importorskip(
    "matplotlib", reason="Matplotlib, which the extra plot brings, is not installed"
)

from charted import chart_of, history  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from edgefl.show.charts import PlotChoice  # noqa: E402
from edgefl.show.drawing import figure, write_figure  # noqa: E402

SEEDS = [[history([0.1, 0.5, 0.95])], [history([0.2, 0.4, 1])], [history([0.3, 0.6, 0.9])]]


def texts(made):
    """The texts that are drawn."""
    FigureCanvasAgg(made).draw()
    return [text for text in made.findobj(Text) if text.get_text() and text.get_visible()]


def is_inside(made):
    """Whether all that is drawn is on the paper."""
    drawn = made.get_tightbbox()
    ends = drawn.x1 <= made.get_figwidth() + 0.01, drawn.y1 <= made.get_figheight() + 0.01
    return min(drawn.x0, drawn.y0) >= -0.01 and all(ends)


@pytest.mark.parametrize(("columns", "width", "log_x"), [(1, 3.5, True), (2, 7.16, False)])
def test_figures_have_the_width_of_a_paper_and_texts_that_can_be_read(columns, width, log_x):
    """One column of the IEEE is 3.5 in wide, two are 7.16 in; no text is smaller than 7 points, or cut."""
    runs = dict.fromkeys(["sync", "fedasync", "fedasync hinge", "fedbuff", "fedbuff 10", *"xyz"], SEEDS)
    made = figure(chart_of(runs, PlotChoice(columns=columns, log_x=log_x, target=0.9)))
    assert made.get_figwidth() == width
    shown = texts(made)
    assert {"10", "20"} <= {text.get_text() for text in shown} or not log_x
    assert min(text.get_fontsize() for text in shown) >= 7
    assert not [text.get_text() for text in shown if "^" in text.get_text()]
    assert is_inside(made)
    # Accuracies end at 100%, though the interval of the mean reaches beyond; nor do they begin below 0.
    assert 100 < made.axes[0].get_ylim()[1] <= 101
    two = [[history([0.1, 0.5])], [history([0.9, 0.6])]]
    assert figure(chart_of({"a": two})).axes[0].get_ylim() == (-1, 101)


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
    # A line of one point has a marker.
    (line,) = figure(chart_of({"a": [[history([0.5], first=4)]]})).axes[0].lines
    assert (line.get_marker(), line.get_markevery()) == ("o", None)


def test_names_are_texts():
    """A dollar begins no formula, an underscore hides nothing, a control character is spelled out."""
    names = ["a $x^2$ b", "_hidden", "tab\there \x1b[31m", "50% & <b>"]
    made = figure(chart_of(dict.fromkeys(names, SEEDS)))
    shown = [text.get_text().strip("\N{HAIR SPACE}") for text in made.legends[0].get_texts()]
    assert shown == [r"a \$x^2\$ b", "_hidden", r"tab here \x1b[31m", "50% & <b>"]
    texts(made)


@sampled(1, "kind", ["pdf", "svg"])
def test_the_same_chart_gives_the_same_bytes(kind, tmp_path):
    """Whatever the user's configuration is, with no date in them and no font of Type 3."""
    chart = chart_of({"a": SEEDS, "b": SEEDS})
    first, second = tmp_path / f"first.{kind}", tmp_path / f"second.{kind}"
    assert write_figure([chart], first)[1] == []
    own = {"font.size": 30, "pdf.fonttype": 3, "lines.linewidth": 9, "svg.hashsalt": None}
    with matplotlib.rc_context(own):
        assert write_figure([chart], second)[1] == []
    content = first.read_bytes()
    assert content == second.read_bytes()
    assert not re.search(rb"CreationDate|<dc:date>|\d{4}-\d\d-\d\dT|/Type3", content)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"first.{kind}", f"second.{kind}"]
    _, (note,) = write_figure([chart_of({"中": SEEDS})], tmp_path / f"glyph.{kind}")
    assert "Glyph 20013" in note
