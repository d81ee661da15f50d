"""The page in a browser: it opens from disk, plots draw, and switches, tables and downloads work."""

import csv
import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from paged import plot_of
from visits import PHONE


def test_a_plot_is_drawn_when_it_comes_into_view(visit):
    """At first only what is near the window is drawn; the last plot is when one scrolls to it."""
    page = visit().page
    last = page.locator("figure.plot:visible").last
    assert last.get_attribute("data-drawn") is None
    last.scroll_into_view_if_needed()
    page.wait_for_function("id => document.getElementById(id).dataset.drawn", arg=last.get_attribute("id"))


def test_the_first_screen_says_who_is_ahead(visit, record):
    """Without scrolling one sees what was compared, the fleet and the verdict's first rows."""
    page = visit().page
    text = page.inner_text("#verdict")
    for words in ("fedavg", "digits", "raspberry-pi-5", "wifi-pi4"):
        assert words in text
    for one in record.told.figures:
        if one.metric.judged and one.metric.main:
            assert one.metric.label in text
    first = page.locator("#verdict tbody tr").first.bounding_box()
    assert first["y"] + first["height"] < 900


def test_a_switch_changes_the_axis_and_keeps_the_rest(shared, record):
    """The radio buttons of a plot change what it shows: its x are the record's."""
    page = shared
    blocks = plot_of(record, "accuracy").frame.blocks
    shown = [one for one in blocks if one["model"] == blocks[0]["model"]]
    for axis in ("round", "bytes", "time"):
        page.page.check(f"#plot-accuracy input[name=accuracy-x][value={axis}]")
        lines = [
            one["x"] for one in page.drawn("accuracy")["data"] if len(one["x"]) == len(shown[0]["accuracy"])
        ]
        # The axis may have another prefix, such as kB.
        size = max(max(one[axis]) for one in shown) / max(map(max, lines))
        expected = [list(one[axis]) for one in shown]
        assert np.allclose(sorted([size * x for x in line] for line in lines), sorted(expected))


def test_a_log_switch(shared):
    """A log switch makes the axis logarithmic, and linear again."""
    page = shared
    box = "#plot-accuracy input[name=accuracy-log_x]"
    page.page.check(box)
    assert page.drawn("accuracy")["x"] == "log"
    page.page.uncheck(box)
    assert page.drawn("accuracy")["x"] != "log"


def test_the_legend_hides_a_run_everywhere(shared):
    """A click in one plot's legend hides the run in all plots, and a second click shows it again."""
    page = shared
    everywhere = (
        "shown => { const found = [...document.querySelectorAll('figure.plot[data-drawn=plot] .canvas')]"
        ".flatMap(one => one.data.filter(trace => trace.meta?.group === 1).map(trace => trace.visible));"
        " return found.length > 1 && found.every(one => one === shown); }"
    )
    page.page.wait_for_function(everywhere, arg=True)
    button = page.page.locator("#plot-accuracy .legend [aria-pressed]").nth(1)
    button.click()
    page.page.wait_for_function(everywhere, arg=False)
    pressed = page.page.eval_on_selector_all(
        ".legend", "all => all.map(one => one.querySelectorAll('[aria-pressed]')[1]?.ariaPressed)"
    )
    assert set(pressed) <= {"false", None}
    button.click()
    page.page.wait_for_function(everywhere, arg=True)


def test_tables_sort(shared):
    """A heading's button sorts by its column, up and then down, and says so to a screen reader."""
    page = shared.page
    table = page.locator("#runs table").first
    seeds = table.locator("tbody td:nth-child(4)")
    before = seeds.all_inner_texts()
    head = table.locator("thead th").nth(3)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert seeds.all_inner_texts() == sorted(before)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert seeds.all_inner_texts() == sorted(before, reverse=True)


