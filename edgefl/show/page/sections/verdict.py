"""What a page begins with, what was compared and who is ahead; and all figures, runs and settings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from edgefl.analysis.groups import Judged
from edgefl.analysis.settings import fleet_name
from edgefl.show.compare import about_seeds, scales
from edgefl.show.page.records import (
    ABREAST,
    PageTable,
    RunHead,
    Section,
    TableCell,
    Told,
    across,
    once,
    rounds_cell,
    setting,
    shortened,
)
from edgefl.show.sensitivity import about, effects, verdict_lines
from edgefl.show.table import MISSING, listed, unfinished
from edgefl.show.values import cell

# Characters of the reason why a run failed.
_LONGEST_REASON = 2000

BEST, TIED, CLOSE = ("★", "best"), ("=", "equal best"), ("≈", "best, but not separable")
"""Signs behind a figure and their meanings."""


def section(told: Told) -> Section:
    """The verdict, and what it is of."""
    main, aside = verdicts(told)
    second = f"Verdict: the {aside[0].metric.model} model to the target" if aside else ""
    return Section(
        "verdict",
        "Verdict",
        facts=dict(_verdict_facts(told)),
        warnings=[
            *map(shortened, told.warnings),
            *(
                unfinished(
                    shortened(told.groups[run.group].line),
                    run.summary.status,
                    shortened(run.summary.reason, _LONGEST_REASON),
                )
                for run in told.runs
                if run.summary.status != "done"
            ),
        ],
        tables=[
            *_tables(told, main, f"Verdict: {_AHEAD}"),
            *(replace(table, folded=True) for table in _tables(told, aside, second)),
            *_verdict_pairs(told),
            *_effects_table(told),
        ],
        notes=list(_verdict_notes(told, main, aside)) if main else ["There is nothing to judge."],
        texts=_verdict_words(told),
    )


def verdicts(told: Told) -> tuple[list[Judged], list[Judged]]:
    """The figures that are judged, each with what is known of it: the main ones, and the second model's."""
    shown, before = [], False
    for one in told.figures:
        before = one.metric.judged or (before and one.metric.is_known_part)
        shown += [one] if before else []
    return [one for one in shown if one.metric.main], [one for one in shown if not one.metric.main]


_AHEAD = "each figure, and which run is ahead"


def _tables(told: Told, rows: Sequence[Judged], caption: str) -> Iterator[PageTable]:
    """Of few groups one table; of many one that says who is ahead, and one of all figures."""
    if not rows:
        return
    cells = [[_judged(row, place) for place in range(len(told.groups))] for row in rows]
    ahead = [_ahead_cell(row, told) for row in rows]
    table = across(caption, told.names, [row.metric.label for row in rows], cells)
    if len(told.groups) == 1:
        yield replace(table, caption=caption.replace(_AHEAD, "the run's figures"))
    elif len(told.groups) <= ABREAST:
        rows_ = [[*row, one] for row, one in zip(table.rows, ahead, strict=True)]
        yield replace(table, head=[*table.head, "ahead"], rows=rows_)
    else:
        judged = [(row, one) for row, one in zip(rows, ahead, strict=True) if row.metric.better]
        best = [[TableCell(row.metric.label.strip()), _best(row), one] for row, one in judged]
        yield PageTable(caption, ["figure", "best", "ahead"], best, sorts=False)
        yield replace(table, caption=f"{caption}, all runs")


def _verdict_pairs(told: Told) -> Iterator[PageTable]:
    if told.pairs:
        _, *heads = (shortened(head.replace("\n", " ")) for head in told.pairs.table.heads)
        labels = [str(label) for label, *_ in told.pairs.table.rows]
        cells = [[_below(str(text)) for text in row] for _, *row in told.pairs.table.rows]
        yield across("Differences over seeds, with 95% intervals", heads, labels, cells)


