"""What a page begins with: what was compared, on which fleet, and who is ahead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from edgefl.show.page.cells import (
    ABREAST,
    Cell,
    PageTable,
    Section,
    across,
    cut,
    names,
    once,
    rounds,
    setting,
)
from edgefl.show.page.records import Page, RunHead
from edgefl.show.sensitivity import about, effects, said
from edgefl.show.table import MISSING
from edgefl.show.texts import unfinished
from edgefl.show.verdict import Verdict

# Characters of the reason why a run failed.
_LONGEST_REASON = 2000

BEST, TIED, CLOSE = ("★", "best"), ("=", "equal best"), ("≈", "best, but not separable")
"""Signs behind a figure and their meanings."""


def first_screen(page: Page) -> Section:
    """The verdict, and what it is of."""
    main, aside = ([row for row in page.verdict if row.aside == which] for which in (False, True))
    tables = [
        *_tables(page, main, f"Verdict: {_AHEAD}"),
        *(
            replace(table, folded=True)
            for table in _tables(page, aside, f"Verdict: the {_model(aside)} model to the target")
        ),
    ]
    return Section(
        "verdict",
        "Verdict",
        nothing="" if page.verdict else "There is nothing to judge.",
        facts=dict(_facts(page)),
        warnings=[
            *map(cut, page.warnings),
            *(
                unfinished(
                    _in_line(page.groups[run.group].name), run.status, cut(run.reason, _LONGEST_REASON)
                )
                for run in page.runs
                if run.status != "done"
            ),
        ],
        tables=[*tables, *_pairs(page), *_effects(page)],
        notes=list(_notes(page)),
        texts=_words(page),
    )


_AHEAD = "each figure, and which run is ahead"


def _in_line(name: str) -> str:
    """A group's name in one line; runs of one name differ in the second."""
    return cut(name.replace("\n", ", "))


def _model(rows: Sequence[Verdict]) -> str:
    """The model whose way to a target rows are of; empty for none."""
    return next((row.key.split(".")[1] for row in rows if row.key.startswith("target.")), "")


def _tables(page: Page, rows: Sequence[Verdict], caption: str) -> Iterator[PageTable]:
    """Of few groups one table; of many one that says who is ahead, and one of all figures."""
    if not rows:
        return
    cells = [[_judged(row, place) for place in range(len(page.groups))] for row in rows]
    ahead = [_ahead(row, page) for row in rows]
    table = replace(across(caption, names(page), [row.label for row in rows], cells))
    if len(page.groups) == 1:
        yield replace(table, caption=caption.replace(_AHEAD, "the run's figures"))
    elif len(page.groups) <= ABREAST:
        told = [[*row, one] for row, one in zip(table.rows, ahead, strict=True)]
        yield replace(table, head=[*table.head, "ahead"], rows=told)
    else:
        judged = [(row, one) for row, one in zip(rows, ahead, strict=True) if row.better]
        best = [[Cell(row.label), _best(row), one] for row, one in judged]
        yield PageTable(caption, ["figure", "best", "ahead"], best, sorts=False)
        yield replace(table, caption=f"{caption}, all runs")


def _pairs(page: Page) -> Iterator[PageTable]:
    """What groups of seeds are above others."""
    if page.pairs.labels:
        cells = [[_below(text) for text in row] for row in page.pairs.texts]
        heads = [cut(head.replace("\n", " ")) for head in page.pairs.heads]
        yield across("Differences over seeds, with 95% intervals", heads, page.pairs.labels, cells)


def _below(text: str, value: float | None = None, sign: tuple[str, str] = ("", "")) -> Cell:
    """A figure; intervals and shares stand below it, which keeps columns narrow."""
    figure, apart, rest = text.partition(" (")
    return Cell(figure, value, *sign, below=f"({rest}" if apart else "")


def _judged(row: Verdict, place: int) -> Cell:
    return _below(row.texts[place], row.means[place], _sign(row, place))


def _sign(row: Verdict, place: int) -> tuple[str, str]:
    if place in row.tied:
        return ("", "") if len(row.tied) == len(row.texts) else TIED
    return ("", "") if row.winner != place else CLOSE if row.close else BEST


def _best(row: Verdict) -> Cell:
    """The figure of the winner, or of those in its place."""
    best = [*row.tied, *([] if row.winner is None else [row.winner])]
    return _judged(row, best[0]) if best else Cell(MISSING)


def _ahead(row: Verdict, page: Page) -> Cell:
    """Who is ahead, in words, and whether that holds over all intervals."""
    if row.tied:
        equal = once(names(page)[one] for one in row.tied)
        return Cell("all equal" if len(row.tied) == len(page.groups) else f"equal: {equal}")
    if row.winner is None:
        return Cell(MISSING if row.better else "")
    if row.close:
        seeds = "1 seed" if row.close_seeds == 1 else f"{row.close_seeds} seeds"
        return Cell(f"not separable at {seeds}")
    return Cell(names(page)[row.winner], below=_order(row))


