"""The page's plots: what they draw and what their files hold is what the page's frames say."""

import csv
import io
import math
import random
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from paged import plot_of, redrawn
from seen import faults, used

from edgefl.analysis.published import Beside, Figure
from edgefl.core import units
from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.show.formats import csv_cell
from edgefl.show.page.sections import published

# Chromium lets a page start ten downloads a second; a test asks for more.
CSV = """plot => new Promise(done => {
  const own = edgefl.save;
  edgefl.save = (name, text) => { edgefl.save = own; done(text); };
  document.querySelector(`#plot-${plot} .downloads button:nth-child(2)`).click();
})"""


def rows_of(page, plot):
    """A plot's CSV as rows of texts, the headings first."""
    return list(csv.reader(io.StringIO(page.page.evaluate(CSV, plot))))


def blocks_of(record, plot):
    """What a plot draws."""
    return plot_of(record, plot).frame.blocks


def test_quantities_are_shown_as_edgefl_prints_them(shared):
    """The page's formatter gives the text of core/units.py, for amounts of all sizes and for ties."""
    draw = random.Random(3)  # noqa: S311 - no secrets
    amounts = [0, 1, 0.5, 59.5, 60.5, 90.5, 3599.5, 3600, 7265, 86400, 1125, 1375, 999499, 999500, 1e-9]
    # Of their decimals ties, of the numbers themselves none.
    amounts += [4_975_000, 4_935, 4.935, 4.975]
    amounts += [10 ** draw.uniform(-8, 17) for _ in range(300)] + [draw.randrange(10**6) for _ in range(100)]
    shares = [0, 1, 0.944, 0.0003, 0.00001, 0.5, 0.01]
    page = shared.page
    for unit in ("B", "J", "s", "FLOP", "g", "loss", "EUR", "share", "index", ""):
        few = shares if unit in {"share", "index"} else [one for one in amounts if unit or one < 2**53]
        found = page.evaluate("([all, unit]) => all.map((one) => edgefl.number(one, unit))", [few, unit])
        assert found == [units.show(amount, unit) for amount in few]
    assert page.evaluate("edgefl.number(null, 'J')") == "unknown"


def test_files_hold_the_frames_numbers(shared, record):
    """A plot's CSV has all rows of its frame, none rounded; of a map a row for each cell."""
    for section in record.sections:
        for plot in section.plots if not section.nothing else ():
            columns, blocks = plot.frame
            if not blocks:
                continue
            heads, *rows = rows_of(shared, plot.id)
            assert len(heads) == len(columns) + 1
            if plot.mark == "heat":
                expected = [value for one in blocks for row in one[plot.z] for value in row]
                places = [list(columns).index(plot.z) + 1]
            else:
                names = plot.x[:1] if plot.x[0] in columns else ["client"]
                expected = [
                    value
                    for one in map(document, blocks)
                    for value in (one[names[0]] if isinstance(one[names[0]], list) else [one[names[0]]])
                ]
                places = [list(columns).index(names[0]) + 1]
            found = [float(row[places[0]] or "nan") for row in rows]
            assert np.array_equal(found, np.array(expected, dtype=float), equal_nan=True), plot.id


def test_a_round_is_drawn_job_by_job(shared, record):
    """Bars are the block's stages, the words name who was waited for; keys and a button move the slider."""
    page = shared
    for at, one in enumerate(blocks_of(record, "round")[:2]):
        bars, title = page.page.evaluate(
            "() => { const {data, layout} = document.querySelector('#plot-round .canvas');"
            " return [data[1].x.map((x, at) => [data[1].base[at], data[1].base[at] + x]),"
            " layout.xaxis.title.text]; }"
        )
        size = {"s": 1, "ms": 1e-3}[title[title.index("(") + 1 : -1]]
        spans = zip(one["received_s"], one["worked_s"], strict=True)
        work = [(start - one["from_s"], end - one["from_s"]) for start, end in spans]
        drawn = [(start * size, end * size) for start, end in bars]
        assert np.allclose(sorted(drawn), sorted(pair for pair in work if not math.isnan(pair[1])))
        assert one["notes"][""] in page.page.inner_text("#plot-round .note")
        slider = page.page.locator("#plot-round input[type=range]")
        slider.focus()
        page.page.keyboard.press("ArrowRight")
        assert slider.get_attribute("aria-valuetext").startswith(f"round {at + 1}")
        assert page.page.evaluate("document.activeElement.type") == "range"
    blocks = blocks_of(record, "round")
    run = next(one["run"] for one in blocks if one.get("slowest") and one["at"])
    slowest = next(one for one in blocks if one.get("slowest") and one["run"] == run)
    page.page.locator("#plot-round select").select_option(index=run)
    page.page.locator("#plot-round .slider button").click()
    slider = page.page.locator("#plot-round input[type=range]")
    assert slider.get_attribute("aria-valuetext") == slowest["label"]
    assert page.page.evaluate("document.activeElement.textContent") == "Slowest round"
    assert slowest["notes"][""] in page.page.inner_text("#plot-round .note")


