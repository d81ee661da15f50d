"""Reads runs and makes a page of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from edgefl.analysis.groups import Judged, SeedGroup, judged, seeds_together
from edgefl.analysis.metrics import metrics
from edgefl.analysis.run import Run
from edgefl.analysis.sensitivity import Dependence, dependence, ordered
from edgefl.analysis.settings import differing
from edgefl.analysis.summary import Summary, each_run, summary, target_of
from edgefl.core.host import version
from edgefl.planning.sensitivity import check_factor
from edgefl.show.compare import every_row, few, pair_table, signs
from edgefl.show.page.records import Page, Read, RunHead, Section, Told
from edgefl.show.page.sections import (
    activity,
    costs,
    learning,
    measures,
    partition,
    provenance,
    published,
    rounds,
    verdict,
)  # fmt: skip
from edgefl.store.folders import runs_in
from edgefl.store.reader import Reader

# Jobs that all rounds of all runs list together, which bounds the page's size.
_MOST_JOBS = 100_000


class SectionMaker(NamedTuple):
    """How a section is made of what is known of all, and of what it reads of each run while that is open."""

    made: Callable[..., Section]
    read: Callable[[Read], Any] | None = None


PARTS = [
    SectionMaker(verdict.section),
    SectionMaker(learning.section, learning.read),
    SectionMaker(costs.section),
    SectionMaker(rounds.durations, rounds.took),
    SectionMaker(rounds.section, rounds.read),
    SectionMaker(activity.section, activity.read),
    SectionMaker(activity.participation, activity.took_part),
    SectionMaker(costs.memory, costs.needs_of),
    SectionMaker(costs.devices),
    SectionMaker(partition.section, partition.read),
    SectionMaker(measures.section, measures.read),
    SectionMaker(published.section),
    SectionMaker(verdict.every_figure),
    SectionMaker(verdict.runs_made),
    SectionMaker(provenance.section, provenance.read),
]
"""The sections of a page, in its order."""


def page(
    folders: list[Path],
    target: float | str | None = None,
    *,
    note: Callable[[str], None] | None = None,
    live: bool = False,
    sensitivity: float | None = None,
) -> Page:
    """The page of runs or groups.

    Args:
        target, note: as of ``target_of`` and ``each_run`` in ``analysis.summary``.
        live: whether it follows runs in progress, which this process writes.
        sensitivity: a factor, to say whether the order of the runs holds over all that their devices' numbers
            may be; see ``show.sensitivity``.

    Raises:
        UserError: as ``summary.each_run``, or the target or the factor is out of range.
    """
    accuracy = target_of(target, folders)
    if sensitivity is not None:
        check_factor(sensitivity)
    most_jobs = _MOST_JOBS // sum(len(runs_in(folder)) for folder in folders)
    left_out: list[str] = []

    def noted(line: str) -> None:
        left_out.append(line)
        if note:
            note(line)

    def read(reader: Reader, place: int) -> tuple[Summary, list[dict[str, int]], list[Any]]:
        run = Run(reader)
        one = Read(run, summary(run, accuracy), place, most_jobs)
        counts = [_counted(reader, column) for column in ("device", "link")]
        return one.summary, counts, [part.read and part.read(one) for part in PARTS]

    found = each_run(folders, read, trusted=live, note=noted if note else None)
    every = [one for one, _, _ in found]
    compared = seeds_together(every)
    apart = pair_table(compared, every_row(compared))
    depends = None if sensitivity is None else dependence(compared, sensitivity)
    group_of = {id(run): place for place, one in enumerate(compared) for run in one.runs}
    told = Told(
        runs=[RunHead(one, group_of[id(one)], *counts) for one, counts, _ in found],
        groups=compared,
        settings=differing([one.settings for one in compared]),
        warnings=[*left_out, *few(compared)],
        figures=_judged_figures(compared, depends),
        dependence=depends,
        pairs=apart,
        signs=[note.text for note in signs(compared, apart)],
    )
    parts = [[own[place] for _, _, own in found] for place in range(len(PARTS))]
    sections = [
        part.made(told, own) if part.read else part.made(told) for part, own in zip(PARTS, parts, strict=True)
    ]
    title = ", ".join(dict.fromkeys(folder.resolve().name for folder in folders))
    return Page(title, version(), live, told, sections)


def _counted(reader: Reader, column: str) -> dict[str, int]:
    rows = reader.query(f"SELECT {column}, COUNT(*) AS clients FROM clients GROUP BY 1 ORDER BY 1")  # noqa: S608 - ours
    return {row[column]: row["clients"] for row in rows}


def _judged_figures(groups: Sequence[SeedGroup], depends: Dependence | None) -> list[Judged]:
    """All figures, and who is ahead in those that are judged."""
    found = metrics([run for one in groups for run in one.runs])
    return [
        ordered(judged(metric, groups), groups, depends)
        if metric.judged
        else Judged(metric, [metric.value(one.runs) for one in groups])
        for metric in found
    ]