def _order(row: Verdict) -> str:
    if row.order == "depends":
        return f"depends on {once(row.depends_on, most=2) or 'several numbers together'}"
    return "holds over all intervals" if row.order == "holds" else ""


def _effects(page: Page) -> Iterator[PageTable]:
    """What times and energies depend on, by quantity."""
    found = page.dependence.found if page.dependence else None
    for one in effects(found) if found else ():
        rows = [[Cell(text(number)) for text in one.columns.values()] for number in one.numbers]
        total = [Cell("all together"), Cell(""), *map(Cell, one.together.values())]
        caption = f"What {one.quantity} depends on: each number alone, then all together"
        yield PageTable(caption, ["number", *list(one.columns)[1:]], [*rows, total], sorts=False, folded=True)


def _words(page: Page) -> dict[str, str]:
    """Whether each order holds, in words."""
    found = page.dependence.found if page.dependence else None
    if not found or not found.verdicts:
        return {}
    lines = [line for verdict in found.verdicts for line in said(verdict)]
    return {
        "Whether the order of each two runs holds over all intervals": "\n".join([*lines, "", about(found)])
    }


def _notes(page: Page) -> Iterator[str]:
    """What the verdict's signs mean, and what it rests on."""
    used = {_sign(row, place) for row in page.verdict for place in range(len(page.groups))}
    signs = [" ".join(one) for one in (BEST, TIED, CLOSE) if one in used]
    if signs:
        close = (
            " from another: the 95% interval of their differences over seeds contains 0, or not all seeds "
            "have the figure"
            if CLOSE in used
            else ""
        )
        yield f"{', '.join(signs)}{close}."
        yield from _seeds(page)
    yield from (sign for sign in page.signs if sign.startswith("±") or sign in page.pairs.notes)
    yield from _intervals(page)
    if any(row.key.startswith("target.") for row in page.verdict):
        model = _model([row for row in page.verdict if not row.aside])
        yield f"To a target: until the first evaluation of the {model} model at or above it."
    if page.verdict and not any("wasted." in row.key for row in page.verdict):
        yield "Nothing was wasted: no job was late, lost or cut."


def _seeds(page: Page) -> Iterator[str]:
    alone = sum(len(group.runs) == 1 for group in page.groups)
    if alone:
        which = "Each" if alone == len(page.groups) else f"{alone} of {len(page.groups)}"
        was = "was" if which == "Each" or alone == 1 else "were"
        yield f"{which} {was} run with one seed: how much its figures differ between seeds is not known."


def _intervals(page: Page) -> Iterator[str]:
    """Whether the order of times and energies may be another, and how to find out."""
    orders = {row.order for row in page.verdict}
    if orders == {""}:
        return
    given = "Times and energies are compared at the devices' numbers as given, some of which are intervals."
    if page.dependence is None:
        ask = (
            " edgefl report --sensitivity 1 tells whether the order holds over all of them."
            if "open" in orders
            else ""
        )
        yield given + ask
    elif page.dependence.found is None:
        yield f"{given} Whether the order holds over all of them is not known: {page.dependence.why}."
    elif "open" in orders:
        yield f"{given} Where nothing is said, it is not known whether the order holds over all of them."
        if not any(name.startswith("time") for name in page.dependence.found.figures):
            yield "Times are not tested, since the course of a run depends on how long jobs take."


_MOST_SETTINGS = 4


def _facts(page: Page) -> Iterator[tuple[str, str]]:
    """What was compared, on which fleet, and in which settings the runs differ."""
    runs = page.runs
    yield from (("scale", line) for line in page.scales)
    yield "methods", once(run.method for run in runs)
    yield "rounds", once(map(rounds, runs))
    yield "data sets", once(run.dataset or "unknown" for run in runs)
    yield "seeds", once(str(run.seed) for run in runs)
    yield "fleet", once(map(_fleet, runs))
    yield "links", once(_counted(run.links) for run in runs)
    keys = list(dict.fromkeys(key for group in page.groups for key in group.settings))
    if keys:
        told = [
            f"{key} ({once(setting(group.settings.get(key), key) for group in page.groups)})"
            for key in keys[:_MOST_SETTINGS]
        ]
        more = f" and {len(keys) - _MOST_SETTINGS} more" if len(keys) > _MOST_SETTINGS else ""
        yield "differences", "; ".join(told) + more


def _fleet(run: RunHead) -> str:
    """A fleet's name, its clients and their devices."""
    refused = f", {run.refused:,} refused" if run.refused else ""
    name = f"{run.fleet}: " if run.fleet else ""
    return f"{name}{run.clients:,} clients{refused} ({_counted(run.devices)})"


def _counted(counts: Mapping[str, int]) -> str:
    """Names with how many clients have each, the most first."""
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    return ", ".join(f"{count:,} {name}" for name, count in ordered) or MISSING
