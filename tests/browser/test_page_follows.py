"""A page of runs that go on loads itself again and keeps what was chosen; that of ended runs does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from edgefl.show.page.html import html

CHOSEN = """() => [...document.querySelectorAll("#main [name]")]
  .filter((one) => one.type !== "radio" || one.checked)
  .map((one) => `${one.name} ${one.value} ${one.checked}`)"""
STATE = """() => [document.documentElement.dataset.theme,
  Math.round(document.getElementById("costs").getBoundingClientRect().top),
  document.querySelectorAll(".legend [aria-pressed=false]").length,
  [...document.querySelectorAll("details")].map((one) => one.open)]"""


@pytest.mark.nightly
def test_a_live_page_keeps_what_was_chosen(opened, record, tmp_path):
    """Switches, hidden runs, details, colours and the place; then comes the final page."""
    path = Path(tmp_path / "report.html")
    path.write_text(html(replace(record, live=True)), encoding="utf-8")
    page = opened.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("[data-ready]")
    # Somebody is busy with it.
    page.evaluate("window.busy = setInterval(() => dispatchEvent(new Event('pointermove')), 100)")
    assert "Written at" in page.text_content("#status")
    page.locator("figure.plot label", has_text="loss").first.click()
    page.locator(".legend [aria-pressed=true]").first.click()
    page.locator("details").first.evaluate("one => { one.open = true; }")
    page.click("#theme")
    page.evaluate("document.getElementById('costs').scrollIntoView()")
    page.wait_for_timeout(2000)
    before = page.evaluate(CHOSEN), page.evaluate(STATE)
    assert page.evaluate("scrollY") > 500
    path.write_text(html(record), encoding="utf-8")
    page.evaluate("clearInterval(window.busy)")
    page.wait_for_selector("#status", state="detached", timeout=60_000)
    page.wait_for_selector("[data-ready]")
    page.wait_for_timeout(2000)
    assert (page.evaluate(CHOSEN), page.evaluate(STATE)) == before
    loads = []
    page.on("load", lambda _: loads.append(1))
    page.wait_for_timeout(6000)
    assert loads == []
    page.close()
