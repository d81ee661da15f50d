"""Charts: what is drawn of which runs, in which units, and what the caption has to say."""

import math

import pytest

pytest.importorskip("matplotlib", reason="Matplotlib, which the extra plot brings, is not installed")

from charted import chart_of, history, target_chart
from matplotlib.figure import Figure

from edgefl.core.errors import UserError
from edgefl.show.charts import PlotChoice
from edgefl.show.drawing import draw
from edgefl.show.page.frames import styles


def axes_of(chart):
    """What is drawn of a chart."""
    axes = Figure().subplots()
    draw(chart, axes)
    return axes


def lines_of(chart):
    """The lines of means, by name."""
    return {line.get_label(): line for line in axes_of(chart).lines if not line.get_label().startswith("_")}


def test_lines_are_the_curves_in_printed_units():
    """Seconds become minutes, shares percent; the colour and dash are those of the page."""
    groups = {"a": [[history([0.1, 0.5, 0.6], seconds=300)]], "b": [[history([0.2, 0.4])]]}
    chart = chart_of(groups, PlotChoice(target=0.4))
    axes = axes_of(chart)
    first, second, target = axes.lines
    assert first.get_xdata().tolist() == [0, 5, 10]
    assert first.get_ydata() == pytest.approx([10, 50, 60])
    assert target.get_ydata() == [40, 40]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("virtual time (min)", "accuracy (%)")
    assert [line.get_color() for line in (first, second)] == [colour for colour, _ in styles(["a", "b"])]
    assert chart.notes == []


def test_seeds_are_one_line_in_a_band():
    """The mean, and its 95% interval around it, which the caption says; what lacks a counterpart is out."""
    half = 10 * 4.302652730 / 3**0.5
    runs = [[history([0.1, 0.5])], [history([0.2, 0.5])], [history([0.3, 0.5])]]
    chart = chart_of({"a": runs, "b": [[history([0.5, 0.6])]]})
    mean, low, high, _ = axes_of(chart).lines
    assert mean.get_ydata() == pytest.approx([20, 50])
    assert low.get_ydata() == pytest.approx([20 - half, 50])
    assert high.get_ydata() == pytest.approx([20 + half, 50])
    told = "accuracy of the global model, on test data; mean and its 95% interval (Student's t) over 3 seeds"
    assert chart.caption == told
    chart = chart_of({"a": [[history([0.1, 0.2, 0.3])], [history([0.1, 0.2], first=1)]]})
    assert chart.notes == ["a: 1 evaluation has no counterpart in all seeds and is left out"]


def test_what_cannot_be_drawn_is_left_out_with_a_note():
    """A loss that is not finite, and zeros on a logarithmic axis."""
    chart = chart_of({"a": [[history([0.1, -math.inf, 0.6])]]}, PlotChoice(y="loss"))
    axes = axes_of(chart)
    assert axes.get_ylabel() == "loss"
    assert axes.lines[0].get_ydata() == pytest.approx([0.9, math.nan, 0.4], nan_ok=True)
    assert chart.notes == ["a: 1 of 3 values are not finite and are left out"]
    chart = chart_of({"a": [[history([0.1, 0.5, 0.6])]]}, PlotChoice(log_x=True))
    assert lines_of(chart)["a"].get_xdata().tolist() == [10, 20]
    assert chart.notes == ["a: 1 of 3 evaluations are at 0, which a logarithmic axis does not have"]
    with pytest.raises(UserError, match="all evaluations are at 0"):
        chart_of({"a": [[history([0.1])]]}, PlotChoice(log_x=True))


def test_an_unknown_energy_is_left_out_and_said():
    """Of one run a note, of all an error with the axes that are known; of some, axis and caption say so."""
    unknown = [[history([0.1, 0.2], joules=math.nan)]]
    chart = chart_of({"a": unknown, "b": [[history([0.1, 0.2], known=1)]]}, PlotChoice(x="joules"))
    assert list(lines_of(chart)) == ["b"]
    assert chart.notes == ["a is left out: its energy is unknown"]
    assert axes_of(chart).get_xlabel() == "energy of 1 of 2 clients (J)"
    assert chart.caption.endswith("; energy, b: 1 of 2 clients, all at least 204 J")
    whole = {"b": [[history([0.1, 0.2], known=1)]], "c": [[history([0.1, 0.2])]]}
    known = axes_of(chart_of(whole, PlotChoice(x="joules"))).get_xlabel()
    assert known == "energy of the clients where it is known (J)"
    with pytest.raises(UserError, match="energy of all clients of these runs is unknown") as raised:
        chart_of({"a": unknown}, PlotChoice(x="joules"))
    assert raised.value.hint == "known: time, round, epochs, bytes, client-seconds"


def test_what_a_target_took_is_a_point_of_each_run():
    """The mean, the interval over seeds and the bounds, in base units; who did not reach it says so."""
    spent = {"a": [4.0, 5.0, 6.0], "b": [9.0, None], "c": [None]}
    chart = target_chart(spent, PlotChoice(y="target"))
    mean, some, never = chart.plot.frame.blocks
    axes = axes_of(chart)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time to 50% (s)", "")
    half = 4.302652730 / 3**0.5
    assert mean["spent"] == 5
    assert mean["seeds"] == pytest.approx((5 - half, 5 + half))
    assert mean["bounds"] == (2.5, 10)
    assert (mean["whole"], some["whole"], some["spent"], some["seeds"]) == (True, False, 9, None)
    assert (never["spent"], never["told"]) == (None, "not reached")
    assert {line.get_color() for line in axes.lines} == {colour for colour, _ in styles(list(spent))[:2]}
    assert chart.caption.endswith("; mean and its 95% interval (Student's t) over 2 or 3 seeds")
    with pytest.raises(UserError, match="the runs have no target"):
        target_chart({"a": [1.0]}, PlotChoice(y="target"), None)
    # A range beyond thirty times the least is logarithmic; not where that is 0.
    for times, log_x, is_log in ((30.0, False, False), (31.0, False, True), (2.0, True, True)):
        found = target_chart({"a": [1.0], "b": [times]}, PlotChoice(y="target", log_x=log_x))
        assert found.choice.log_x is is_log
    zero = target_chart({"a": [0.0], "b": [9.0]}, PlotChoice(y="target", log_x=True))
    assert zero.choice.log_x is False