def test_time_away_is_a_part_of_its_own(visit, record):
    """A job's stage ends with the time in which its client was away; jobs that were not merged are faint."""
    one = blocks_of(record, "round")[0]
    pairs = zip(one["received_s"], one["worked_s"], strict=True)
    work = [0.0 if math.isnan(worked) else (worked - received) / 2 for received, worked in pairs]
    page = visit(
        redrawn(record, round=[{**one, "work_away_s": work, "ending": ["lost", *one["ending"][1:]]}])
    )
    page.draw_all()
    data = page.page.evaluate("document.querySelector('#plot-round .canvas').data")
    bars = {one["name"]: one for one in data if one["type"] == "bar"}
    assert set(bars) == {"receive", "work", "transmit", "away or paused", "wait for the merge"}
    assert np.allclose(bars["away or paused"]["x"], bars["work"]["x"])
    ends = np.add(bars["work"]["base"], bars["work"]["x"])
    assert np.allclose(bars["away or paused"]["base"], ends)
    assert sorted(bars["work"]["marker"]["opacity"])[:2] == [0.4, 1]
    assert "✕ lost" in " ".join(data[-1]["text"])
    assert "of which" in bars["work"]["text"][0]


def test_runs_of_several_seeds_have_a_line(shared, record):
    """At first one for each group, of its first seed, as is said; all on request; one in detail."""
    page = shared
    groups, runs = len(record.told.groups), len(record.told.runs)
    assert runs == 2 * groups
    for plot in ("durations", "active", "participation"):
        assert len(page.drawn(plot)["data"]) == groups
        note = f"#plot-{plot} .note"
        assert "the first is drawn" in page.page.inner_text(note)
        page.page.locator(f"#plot-{plot} select").select_option("all runs")
        assert len(page.drawn(plot)["data"]) == runs
        assert "the first is drawn" not in page.page.inner_text(note)
    page.page.locator("#plot-active select").select_option(index=2)
    names = [one["name"].strip("\u2068\u2069") for one in page.drawn("active")["data"]]
    assert names == ["mean over a fortieth", "mean over a four-hundredth", "most at once"]


@pytest.mark.nightly
def test_a_wide_band_leaves_an_axis_of_accuracies_as_it_is(visit, record):
    """Of two seeds it reaches beyond 0% and 100%, where there are none; losses have no such ends.

    A legend has the runs that are drawn, of one run's staleness its name alone; all hide at once.
    """
    ends = {"low": -3.0, "high": 4.0}
    wide = [
        {
            **one,
            **{
                f"{name}_{end}": [at] * len(one["round"])
                for name in ("accuracy", "loss")
                for end, at in ends.items()
            },
        }
        for one in blocks_of(record, "accuracy")
    ]
    one = {"run": 0, "of": "", "t_s": [1, 2], "behind": [0, 1]}
    page = visit(redrawn(record, accuracy=wide, staleness=[one]))
    page.draw_all()
    range_ = "document.querySelector('#plot-accuracy .canvas')._fullLayout.yaxis.range"
    low, high = page.page.evaluate(range_)
    assert -5 <= low <= 0
    assert 100 <= high <= 105
    page.page.check("#plot-accuracy input[value=loss]")
    low, high = page.page.evaluate(range_)
    assert low <= -3 < 4 <= high
    shown = "all => all.filter(one => one.checkVisibility()).map(one => one.innerText)"
    names = [one.name for one in record.told.groups]
    assert page.page.eval_on_selector_all("#plot-accuracy .legend button", shown) == ["Hide all", *names]
    assert page.page.eval_on_selector_all("#plot-staleness .legend button", shown) == [names[0]]
    page.page.click("#plot-accuracy .legend .all")
    assert {one["visible"] for one in page.drawn("accuracy")["data"]} == {False}
    page.page.click("#plot-accuracy .legend .all")
    assert {one["visible"] for one in page.drawn("accuracy")["data"]} == {True}


