"""A report page in a real browser: Debian's chromium, through Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PHONE, DESKTOP = 360, 1200


def missing() -> str:
    """Why no page can be opened here; empty where one can."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install 'edgefl-emulator[test]'"
    if executable() is None:
        return f"no browser: none of {', '.join(BROWSERS)} is on the path"
    return ""


def executable() -> str | None:
    """The browser."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser whose first context has no network, and whose pages share a process."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=executable(), args=["--no-sandbox", "--process-per-site"]
        )
        try:
            opened.new_context(offline=True)
            yield opened
        finally:
            opened.close()


@dataclass
class Visit:
    """A page that is open, without a network."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def ready(self) -> None:
        """Waits until the page's script has put the plots into it."""
        self.page.wait_for_selector("html[data-ready=yes]", timeout=30_000, state="attached")

    def draw_all(self) -> None:
        """Draws every plot, in view or not."""
        self.page.evaluate("edgefl.redraw(true)")

    def drawn(self, plot: str) -> Any:
        """A plot's data and layout, as Plotly has them."""
        return self.page.evaluate(
            "id => { const one = document.querySelector(`#plot-${id} .canvas`);"
            " return {data: one.data.map(({x, y, name, visible, meta}) => ({x, y, name, visible, meta})),"
            " x: one.layout.xaxis.type, title: one.layout.xaxis.title.text}; }",
            plot,
        )

    def download(self, selector: str) -> tuple[str, str]:
        """The name and the text of the file that a click gives."""
        with self.page.expect_download() as waiting:
            self.page.click(selector)
        return waiting.value.suggested_filename, Path(waiting.value.path()).read_text(encoding="utf-8")


@contextmanager
def visiting(
    opened: Any,
    address: str,
    *,
    width: int = DESKTOP,
    scheme: str = "light",
    still: bool = False,
    **more: Any,
) -> Iterator[Visit]:
    """A visit to a page; with settings of a context's, in one of its own that has a network."""
    context = opened.new_context(**more) if more else opened.contexts[0]
    visit = Visit(context.new_page())
    try:
        visit.page.set_viewport_size({"width": width, "height": 900})
        visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce" if still else None)
        visit.page.on(
            "console",
            lambda one: (
                one.type in {"error", "warning"} and visit.complaints.append(f"{one.type}: {one.text}")
            ),
        )
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.on("request", lambda request: visit.requests.append(request.url))
        visit.page.goto(address)
        yield visit
    finally:
        visit.page.close()
        if more:
            context.close()
