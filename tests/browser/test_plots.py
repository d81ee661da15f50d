"""The page's plots: what they draw and what their files hold is what the page's record says."""

from __future__ import annotations

import csv
import io
import math
import random
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from seen import faults, used

from edgefl.analysis.published import Beside, Figure
from edgefl.core import units
from edgefl.core.corners import Interval
from edgefl.show.formats import csv_cell
from edgefl.show.page.records import Sweep
from edgefl.show.page.sections.measures import MeasureSeries

SECTIONS = (
    "curves", "costs", "published", "durations", "rounds", "activity", "participation", "memory",
    "partition", "measures",
)  # fmt: skip

# Chromium lets a page start ten downloads a second; a test asks for more.
CSV = """plot => new Promise(done => {
  const own = edgefl.save;
  edgefl.save = (name, text) => { edgefl.save = own; done(text); };
  document.querySelector(`#plot-${plot} .downloads button:nth-child(2)`).click();
})"""


def rows_of(page, plot):
    """A plot's CSV as rows of texts, the headings first."""
    return list(csv.reader(io.StringIO(page.page.evaluate(CSV, plot))))


def numbers(rows, *columns):
    """Columns of a CSV as numbers, NaN where they are empty; one tuple a row."""
    places = [rows[0].index(column) for column in columns]
    return [tuple(float(row[place] or "nan") for place in places) for row in rows[1:]]


def same(found, expected):
    """Whether two lists of tuples hold the same numbers, to the last bit; None is NaN."""
    expected = [tuple(math.nan if one is None else float(one) for one in row) for row in expected]
    return len(found) == len(expected) and np.array_equal(found, expected, equal_nan=True)


def test_quantities_are_shown_as_edgefl_prints_them(visit):
    """The page's formatter gives the text of core/units.py, for amounts of all sizes and for ties."""
    draw = random.Random(3)  # noqa: S311 - no secrets
    amounts = [0, 1, 0.5, 59.5, 60.5, 90.5, 3599.5, 3600, 7265, 86400, 1125, 1375, 999499, 999500, 1e-9]
    amounts += [10 ** draw.uniform(-8, 17) for _ in range(300)] + [draw.randrange(10**6) for _ in range(100)]
    shown = {"B": units.show_bytes, "J": units.show_joules, "s": units.show_seconds, "FLOP": units.show_flops}
    page = visit().page
    for unit, show in shown.items():
        found = page.evaluate("([all, unit]) => all.map((one) => edgefl.number(one, unit))", [amounts, unit])
        assert found == [show(amount) for amount in amounts]
    shares = [0, 1, 0.944, 0.0003, 0.00001, 0.5, 0.01]
    found = page.evaluate("all => all.map((one) => edgefl.number(one, 'share'))", shares)
    assert found == [units.show_share(one, 1) for one in shares]
    assert page.evaluate("edgefl.number(null, 'J')") == "unknown"


def columns(records, *names):
    """Columns of records as rows of numbers, one record after the other."""
    return [row for one in records for row in zip(*(getattr(one, name) for name in names), strict=True)]


def expected(record):
    """What a plot's CSV holds: the plot, its columns, and the record's numbers in them."""
    data = record.partition[0]
    return [
        ("accuracy", ["accuracy", "loss"], columns(record.curves, "accuracy", "loss")),
        ("accuracy", ["virtual time (s)"], [(t,) for one in record.curves for t in one.x["time"]]),
        (
            "durations",
            ["virtual time (s)", "share that took at most so long"],
            columns(record.durations, "seconds", "share"),
        ),
        (
            "active",
            ["from (s)", "mean of active clients", "most active clients"],
            columns(record.activity, "t_s", "active_mean", "active_max"),
        ),
        (
            "participation",
            ["round", "distinct clients", "Jain's index"],
            columns(record.participation, "round", "distinct", "fairness"),
        ),
        (
            "memory",
            ["need (B)", "limit (B)", "refused"],
            [(one.peak_bytes, one.limit_bytes, one.refused) for one in record.memory],
        ),
        (
            "devices",
            ["energy of all (J)", "energy of a client a round (J)"],
            [
                (use.get("joules"), use.get("joules_per_round"))
                for one in record.costs
                for use in one.devices.values()
            ],
        ),
        ("partition", [f"class {name} (samples)" for name in data.classes], data.counts),
    ]


