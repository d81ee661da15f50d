"""The sections of a page in words: facts, tables, and what is said where there is nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sized

from edgefl.show.page.cells import Cell, PageTable, Section, across, cut, names, once, rounds, setting
from edgefl.show.page.first_screen import first_screen
from edgefl.show.page.records import Page
from edgefl.show.published import order_words, tables
from edgefl.show.table import MISSING
from edgefl.show.values import cell, setting_text

# Runs whose events and machines are seen at once.
_FEW = 12


def contents(page: Page) -> list[Section]:
    """The sections in order."""
    return list(_sections(page))


def _sections(page: Page) -> Iterator[Section]:
    yield first_screen(page)
    yield _drawn("curves", "Learning", page.curves, "Nothing was evaluated.")
    spent = [one for one in page.costs if any(ending["jobs"] for ending in one.endings.values())]
    yield _drawn("costs", "Costs", spent, "No job has ended.")
    yield _drawn("durations", "Durations", page.durations, "No job has ended.")
    yield _drawn("rounds", "Rounds", page.rounds, "No round has ended.")
    yield _drawn("activity", "Activity", page.activity, "No job was dispatched.")
    yield _drawn("participation", "Participation", page.participation, "Nothing was merged.")
    yield _drawn("memory", "Memory", page.memory, "No memory needs are known.")
    yield _devices(page)
    yield _partition(page)
    nothing = "No measures were asked for." if page.curves else "Nothing was evaluated."
    yield _drawn("measures", "Measures", page.measures, nothing)
    yield _published(page)
    yield _figures(page)
    yield _runs(page)
    yield _provenance(page)


def _drawn(name: str, title: str, records: Sized, nothing: str) -> Section:
    """A section that has plots alone."""
    return Section(name, title, nothing="" if records else nothing)


def _devices(page: Page) -> Section:
    every = [use for one in page.costs for use in one.devices.values()]
    nothing = "No energy is known: a number that it needs is unknown for every device."
    known = [use for use in every if "joules" in use]
    return _drawn("devices", "Energy by device", known, nothing if every else "No client took part.")


def _partition(page: Page) -> Section:
    why = "; ".join(dict.fromkeys(one.why for one in page.partition if one.why))
    return _drawn(
        "partition", "Data", [one for one in page.partition if one.counts], f"No class counts: {why}."
    )


def _published(page: Page) -> Section:
    made = []
    for one, table in zip(page.published, tables(page.published)[0], strict=True):
        values = [(None, None, row.published, row.here, row.deviation) for row in one.figures]
        cells = [list(map(Cell, map(str, row), found)) for row, found in zip(table.rows, values, strict=True)]
        made.append(PageTable(f"Published in {one.paper}, and here", ["run", *table.heads[1:]], cells))
    told = [text for one in page.published for text in (*map(order_words, one.orders), one.note) if text]
    nothing = "" if made else "The scenarios carry no published figures."
    return Section("published", "Published figures", nothing=nothing, tables=made, notes=told)


def _figures(page: Page) -> Section:
    cells = [
        [Cell(cell(value, row.metric.unit), value.mean if value else None) for value in row.values]
        for row in page.figures
    ]
    labels = [row.metric.label for row in page.figures]
    table = across("All figures, as edgefl compare shows them", names(page), labels, cells)
    notes = list(page.signs)
    if any(value is None for row in page.figures for value in row.values):
        notes.append(f"{MISSING} stands where a run has no such figure.")
    return Section("figures", "All figures", tables=[table], notes=notes)


def _runs(page: Page) -> Section:
    head = ["run", "method", "data set", "seed", "clients", "refused", "rounds", "engine", "status", "folder"]
    rows = [
        [
            Cell(cut(run.name)),
            Cell(run.method),
            Cell(run.dataset or "unknown"),
            Cell(str(run.seed)),
            Cell(f"{run.clients:,}", run.clients),
            Cell(f"{run.refused:,}", run.refused),
            Cell(rounds(run), run.rounds),
            Cell(run.engine),
            Cell(run.status),
            Cell(run.run_dir),
        ]
        for run in page.runs
    ]
    return Section("runs", "Runs", tables=[PageTable("The runs", head, rows), *_settings(page)])


def _settings(page: Page) -> Iterator[PageTable]:
    """The settings in which the groups differ."""
    keys = list(dict.fromkeys(key for group in page.groups for key in group.settings))
    if keys:
        cells = [[Cell(setting(group.settings.get(key), key)) for group in page.groups] for key in keys]
        yield across("The settings in which they differ", names(page), keys, cells)


def _provenance(page: Page) -> Section:
    texts: dict[str, str] = {}
    rows = []
    for one in page.provenance:
        name = page.runs[one.run].name
        folder = page.runs[one.run].run_dir
        of = f"{cut(name)} ({folder})" if folder else cut(name)
        texts[f"Resolved scenario of {of}"] = one.scenario
        if one.assumed:
            texts[f"Assumed by {of}"] = "\n".join(one.assumed)
        machine = ", ".join(f"{key} {setting_text(value)}" for key, value in one.machine.items())
        rows.append(
            [Cell(text) for text in (of, one.event_hash or "unknown", one.made, machine or "unknown")]
        )
    head = ["run", "hash of its events", "made", "machine"]
    tables = [PageTable("Each run's events and the machine that ran it", head, rows, folded=len(rows) > _FEW)]
    for fleet in page.fleets:
        texts[f"Fleet of {once(page.runs[run].name for run in fleet.runs)}"] = fleet.fleet
    tables += _sources(page)
    facts = {"made by": f"edgefl {page.edgefl}"}
    return Section("provenance", "Provenance", facts=facts, tables=tables, texts=texts)


def _sources(page: Page) -> Iterator[PageTable]:
    """Where the numbers of devices and links come from, each once."""
    head = ["of", "number", "value", "status", "source"]
    found = dict.fromkeys(
        (one.of, one.name, one.value, one.status, one.source)
        for fleet in page.fleets
        for one in fleet.numbers
    )
    if found:
        rows = [[Cell(text) for text in row] for row in found]
        yield PageTable("Where the numbers of devices and links come from", head, rows, folded=True)