@pytest.mark.nightly
def test_a_long_wait_does_not_hide_the_jobs(visit, record):
    """Where a merge comes long after the last arrival, the axis ends with the jobs, and the words say so."""
    one = blocks_of(record, "round")[0]
    page = visit(redrawn(record, round=[{**one, "to_s": one["to_s"] + 3600}]))
    page.draw_all()
    title = page.drawn("round")["title"]
    assert title in {f"virtual time since the first dispatch ({unit})" for unit in ("ms", "s")}
    assert "Most of the wait is not drawn." in page.page.inner_text("#plot-round .note")


def test_the_front_is_drawn(shared, record):
    """The Pareto front's line goes through its groups, and the words name them."""
    page = shared
    plot = plot_of(record, "pareto")
    front = plot.joined[f"{plot.y[0]} {plot.x[0]}"]
    values = {one["group"]: (one[plot.x[0]], one[plot.y[0]]) for one in plot.frame.blocks}
    line = page.drawn("pareto")["data"][0]
    assert np.allclose(line["y"], [100 * values[group][1] for group in front])
    assert np.allclose(
        np.divide(line["x"], line["x"][0]), [values[group][0] / values[front[0]][0] for group in front]
    )
    for group in front:
        assert record.told.groups[group].name in page.page.inner_text("#plot-pareto .note")


@pytest.mark.nightly
def test_many_points_are_thinned_but_for_the_file(visit, record):
    """A line of 50,000 points is drawn with some of them, its extremes among them; the CSV has all."""
    count = 50_000
    values = np.sin(np.arange(count) / 700.0) / 4 + 0.5
    values[12_345], values[40_001] = 0.99, 0.01
    own = blocks_of(record, "accuracy")[0]
    long = {name: np.arange(count, dtype=float) for name in own if name in plot_of(record, "accuracy").x}
    block = {"group": 0, "model": "global", "seeds": 1, **long, "accuracy": values}
    page = visit(redrawn(record, accuracy=[block]))
    page.draw_all()
    (line,) = page.drawn("accuracy")["data"]
    assert len(line["x"]) < 10_000
    assert line["x"][0] == 0
    assert math.isclose(max(line["y"]), 99)
    assert math.isclose(min(line["y"]), 1)
    assert len(rows_of(page, "accuracy")) == count + 1


@pytest.mark.nightly
def test_what_is_empty_has_nothing_to_choose_nor_to_save(visit, record):
    """Words alone: neither switches nor downloads, unless another choice has something to draw."""
    (data,) = blocks_of(record, "partition")[:1]
    empty = {"title": "none", "client": [], "class": [], "samples": [], "notes": {"": "so."}}
    page = visit(redrawn(record, staleness=[], devices=[], partition=[empty, data]))
    page.draw_all()
    for plot, shown in (("staleness", False), ("devices", False), ("partition", True), ("active", True)):
        for part in (".switches", ".downloads", ".downloads details"):
            assert page.page.locator(f"#plot-{plot} > {part}").is_visible() == shown
    assert page.page.locator("#plot-partition .words").inner_text() == "Nothing to draw: so."
    page.page.locator("#plot-partition select").select_option(index=1)
    assert page.page.locator("#plot-partition .canvas").is_visible()


FORMULAS = [f"{chr(sign)}1" for sign in (*b"=+-@\t\r\n", 0xFF1D, 0xFF0B, 0xFF0D, 0xFF20)]