def test_files_hold_the_records_numbers(visit, record):
    """A plot's CSV has the numbers of the page's record, none left out and none rounded."""
    page = visit()
    page.draw_all()
    for plot, names, rows in expected(record):
        assert same(numbers(rows_of(page, plot), *names), rows), plot
    costs = rows_of(page, "costs")
    moved = [way for one in record.costs for part in one.bytes_by_part.values() for way in part.values()]
    assert [float(row[4]) for row in costs if row[1] == "bytes by part"] == moved
    waste = rows_of(page, "waste")
    spent = [ending["client_s"] for one in record.costs for ending in one.endings.values()]
    assert [float(row[4]) for row in waste if row[2] == "client time"] == spent
    first = record.rounds[0]
    jobs = numbers(rows_of(page, "round"), "client", "ended (s)")
    assert sorted(jobs) == sorted(zip(first.client, first.ended_s, strict=True))


def test_a_round_is_drawn_job_by_job(visit, record):
    """Bars are the record's stages, the words name who was waited for, and arrow keys move the slider."""
    page = visit()
    page.draw_all()
    run = record.rounds[0]
    for at in (0, 1):
        jobs = range(run.first[at], run.first[at + 1])
        bars = page.page.evaluate(
            "() => { const {data, layout} = document.querySelector('#plot-round .canvas');"
            " return [data.slice(0, 3).map(({base, x}) => x.map((one, at) => [base[at], base[at] + one])),"
            " layout.xaxis.title.text]; }"
        )
        size = {"ms": 1e-3, "s": 1, "min": 60}[bars[1].partition("(")[2][:-1]]
        work = [(run.received_s[job] - run.from_s[at], run.worked_s[job] - run.from_s[at]) for job in jobs]
        drawn = [(one * size, other * size) for one, other in bars[0][1]]
        assert np.allclose(sorted(drawn), sorted(pair for pair in work if not math.isnan(pair[1])))
        note = page.page.inner_text("#plot-round .note")
        if run.waited_client[at] >= 0:
            assert f"for client {run.waited_client[at]} (" in note
            assert units.show_seconds(run.waited_s[at]) in note
        slider = page.page.locator("#plot-round input[type=range]")
        slider.focus()
        page.page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext").startswith(f"round {run.round[at + 1]}")
        assert page.page.evaluate("document.activeElement.type") == "range"


def test_time_away_is_a_part_of_its_own(visit, record):
    """A job's stage ends with the time in which its client was away; jobs that were not merged are faint."""
    run = record.rounds[0]
    count = len(run.client)
    work = [0.0 if math.isnan(worked) else (worked - received) / 2
            for received, worked in zip(run.received_s, run.worked_s, strict=True)]  # fmt: skip
    ending = ["lost", *run.ending[1:]]
    page = visit(replace(record, rounds=[replace(run, work_away_s=work, ending=ending)]))
    page.draw_all()
    data = page.page.evaluate("document.querySelector('#plot-round .canvas').data")
    bars = {one["name"]: one for one in data if one["type"] == "bar"}
    assert set(bars) == {"receive", "work", "transmit", "away or paused", "wait for the merge"}
    assert np.allclose(bars["away or paused"]["x"], bars["work"]["x"])
    ends = np.add(bars["work"]["base"], bars["work"]["x"])
    assert np.allclose(bars["away or paused"]["base"], ends)
    assert sorted(bars["work"]["marker"]["opacity"])[:2] == [0.4, 1]
    assert "✕ lost" in " ".join(data[-1]["text"])
    assert "Faint jobs were not merged: 1 lost of" in page.page.inner_text("#plot-round .note")
    assert "of which" in bars["work"]["text"][0]
    rows = rows_of(page, "round")
    assert len(numbers(rows, "away while working (s)")) == count


