"""What is wrong with the pictures of a report page, as a browser has drawn them."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

_SEEN = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
# Paper, rules and text are grey, marks have colours.
_COLOURED, _PIXELS = 30, 20


def _ask(visit: Any, what: str, *plots: str) -> Any:
    return visit.page.evaluate(f"ids => {_SEEN}.{what}(ids)", list(plots) or None)


def scrolled(visit: Any) -> None:
    """Scrolls from plot to plot, as a reader does, until each has been drawn."""
    for figure in visit.page.locator("figure.plot:visible").all():
        figure.scroll_into_view_if_needed()
        name = figure.get_attribute("id")
        visit.page.wait_for_function("id => document.getElementById(id).dataset.drawn", arg=name)


def faults(visit: Any, *plots: str) -> list[str]:
    """What is wrong with some plots, or with all, as they are.

    A trace has values; they lie inside the axes' ranges and fill them; the numbers that the axes say are
    those of the hover; the browser has painted them; labels are whole and do not overlap.
    """
    return _ask(visit, "faults", *plots)


def used(visit: Any, *plots: str) -> tuple[set[str], list[str]]:
    """Uses each switch of some plots, or of all: the plots that have any, and what was wrong meanwhile."""
    found = _ask(visit, "used", *plots)
    return {plot for plot, _ in found}, [f"{plot}: {fault}" for plot, faults in found for fault in faults]


def blank(visit: Any) -> list[str]:
    """The plots that are drawn and have no colour between their axes, on a picture of the screen."""
    visit.page.evaluate("scrollTo(0, 0)")
    picture = visit.page.screenshot(full_page=True, timeout=120_000)
    pixels = np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"))
    found = []
    for plot, left, top, width, height in _ask(visit, "areas"):
        area = pixels[round(top) : round(top + height), round(left) : round(left + width)]
        if np.count_nonzero(area.max(axis=2) - area.min(axis=2) > _COLOURED) < _PIXELS:
            found.append(plot)
    return found