def _below(text: str, value: float | None = None, sign: tuple[str, str] = ("", "")) -> TableCell:
    """A figure; intervals and shares stand below it, which keeps columns narrow."""
    figure, apart, rest = text.replace("\n(", " (").partition(" (")
    return TableCell(figure, value, *sign, below=f"({rest}" if apart else "")


def _judged(row: Judged, place: int) -> TableCell:
    value = row.values[place]
    return _below(cell(value, row.metric.unit), value.mean if value else None, _sign(row, place))


def _sign(row: Judged, place: int) -> tuple[str, str]:
    if place in row.tied:
        return ("", "") if len(row.tied) == len(row.values) else TIED
    return ("", "") if row.winner != place else BEST if row.close_seeds is None else CLOSE


def _best(row: Judged) -> TableCell:
    """The figure of the winner, or of those in its place."""
    best = [*row.tied, *([] if row.winner is None else [row.winner])]
    return _judged(row, best[0]) if best else TableCell(MISSING)


def _ahead_cell(row: Judged, told: Told) -> TableCell:
    """Who is ahead, in words, and whether that holds over all intervals."""
    if row.tied:
        equal = once(told.names[one] for one in row.tied)
        return TableCell("all equal" if len(row.tied) == len(told.groups) else f"equal: {equal}")
    if row.winner is None:
        return TableCell(MISSING if row.metric.better else "")
    if row.close_seeds is not None:
        seeds = "1 seed" if row.close_seeds == 1 else f"{row.close_seeds} seeds"
        return TableCell(f"not separable at {seeds}")
    return TableCell(told.names[row.winner], below=_verdict_order(row))


def _verdict_order(row: Judged) -> str:
    if row.order == "depends":
        return f"depends on {once(row.depends_on, most=2) or 'several numbers together'}"
    return "holds over all intervals" if row.order == "holds" else ""


def _effects_table(told: Told) -> Iterator[PageTable]:
    found = told.dependence.found if told.dependence else None
    for one in effects(found) if found else ():
        rows = [[TableCell(str(text)) for text in row] for row in one.table.rows]
        total = [TableCell("all together"), TableCell(""), *map(TableCell, one.together.values())]
        caption = f"What {one.quantity} depends on: each number alone, then all together"
        yield PageTable(caption, ["number", *one.table.heads[1:]], [*rows, total], sorts=False, folded=True)


def _verdict_words(told: Told) -> dict[str, str]:
    """Whether each order holds, in words."""
    found = told.dependence.found if told.dependence else None
    if not found or not found.verdicts:
        return {}
    lines = [line for verdict in found.verdicts for line in verdict_lines(verdict)]
    return {
        "Whether the order of each two runs holds over all intervals": "\n".join([*lines, "", about(found)])
    }


def _verdict_notes(told: Told, main: Sequence[Judged], aside: Sequence[Judged]) -> Iterator[str]:
    """What the verdict's signs mean, and what it rests on."""
    used = {_sign(row, place) for row in (*main, *aside) for place in range(len(told.groups))}
    signs = [" ".join(one) for one in (BEST, TIED, CLOSE) if one in used]
    if signs:
        close = (
            " from another: the 95% interval of their differences over seeds contains 0, or not all seeds "
            "have the figure"
            if CLOSE in used
            else ""
        )
        yield f"{', '.join(signs)}{close}."
        yield from _seeds(told)
    yield from about_seeds(told.groups)
    yield from told.pairs.notes if told.pairs else ()
    yield from _intervals(told)
    if model := next((row.metric.model for row in main if row.metric.key.startswith("target.")), ""):
        yield f"To a target: until the first evaluation of the {model} model at or above it."
    if not any("wasted." in row.metric.key for row in main):
        yield "Nothing was wasted: no job was late, lost or cut."


def _seeds(told: Told) -> Iterator[str]:
    alone = sum(len(group.runs) == 1 for group in told.groups)
    if alone:
        which = "Each" if alone == len(told.groups) else f"{alone} of {len(told.groups)}"
        was = "was" if which == "Each" or alone == 1 else "were"
        yield f"{which} {was} run with one seed: how much its figures differ between seeds is not known."