def test_the_slowest_round_is_a_click_away(visit, record):
    """Its button moves the slider, says so, and keeps the focus."""
    run = next(one for one in record.rounds if one.slowest != 0)
    page = visit(replace(record, rounds=[run]))
    page.draw_all()
    button = page.page.locator("#plot-round .slider button")
    button.click()
    slider = page.page.locator("#plot-round input[type=range]")
    assert int(slider.input_value()) == run.slowest
    assert slider.get_attribute("aria-valuetext").startswith(f"round {run.round[run.slowest]}")
    assert page.page.evaluate("document.activeElement.textContent") == "Slowest round"
    length = units.show_seconds(run.to_s[run.slowest] - run.from_s[run.slowest])
    assert f"it took {length}" in page.page.inner_text("#plot-round .note")


def test_runs_of_several_seeds_have_a_line(visit, record):
    """At first one for each group, of its first seed, as the words below say; all on request."""
    page = visit()
    page.draw_all()
    groups, runs = len(record.groups), len(record.runs)
    assert runs == 2 * groups
    for plot in ("durations", "active", "participation"):
        assert len(page.drawn(plot)["data"]) == groups
        note = f"#plot-{plot} .note"
        assert "the first is drawn" in page.page.inner_text(note)
        page.page.locator(f"#plot-{plot} select").select_option("all runs")
        assert len(page.drawn(plot)["data"]) == runs
        assert "the first is drawn" not in page.page.inner_text(note)


def test_a_wide_band_leaves_an_axis_of_accuracies_as_it_is(visit, record):
    """Of two seeds it reaches beyond 0% and 100%, where there are none; losses have no such ends."""
    low, high = np.full(2, -3.0), np.full(2, 4.0)
    wide = [
        replace(
            one,
            **{
                f"{name}_{end}": np.resize(at, len(one))
                for name in ("accuracy", "loss")
                for end, at in (("low", low), ("high", high))
            },
        )
        for one in record.curves
    ]
    page = visit(replace(record, curves=wide))
    page.draw_all()
    ends = "document.querySelector('#plot-accuracy .canvas')._fullLayout.yaxis.range"
    low, high = page.page.evaluate(ends)
    assert -5 <= low <= 0
    assert 100 <= high <= 105
    page.page.check("#plot-accuracy input[value=loss]")
    low, high = page.page.evaluate(ends)
    assert low <= -3 < 4 <= high


def test_a_legend_has_the_runs_that_are_drawn(visit, record):
    """Of one run's activity its own name alone. All can be hidden at once, and shown again."""
    page = visit()
    page.draw_all()
    shown = "all => all.filter(one => one.checkVisibility()).map(one => one.innerText)"
    names = [one.name for one in record.groups]
    assert page.page.eval_on_selector_all("#plot-accuracy .legend button", shown) == ["Hide all", *names]
    page.page.locator("#plot-active select").select_option(index=2)
    assert page.page.eval_on_selector_all("#plot-active .legend button", shown) == [names[0]]
    page.page.click("#plot-accuracy .legend .all")
    assert {one["visible"] for one in page.drawn("accuracy")["data"]} == {False}
    page.page.click("#plot-accuracy .legend .all")
    assert {one["visible"] for one in page.drawn("accuracy")["data"]} == {True}


def test_the_slider_has_the_chosen_runs_rounds(visit, record):
    """Another run's rounds have their own numbers on the slider, and the switch in use keeps the focus."""
    other = replace(record.rounds[1], round=list(reversed(record.rounds[1].round)))
    page = visit(replace(record, rounds=[record.rounds[0], other]))
    page.draw_all()
    select = page.page.locator("#plot-round select")
    select.focus()
    select.select_option(index=1)
    assert page.page.locator("#plot-round output").inner_text() == "round 2, train"
    assert page.page.evaluate("document.activeElement.name") == "round-run"


def test_a_long_wait_does_not_hide_the_jobs(visit, record):
    """Where a merge comes long after the last arrival, the axis ends with the jobs, and the words say so."""
    first = record.rounds[0]
    late = [end + 3600 for end in first.to_s]
    page = visit(replace(record, rounds=[replace(first, to_s=late)]))
    page.draw_all()
    title = page.drawn("round")["title"]
    assert title in {f"virtual time since the first dispatch ({unit})" for unit in ("ms", "s")}
    note = page.page.inner_text("#plot-round .note")
    assert "it took 1 h 00 min" in note
    assert "Most of the wait is not drawn." in note


