"""What papers report, beside the figures of the runs."""

from collections.abc import Iterator, Sequence

from edgefl.analysis.published import RATIO, Beside, Figure, beside_runs
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, Switch
from edgefl.show.page.records import PageTable, Section, TableCell, Told
from edgefl.show.published import order_words, tables

_COLUMNS = {
    "figure": FrameColumn("figure", told=False),
    "of": FrameColumn("run"),
    "whose": FrameColumn(""),
    "unit": FrameColumn("unit", told=False),
    "value": FrameColumn("@figure", "@unit"),
    "value_low": FrameColumn("interval, low end", "@unit", told=False),
    "value_high": FrameColumn("interval, high end", "@unit", told=False),
}


def section(told: Told) -> Section:
    """Figures of papers, and whether ours have their order."""
    return published_section(beside_runs(told.groups))


def published_section(found: Sequence[Beside]) -> Section:
    """The same, of what papers report."""
    made = []
    for one, table in zip(found, tables(found)[0], strict=True):
        values = [(None, None, row.published, row.here, row.deviation) for row in one.figures]
        cells = [
            list(map(TableCell, map(str, row), each)) for row, each in zip(table.rows, values, strict=True)
        ]
        made.append(PageTable(f"Published in {one.paper}, and here", ["run", *table.heads[1:]], cells))
    told = [text for one in found for text in (*map(order_words, one.orders), one.note) if text]
    plot = Plot(
        "published",
        "Published and reproduced",
        "What a paper reports of a run, and what the run with these settings has here.",
        "the scenarios carry no published figures.",
        "points",
        Frame(_COLUMNS, [block for one in found for block in _published_blocks(one)]),
        x=["value"],
        by=[Switch("figure", "Figure", "select")],
        series="whose",
        row="of",
        looks={
            "published": {"symbol": "diamond-open", "color": "#0072b2"},
            "here": {"symbol": "circle", "color": "#d55e00"},
        },
    )
    return Section("published", "Published figures", [plot], tables=made, notes=told)


def _published_blocks(one: Beside) -> Iterator[Block]:
    """A block of each figure: a row for what is published of a run, and one for what is here."""
    kinds: dict[tuple[str, str], list[Figure]] = {}
    for figure in one.figures:
        name = f"{figure.figure}, as a share" if figure.unit == RATIO else figure.figure
        kinds.setdefault((name, "" if figure.unit == RATIO else figure.unit), []).append(figure)
    for (name, unit), figures in kinds.items():
        rows = [
            row
            for each in figures
            for row in (
                (_named(each), "published", each.published, None, None),
                (_named(each), "here", each.here, *(each.interval_95 or (None, None))),
            )
        ]
        columns = zip(
            ("of", "whose", "value", "value_low", "value_high"), zip(*rows, strict=True), strict=True
        )
        missing = [each.run for each in figures if each.here is None]
        yield {
            "title": one.paper,
            "figure": name,
            "unit": unit,
            **{key: list(values) for key, values in columns},
            "notes": {"": f"Not here: {', '.join(missing)}." if missing else ""},
        }


def _named(one: Figure) -> str:
    return one.run if one.group is None or one.name == one.run else f"{one.run}: {one.name}"
