"""The page for those who use a keyboard or a screen reader."""

from itertools import pairwise

import pytest
from nightly import mostly
from visits import DESKTOP, PHONE

SERIOUS = {"serious", "critical"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("width", "scheme"), mostly([(DESKTOP, "light"), (PHONE, "dark")], [(PHONE, "dark")])
)
def test_axe_finds_nothing_serious(visit, width, scheme):
    """axe-core finds no serious and no critical issue, with all plots drawn and a plot's data open."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = visit(width=width, scheme=scheme)
    page.draw_all()
    page.page.click("#plot-accuracy summary")
    page.page.locator("#provenance summary").last.click()
    page.page.locator("#plot-accuracy details table").wait_for()
    found = axe.Axe().run(page.page).response["violations"]
    serious = [
        (one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in SERIOUS
    ]
    assert serious == []


@pytest.mark.nightly
def test_the_first_tab_skips_to_the_results(visit):
    """The first stop of the keyboard is a link over the navigation, and it is seen."""
    page = visit().page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_switches_work_from_the_keyboard(shared):
    """An arrow key moves the choice of a radio group, and the plot follows."""
    page = shared
    before = page.drawn("accuracy")["title"]
    page.page.focus("#plot-accuracy input[name=accuracy-x]:checked")
    page.page.keyboard.press("ArrowRight")
    assert page.drawn("accuracy")["title"] != before
    assert page.page.evaluate("document.activeElement.checked")


def test_landmarks_and_headings(shared):
    """One h1, a heading for each section that the navigation links to, and no level is left out."""
    page = shared.page
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    links = page.eval_on_selector_all("nav a", "all => all.map(one => one.getAttribute('href').slice(1))")
    sections = page.eval_on_selector_all("main > section", "all => all.map(one => one.id)")
    assert links == sections
    for name in ("banner", "navigation", "main", "contentinfo"):
        assert page.get_by_role(name).count() == 1


def test_every_control_has_a_name(shared):
    """Each radio group has a legend, and each other control a label."""
    unnamed = shared.page.eval_on_selector_all(
        "input, select, button, fieldset",
        "all => all.filter(one => ![one.ariaLabel, one.textContent, one.labels?.[0]?.textContent].some("
        "text => text?.trim())).map(one => one.outerHTML)",
    )
    assert unnamed == []