def test_the_front_is_drawn(visit, record):
    """The Pareto front's line goes through the record's groups, and the words name them."""
    page = visit()
    page.draw_all()
    front = record.sweep.fronts[0]
    figures = record.sweep.figures
    line = page.drawn("pareto")["data"][0]
    assert np.allclose(line["y"], [100 * figures[front.accuracy].values[group] for group in front.groups])
    costs = [figures[front.cost].values[group] for group in front.groups]
    assert np.allclose(np.divide(line["x"], line["x"][0]), np.divide(costs, costs[0]))
    for group in front.groups:
        assert record.groups[group].name in page.page.inner_text("#plot-pareto .note")


def test_many_points_are_thinned_but_for_the_file(visit, record):
    """A line of 50,000 points is drawn with some of them, its extremes among them; the CSV has all."""
    count = 50_000
    values = np.sin(np.arange(count) / 700.0) / 4 + 0.5
    values[12_345], values[40_001] = 0.99, 0.01
    own = record.curves[0]
    x = {key: np.arange(count, dtype=float) for key in own.x}
    bounds = dict.fromkeys(("accuracy_low", "accuracy_high", "loss_low", "loss_high"))
    long = replace(own, x=x, accuracy=values, loss=values, **bounds)
    page = visit(replace(record, curves=[long]))
    page.draw_all()
    (line,) = page.drawn("accuracy")["data"]
    assert len(line["x"]) < 10_000
    assert line["x"][0] == 0
    assert math.isclose(max(line["y"]), 99)
    assert math.isclose(min(line["y"]), 1)
    assert len(rows_of(page, "accuracy")) == count + 1


def test_what_is_empty_has_nothing_to_choose_nor_to_save(visit, record):
    """Words alone: neither switches nor downloads, unless another choice has something to draw."""
    still = [replace(one, staleness_max=[0] * len(one.staleness_max)) for one in record.activity]
    ended = {name: {**one, "jobs": 0} for name, one in record.costs[0].endings.items()}
    unknown = {device: {"clients": use["clients"]} for device, use in record.costs[0].devices.items()}
    nothing = {"bytes_by_part": {}, "joules_by_phase": {}, "endings": ended}
    page = visit(
        replace(
            record,
            activity=still,
            partition=[replace(record.partition[0], counts=[], why="so"), *record.partition],
            costs=[
                replace(record.costs[0], **nothing, devices=unknown),
                *(replace(one, devices=unknown) for one in record.costs[1:]),
            ],
        )
    )
    page.draw_all()
    for plot, shown in (("staleness", False), ("devices", False), ("partition", True), ("active", True)):
        for part in (".switches", ".downloads", ".downloads details"):
            assert page.page.locator(f"#plot-{plot} > {part}").is_visible() == shown
    assert page.page.locator("#plot-partition .words").inner_text() == "Nothing to draw: so."
    name = record.groups[0].name
    assert f"No job has ended of {name}." in page.page.inner_text("#plot-costs .note")
    page.page.locator("#plot-partition select").select_option(index=1)
    assert page.page.locator("#plot-partition .canvas").is_visible()


FORMULAS = [f"{chr(sign)}1" for sign in (*b"=+-@\t\r\n", 0xFF1D, 0xFF0B, 0xFF0D, 0xFF20)]


def test_files_of_plots_are_as_safe_as_those_of_tables(visit):
    """A cell is what `edgefl table` would write: formulas are quoted, numbers and empty ones are not."""
    texts, numbers = [*FORMULAS, 'a "b", c', "ä", " x"], [-1, 1e-300, 2.0**53, 0.1]
    saved = visit().page.evaluate(
        "cells => { let text; edgefl.save = (_, one) => { text = one; };"
        " edgefl.saveCsv('x', {columns: ['a', 'b'], rows: cells.map((one) => [one, 0])}); return text; }",
        [*texts, *numbers, None],
    )
    _, *found = (row[0] for row in csv.reader(io.StringIO(saved, newline="")))
    assert found[: len(texts)] == [csv_cell(one) for one in texts]
    assert all(one.startswith("'") for one in found[: len(FORMULAS)])
    assert [float(one) for one in found[len(texts) : -1]] == numbers
    assert found[-1] == csv_cell(None) == ""