def _intervals(told: Told) -> Iterator[str]:
    """Whether the order of times and energies may be another, and how to find out."""
    orders = {row.order for row in told.figures}
    if orders == {""}:
        return
    given = "Times and energies are compared at the devices' numbers as given, some of which are intervals."
    if told.dependence is None:
        ask = (
            " edgefl report --sensitivity 1 tells whether the order holds over all of them."
            if "open" in orders
            else ""
        )
        yield given + ask
    elif told.dependence.found is None:
        yield f"{given} Whether the order holds over all of them is not known: {told.dependence.why}."
    elif "open" in orders:
        yield f"{given} Where nothing is said, it is not known whether the order holds over all of them."
        if not any(name.startswith("time") for name in told.dependence.found.figures):
            yield "Times are not tested, since the course of a run depends on how long jobs take."


_MOST_SETTINGS = 4


def _verdict_facts(told: Told) -> Iterator[tuple[str, str]]:
    runs = [one.summary for one in told.runs]
    yield from (("scale", line) for line in scales(runs))
    yield "methods", once(run.method for run in runs)
    yield "rounds", once(map(rounds_cell, runs))
    yield "data sets", once(run.dataset or "unknown" for run in runs)
    yield "seeds", once(str(run.seed) for run in runs)
    yield "fleet", once(map(_fleet, told.runs))
    yield "links", once(_count_words(run.links) for run in told.runs)
    if told.settings:
        differences = [
            f"{key} ({once(setting(value, key) for value in values)})"
            for key, values in told.settings.items()
        ]
        yield "differences", listed(differences, _MOST_SETTINGS, "; ")


def _fleet(run: RunHead) -> str:
    one, name = run.summary, fleet_name(run.summary.settings or {})
    refused = f", {one.refused:,} refused" if one.refused else ""
    return f"{name}{': ' * bool(name)}{one.clients:,} clients{refused} ({_count_words(run.devices)})"


def _count_words(counts: Mapping[str, int]) -> str:
    """Names with how many clients have each, the most first."""
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    return ", ".join(f"{count:,} {name}" for name, count in ordered) or MISSING


def every_figure(told: Told) -> Section:
    """What `edgefl compare` shows."""
    cells = [
        [TableCell(cell(value, row.metric.unit), value.mean if value else None) for value in row.values]
        for row in told.figures
    ]
    labels = [row.metric.label for row in told.figures]
    table = across("All figures, as edgefl compare shows them", told.names, labels, cells)
    notes = list(told.signs)
    if any(value is None for row in told.figures for value in row.values):
        notes.append(f"{MISSING} stands where a run has no such figure.")
    return Section("figures", "All figures", tables=[table], notes=notes)


def runs_made(told: Told) -> Section:
    """A row for each run."""
    head = ["run", "method", "data set", "seed", "clients", "refused", "rounds", "engine", "status", "folder"]
    rows = [
        [
            TableCell(shortened(run.name)),
            TableCell(run.method),
            TableCell(run.dataset or "unknown"),
            TableCell(str(run.seed)),
            TableCell(f"{run.clients:,}", run.clients),
            TableCell(f"{run.refused:,}", run.refused),
            TableCell(rounds_cell(run), run.rounds),
            TableCell(run.engine),
            TableCell(run.status),
            TableCell(run.run_dir),
        ]
        for run in (one.summary for one in told.runs)
    ]
    return Section("runs", "Runs", tables=[PageTable("The runs", head, rows), *_settings_table(told)])


def _settings_table(told: Told) -> Iterator[PageTable]:
    cells = [[TableCell(setting(value, key)) for value in values] for key, values in told.settings.items()]
    if cells:
        yield across("The settings in which they differ", told.names, list(told.settings), cells)