# Chromium lets a page start ten downloads a second; a test asks for more.
_SAVED = """async () => {
  const saved = [], own = edgefl.save;
  edgefl.save = (name, text) => saved.push([name, text]);
  for (const plot of document.querySelectorAll("figure.plot[data-drawn=plot]")) {
    for (const button of plot.querySelectorAll(".downloads button")) button.click();
  }
  const all = 2 * document.querySelectorAll("figure.plot[data-drawn=plot]").length;
  while (saved.length < all) await new Promise((done) => setTimeout(done, 20));
  edgefl.save = own;
  return saved;
}"""


def test_what_a_plot_saves(shared):
    """Each drawn plot gives its table as CSV, a row of headings first, and its picture as SVG."""
    page = shared
    saved = dict(page.page.evaluate(_SAVED))
    tables = {name.removesuffix(".csv"): text for name, text in saved.items() if name.endswith(".csv")}
    pictures = {name.removesuffix(".svg"): text for name, text in saved.items() if name.endswith(".svg")}
    assert tables.keys() == pictures.keys() >= {"accuracy", "costs", "durations", "round"}
    for text in tables.values():
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows}) == 1
        assert len(rows) > 1
    for text in pictures.values():
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own text


def test_downloads(shared):
    """The buttons of a plot give files that are named after it; its text alternative has the CSV's rows."""
    page = shared
    name, text = page.download("#plot-accuracy .downloads button:nth-child(1)")
    assert (name, text.startswith("<svg")) == ("edgefl-accuracy.svg", True)
    name, text = page.download("#plot-accuracy .downloads button:nth-child(2)")
    assert (name, text.count("\n") > 1) == ("edgefl-accuracy.csv", True)
    page.page.click("#plot-accuracy summary")
    shown = page.page.locator("#plot-accuracy details tbody tr")
    shown.first.wait_for()
    assert shown.count() == len(text.splitlines()) - 1


@pytest.mark.nightly
def test_dark_and_light(visit):
    """The page follows what the user prefers, and the button turns it; plots take its ink."""
    page = visit(scheme="dark")
    ink = "() => getComputedStyle(document.body).color"
    font = "() => document.querySelector('#plot-accuracy .canvas')._fullLayout.font.color"
    page.draw_all()
    dark = page.page.evaluate(ink)
    assert page.page.evaluate(font) == dark
    page.page.click("#theme")
    assert page.page.evaluate(ink) != dark
    assert page.page.evaluate(font) == page.page.evaluate(ink)


def test_a_phone_does_not_scroll_sideways(visit):
    """At 360 pixels nothing is wider than the window, with all plots drawn and all details open."""
    page = visit(width=PHONE)
    page.draw_all()
    page.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    page.page.wait_for_timeout(100)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= PHONE


@pytest.mark.nightly
def test_print_is_light_and_has_everything(visit):
    """In print there are no switches, the colours are light, and plots that were never in view are drawn.

    Browsers say that they will print before the rules of print hold; plots have a page's width then.
    """
    page = visit(scheme="dark").page
    page.emulate_media(media="print")
    page.wait_for_function(
        "() => [...document.querySelectorAll('figure.plot')].every(one => one.dataset.drawn)", timeout=20_000
    )
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for control in ("nav", "#theme", ".switches", ".downloads"):
        assert not page.locator(control).first.is_visible()
    assert page.locator("#provenance h2").is_visible()
    ink = page.evaluate("document.querySelector('#plot-accuracy .canvas')._fullLayout.font.color")
    assert ink == page.evaluate("getComputedStyle(document.body).color")
    page.emulate_media(media="screen")
    drawn = (
        "event => { dispatchEvent(new Event(event));"
        " const {layout} = document.querySelector('#plot-accuracy .canvas');"
        " return [layout.template.layout.font.color, layout.width]; }"
    )
    assert page.evaluate(drawn, "beforeprint") == ["rgb(27, 31, 36)", 720]
    assert page.evaluate(drawn, "afterprint") == ["rgb(232, 234, 237)", None]


def test_without_javascript(visit, record):
    """The text and the tables are in the HTML; the page says what is missing."""
    page = visit(ready=False, java_script_enabled=False).page
    text = page.inner_text("main")
    assert "Plots need JavaScript" in text
    assert record.told.figures[0].metric.label in text
