"""A page that follows runs: it asks its server for new data and redraws, and says when there are no more."""

from __future__ import annotations

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from paged import plot_of, redrawn
from visits import visiting

from edgefl.show.page.html import data, html
from edgefl.show.page.sections import figures, verdict


class Source(ThreadingHTTPServer):
    """Serves a page and its data; ``current`` is the page, None for a server that fails.

    Attributes:
        asked: the answers' statuses.
    """

    daemon_threads = True

    def __init__(self, first):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.first, self.current, self.asked = html(first), first, []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        """The page, or its data with a tag."""
        page, status, content = self.server.current, 200, self.server.first
        if self.path.endswith("/data"):
            status = 503 if page is None else 304 if self.headers["If-None-Match"] == f'"{id(page)}"' else 200
            self.server.asked.append(status)
            content = data(page) if status == 200 else ""
        self.send_response(status)
        self.send_header("ETag", f'"{id(page)}"')
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *_):
        """Logs nothing."""


def _running(record, accuracy, status="running", *, live=True):
    """The page of runs in progress, whose curves end at an accuracy."""
    blocks = plot_of(record, "accuracy").frame.blocks
    curves = [{**one, "accuracy": [*one["accuracy"][:-1], accuracy]} for one in blocks]
    # So that the text of their sections changes too.
    runs = [
        replace(one, summary=replace(one.summary, status=status, rounds=round(100 * accuracy)))
        for one in record.told.runs
    ]
    told = replace(record.told, runs=runs)
    made = {"verdict": verdict.section(told, []), "runs": figures.runs(told, [])}
    page = redrawn(record, accuracy=curves)
    sections = [made.get(one.id, one) for one in page.sections]
    return replace(page, edgefl=f"0.0.{accuracy}", live=live, told=told, sections=sections)


@pytest.fixture
def source(record):
    """A server of runs in progress."""
    server = Source(_running(record, 0.25))
    yield server
    server.shutdown()
    server.server_close()


def _last(visit):
    """The last accuracies that the plot shows, in percent."""
    return {one["y"][-1] for one in visit.drawn("accuracy")["data"] if len(one["x"]) == 3}


def test_new_data_are_drawn_and_choices_kept(opened, source, record):
    """A switch, a hidden run, open details and a sorted table stay as they are while data change."""
    address = f"http://127.0.0.1:{source.server_port}/token/"
    with visiting(opened, address, online=True) as visit:
        visit.ready()
        visit.draw_all()
        page = visit.page
        page.check("#plot-accuracy input[name=accuracy-x][value=round]")
        page.locator("#plot-accuracy .legend [aria-pressed]").nth(1).click()
        page.locator("#runs th button").nth(3).click()
        page.locator("#provenance summary").first.click()
        source.current = _running(record, 0.75)
        page.wait_for_function(
            "() => edgefl.state.page.plots[0].frame.blocks[0].accuracy.at(-1) === 0.75",
            timeout=15_000,
        )
        assert _last(visit) == {75}
        assert page.is_checked("#plot-accuracy input[name=accuracy-x][value=round]")
        assert {one["visible"] for one in visit.drawn("accuracy")["data"] if one["meta"]["group"] == 1} == {
            False
        }
        assert page.locator("#runs th").nth(3).get_attribute("aria-sort") == "ascending"
        assert page.locator("#provenance details").first.get_attribute("open") is not None

        source.current = _running(record, 0.8, status="done", live=False)
        page.get_by_text("The runs have ended").wait_for(timeout=15_000)
        assert _last(visit) == {80}
        assert "is still running" not in page.inner_text("#verdict")
        assert visit.complaints == []
        assert all(one.startswith((address, "blob:", "data:")) for one in visit.requests)
