"""The sections of a page: their headings, what they say in words, and their tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgefl.report.page.records import Page


@dataclass(frozen=True)
class Section:
    """A section's text; its plots are drawn by the page.

    Attributes:
        id: its address in the page.
        title: its heading.
        paragraphs: what it says in words.
    """

    id: str
    title: str
    paragraphs: Sequence[str] = ()


def contents(page: Page) -> list[Section]:
    """The sections in order."""
    return list(_sections(page))


def _sections(page: Page) -> Iterator[Section]:
    del page
    yield Section("verdict", "Verdict")
    yield Section("curves", "Learning")
    yield Section("costs", "Costs")
    yield Section("durations", "Durations")
    yield Section("rounds", "Rounds")
    yield Section("activity", "Activity")
    yield Section("participation", "Participation")
    yield Section("memory", "Memory")
    yield Section("devices", "Energy by device")
    yield Section("partition", "Data")
    yield Section("measures", "Measures")
    yield Section("sweep", "Settings and trade-offs")
    yield Section("published", "Published figures")
    yield Section("provenance", "Provenance")