def test_nothing_to_draw_is_said_in_words(visit, record):
    """Of a page without data every plot says why there is nothing; none is a hole."""
    page = visit(replace(record, sweep=Sweep({}, []), **{name: [] for name in SECTIONS}))
    page.draw_all()
    words = page.page.eval_on_selector_all(
        "figure.plot", "all => all.map(one => [one.dataset.drawn, one.querySelector('.words').textContent])"
    )
    assert len(words) > len(SECTIONS)
    assert [one for one in words if one[0] != "words" or not one[1].startswith("Nothing to draw: ")] == []


def series(labels, values, **more):
    """A measure of the first run, two versions."""
    made = {"measure": "class-accuracy", "figure": "", "model": "global", "quantile": None, "unit": "share"}
    made |= {"run": 0, "version": [1, 2], "round": [0, 1], "labels": labels, "values": values}
    return MeasureSeries(**made | more)


@pytest.fixture
def telling(record):
    """A record with measures by class and over clients, a refused device and published figures."""
    names = ["", *record.partition[0].classes]
    rising = [[0.1 + 0.05 * place + 0.2 * at for place in range(len(names))] for at in range(2)]
    rising[0][3] = None
    quantiles = [
        series([""], [[one], [one]], measure="personal-accuracy", model="personal", quantile=one)
        for one in (0.0, 0.1, 0.5, 0.9, 1.0)
    ]
    figure = Figure("a", "accuracy", "share", 0.4, 0, "a", 0.25, Interval(0.2, 0.3), -0.15)
    paper = Beside(
        "A paper, Table 1", "", [figure, replace(figure, run="b", group=None, name="", here=None)], []
    )
    tiny = {"device": "tiny", "peak_bytes": 2000, "admitted_bytes": None, "limit_bytes": 1000}
    refused = replace(record.memory[0], **tiny, run=0, clients=3, refused=3)
    return replace(
        record,
        measures=[series(names, rising), *quantiles],
        published=[paper],
        memory=[*record.memory, refused],
    )


def test_measures_published_and_refused(visit, telling):
    """Measures by class are a map, over clients a band; refused clients and both figures are told."""
    page = visit(telling)
    page.draw_all()
    assert faults(page, "published", "memory") == []
    assert used(page, "measures", "memory")[1] == []
    select = page.page.locator("#plot-measures select").first
    select.select_option("class-accuracy, global, by class")
    cells = page.page.evaluate("document.querySelector('#plot-measures .canvas').data[0].z")
    expected = [[row[place] for row in telling.measures[0].values] for place in range(1, len(cells) + 1)]
    assert np.allclose(np.array(cells, float) / 100, np.array(expected, float), equal_nan=True)
    select.select_option("personal-accuracy, personal, over clients")
    band, line = page.drawn("measures")["data"]
    assert (np.unique(band["y"]).round(6).tolist(), set(line["y"])) == ([10, 90], {50})
    page.page.locator("#plot-memory select").select_option(index=0)
    assert "Refused: 3 clients (tiny, mlp: train)." in page.page.inner_text("#plot-memory .note")
    published, ours = page.drawn("published")["data"]
    assert (published["x"], ours["x"]) == ([40, 40], [25])
    bars = page.page.evaluate("document.querySelector('#plot-published .canvas').data[1].error_x.array")
    assert np.allclose(bars, [5])
    assert "Not here: b." in page.page.inner_text("#plot-published .note")
    for plot in ("measures", "published", "memory"):
        assert len(rows_of(page, plot)) > 1
        _, text = page.download(f"#plot-{plot} .downloads button:nth-child(1)")
        picture = ET.fromstring(text)  # noqa: S314 - our own text
        assert len(list(picture.iter())) > 50


def test_names_stay_text_in_plots(visit, record):
    """A group's name with tags, entities and TeX is shown as it is in the legend of the picture."""
    name = "<b>x</b> &lt; $y$ <script>"
    page = visit(replace(record, groups=[replace(record.groups[0], name=name), *record.groups[1:]]))
    said = []
    page.page.on("console", lambda one: said.append(one.text))
    page.draw_all()
    _, text = page.download("#plot-accuracy .downloads button:nth-child(1)")
    words = " ".join("".join(one.itertext()) for one in ET.fromstring(text).iter())  # noqa: S314 - our own text
    assert name in words
    # Plotly says that it lacks MathJax where it finds TeX.
    assert said == []