def test_files_of_plots_are_as_safe_as_those_of_tables(shared):
    """A cell is what `edgefl table` would write: formulas are quoted, numbers and empty ones are not."""
    texts, numbers = [*FORMULAS, 'a "b", c', "ä", " x"], [-1, 1e-300, 2.0**53, 0.1]
    saved = shared.page.evaluate(
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
    plots = [one.id for section in record.sections for one in section.plots]
    page = visit(redrawn(record, **{one: [] for one in plots}))
    page.draw_all()
    words = page.page.eval_on_selector_all(
        "figure.plot", "all => all.map(one => [one.dataset.drawn, one.querySelector('.words').textContent])"
    )
    assert len(words) == len(plots)
    assert [one for one in words if one[0] != "words" or not one[1].startswith("Nothing to draw: ")] == []


@pytest.fixture
def telling(record):
    """A page with measures by class and over clients, a refused device and published figures."""
    classes = blocks_of(record, "partition")[0]["class"]
    rising = [[0.1 + 0.05 * place + 0.2 * at for at in range(2)] for place in range(len(classes))]
    rising[2][0] = None
    what = {"run": 0, "unit": "share", "round": [0, 1]}
    by_class = {**what, "what": "class-accuracy, by class", "along": "round", "kind": "class"}
    ends = {"value": 0.5, "value_low": 0.1, "value_high": 0.9, "least": 0.0, "largest": 1.0}
    over = {
        **what,
        "what": "own, over clients",
        "version": [1, 2],
        **{name: [at, at] for name, at in ends.items()},
    }
    memory = blocks_of(record, "memory")[0]
    more = {"device": "tiny", "bytes": 2000, "clients": 3, "share": 2.0, "reason": None}
    told = [
        ("need of train", 2000),
        ("limit of the device", 1000),
        ("refused: needs more than it may use", 2000),
    ]
    rows = [{**more, "what": what, "bytes": size} for what, size in told]
    refused = {name: [*memory[name], *(row[name] for row in rows)] for name in more | {"what": ""}}
    figure = Figure("a", "accuracy", "share", 0.4, 0, "a", 0.25, Interval(0.2, 0.3), -0.15)
    missing = replace(figure, run="b", group=None, name="", here=None)
    paper = published.published_section([Beside("A paper, Table 1", "", [figure, missing], [])])
    sections = [paper if one.id == "published" else one for one in record.sections]
    return redrawn(
        replace(record, sections=sections),
        measures=[over],
        parts=[{**by_class, "label": classes, "value": rising}],
        memory=[{**memory, **refused}],
    )


@pytest.mark.nightly
def test_measures_published_and_refused(visit, telling):
    """Measures by class are a map, over clients a band; refused clients and both figures are told."""
    page = visit(telling)
    page.draw_all()
    assert faults(page, "published", "memory", "measures", "parts") == []
    assert used(page, "measures", "memory")[1] == []
    cells = page.page.evaluate("document.querySelector('#plot-parts .canvas').data[0].z")
    expected = blocks_of(telling, "parts")[0]["value"]
    assert np.allclose(np.array(cells, float) / 100, np.array(expected, float), equal_nan=True)
    band, line = page.drawn("measures")["data"]
    assert (np.unique(band["y"]).round(6).tolist(), set(line["y"])) == ([10, 90], {50})
    first, ours = page.drawn("published")["data"]
    assert (first["x"], ours["x"]) == ([40, 40], [25])
    bars = page.page.evaluate("document.querySelector('#plot-published .canvas').data[1].error_x.array")
    assert np.allclose(bars, [5])
    assert "Not here: b." in page.page.inner_text("#plot-published .note")
    for plot in ("measures", "published", "memory"):
        _, text = page.download(f"#plot-{plot} .downloads button:nth-child(1)")
        picture = ET.fromstring(text)  # noqa: S314 - our own text
        assert len(list(picture.iter())) > 50


def test_names_stay_text_in_plots(visit, record):
    """A group's name with tags, entities and TeX is shown as it is in the legend of the picture."""
    name = "<b>x</b> &lt; $y$ <script>"
    groups = [replace(record.told.groups[0], name=name), *record.told.groups[1:]]
    page = visit(replace(record, told=replace(record.told, groups=groups)))
    said = []
    page.page.on("console", lambda one: said.append(one.text))
    page.draw_all()
    _, text = page.download("#plot-accuracy .downloads button:nth-child(1)")
    words = " ".join("".join(one.itertext()) for one in ET.fromstring(text).iter())  # noqa: S314 - our own text
    assert name in words
    # Plotly says that it lacks MathJax where it finds TeX.
    assert said == []
