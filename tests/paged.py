"""Report pages in plain data."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from edgefl.show.page.build import page
from edgefl.show.page.frames import Block, Plot
from edgefl.show.page.html import drawn
from edgefl.show.page.records import Page


def paged(*folders: Path, **options: Any) -> SimpleNamespace:
    """A page, its sections by id, and the blocks that each plot draws, as its scripts read them."""
    found = page(list(folders), **options)
    plots = json.loads(json.dumps(drawn(found), allow_nan=False))["plots"]
    return SimpleNamespace(
        page=found,
        told=found.told,
        sections={one.id: one for one in found.sections},
        plots={one["id"]: one["frame"]["blocks"] for one in plots},
    )


def rows(block: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """Columns of a block as rows; what all rows share stands in each."""
    count = max(len(one) for one in block.values() if isinstance(one, list))
    columns = [block[name] if isinstance(block[name], list) else [block[name]] * count for name in names]
    return list(zip(*columns, strict=True))


def plot_of(page: Page, name: str) -> Plot:
    """One of a page's plots."""
    return next(one for section in page.sections for one in section.plots if one.id == name)


def redrawn(page: Page, **blocks: Sequence[Block]) -> Page:
    """The page with other blocks in some plots."""

    def drawn_anew(one: Plot) -> Plot:
        return replace(one, frame=one.frame._replace(blocks=blocks[one.id])) if one.id in blocks else one

    sections = [replace(one, plots=list(map(drawn_anew, one.plots))) for one in page.sections]
    return replace(page, sections=sections)
