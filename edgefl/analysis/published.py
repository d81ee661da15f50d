"""What papers report of runs, beside what these runs have, and whether their order is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

from edgefl.analysis.groups import Group, Spread, apart, numbers, runs_of, spread
from edgefl.analysis.metrics import MODELS, Metric, main_model
from edgefl.analysis.settings import canonical, dotted
from edgefl.analysis.values import Value
from edgefl.core.corners import Interval
from edgefl.core.documents import document
from edgefl.core.drafts import Draft, setting_words
from edgefl.core.overrides import within
from edgefl.core.scenario import AGAINST, told
from edgefl.planning.costs import Profile

RATIO = "x"
# The unit of a figure, by the end of its key.
_UNITS = {"_s": "s", "bytes": "B", "joules": "J", "flops": "FLOP", "grams": "g"}


@dataclass(frozen=True)
class Figure:
    """A published figure beside a run's.

    Attributes:
        run: the published run, in words.
        figure: what it is, as the scenario has it: a key of a run in ``edgefl compare --json``.
        unit: as of ``Row``; "x" of a share of another run's.
        published: in base units.
        group: the place of the run, or of those that differ in nothing but their seeds, which has these
            settings; None where there is none.
        name: its name; empty where there is none.
        here: its figure, a mean over seeds; None where it has none.
        interval_95: of the mean; None of one seed, and of a share of another run's.
        deviation: ``here`` less ``published``.
    """

    run: str
    figure: str
    unit: str
    published: float
    group: int | None
    name: str
    here: float | None
    interval_95: Interval | None
    deviation: float | None


@dataclass(frozen=True)
class Order:
    """Whether runs come in the published order.

    Two published runs that differ in one setting are a pair, unless their figures are equal.

    Attributes:
        figure: by which they are ordered.
        pairs: of how many both runs are here.
        agree: how many come in the published order.
        open: how many are equal here, or not separable over seeds; see ``analysis.groups``.
        turned: the published order of those that come in the other one here, in words.
    """

    figure: str
    pairs: int
    agree: int
    open: int
    turned: Sequence[str]


@dataclass(frozen=True)
class Beside:
    """A paper's figures beside ours.

    Attributes:
        paper: which paper, and where in it.
        note: what the scenario says about it.
        figures: one for each published figure and run that has its settings.
        orders: of the figures of which there are pairs.
    """

    paper: str
    note: str
    figures: Sequence[Figure]
    orders: Sequence[Order]


class Ours(NamedTuple):
    """A run, or several that differ in nothing but their seeds.

    Attributes:
        name: its name.
        paper: what its scenario says was published, if it does.
        settings: by dotted key.
        figures: of each run, by key.
    """

    name: str
    paper: Mapping[str, Any] | None
    settings: Mapping[str, Any]
    figures: Sequence[Mapping[str, float]]

    def has(self, wanted: Mapping[str, Any]) -> bool:
        """Whether it has these settings; of a component its name will do."""
        every = {"name": self.name, **self.settings}
        found = {key: every.get(key, every.get(f"{key}.name")) for key in dotted(wanted)}
        return all(_folded(found[key]) == _folded(value) for key, value in dotted(wanted).items())

    def without(self, keys: Sequence[str]) -> str:
        """Its settings but for those of some keys and the seed."""
        apart = [*keys, "seed"]
        return canonical({k: v for k, v in self.settings.items() if not any(within(k, one) for one in apart)})

    def value(self, figure: str) -> Spread | None:
        """A figure over its seeds; None where no run has it."""
        found = [one[figure] for one in self.figures if figure in one]
        return spread(found) if found else None


def _folded(value: Any) -> Any:
    return value.casefold().replace("_", "-") if isinstance(value, str) else value


Separable = Callable[[str, int, int], bool]


def of_runs(groups: Sequence[Group]) -> list[Beside]:
    """What the runs' scenarios say was published, each beside the runs of that scenario."""
    runs = runs_of(groups)
    if not any(run.published for run in runs):
        return []
    figures = {id(run): numbers(run) for run in runs}

    def separable(figure: str, one: int, other: int) -> bool:
        metric = Metric(figure, "", "", "", lambda run: _known(figures[id(run)].get(figure)))
        found = apart(metric, groups[one], groups[other])
        return found is None or found.separable is not False

    ours = [
        Ours(one.line, run.published, run.settings or {}, [figures[id(each)] for each in one.runs])
        for one in groups
        for run in [one.first]
    ]
    return _every(ours, main_model(runs), separable)


def _known(figure: float | None) -> Value | None:
    return None if figure is None else Value(figure)


def of_profiles(drafts: Sequence[Draft], profiles: Sequence[Profile]) -> list[Beside]:
    """Likewise of profiles, in the order of their runs: the figures of ``exchanges``."""
    ours = [
        Ours(scenario.name, document(scenario.published), dotted(scenario.resolved()), [_figures(profile)])
        for draft, profile in zip(drafts, profiles, strict=True)
        for scenario in [draft.scenario]
    ]
    return _every(ours, MODELS[0], lambda *_: True)


def _figures(profile: Profile) -> dict[str, float]:
    """A profile's figures by the keys that ``Summary.exchanges`` gives them."""
    found: dict[str, float] = {}
    for row in profile.prices:
        start = f"exchanges.{row['exchange']}.{row['device']}"
        found[f"{start}.memory_bytes"] = row["peak_bytes"]
        found |= {f"{start}.compute_s": row["work_s"]} if not row["unknown"] else {}
    return found


def _every(ours: Sequence[Ours], model: str, separable: Separable) -> list[Beside]:
    papers = {canonical(one.paper): one.paper for one in ours if one.paper}
    return [_beside(paper, ours, model, separable) for paper in papers.values()]


class _Entry(NamedTuple):
    """A published figure and, by the place of each run that has its settings, that run's."""

    settings: Mapping[str, Any]
    figure: str
    published: float
    here: Mapping[int, Spread | None]


def _beside(paper: Mapping[str, Any], ours: Sequence[Ours], model: str, separable: Separable) -> Beside:
    places = [place for place, one in enumerate(ours) if one.paper == paper]
    found = []
    for published in paper["runs"]:
        settings, figures = told(published)
        here = list(_found(settings, ours, places))
        found += [
            _Entry(
                settings,
                key,
                value,
                {place: _value(_key(key, model), place, other, ours) for place, other in here},
            )
            for key, value in figures.items()
        ]
    keys = dict.fromkeys(one.figure for one in found)
    orders = [_order([one for one in found if one.figure == key], ours, model, separable) for key in keys]
    rows = [each for one in found for each in _rows(one, ours)]
    return Beside(paper["paper"], paper["note"], rows, [one for one in orders if one.pairs])


def _key(figure: str, model: str) -> str:
    """A figure's key in a run's record; accuracies may be short, of the model that all runs have."""
    figure = f"accuracy.{model}" if figure == "accuracy" else figure
    return f"{figure}.value" if figure in {f"accuracy.{one}" for one in MODELS} else figure


def _found(
    settings: Mapping[str, Any], ours: Sequence[Ours], places: Sequence[int]
) -> Iterator[tuple[int, int | None]]:
    """The runs with these settings, and the one that each is against; None where that is not asked for."""
    own = {key: value for key, value in settings.items() if key != AGAINST}
    others = {**own, **settings.get(AGAINST, {})}
    for place in places:
        if ours[place].has(own):
            if AGAINST not in settings:
                yield place, None
            rest = ours[place].without(list(others))
            yield from (
                (place, other)
                for other in places
                if AGAINST in settings
                and ours[other].has(others)
                and ours[other].without(list(others)) == rest
            )


def _value(key: str, place: int, other: int | None, ours: Sequence[Ours]) -> Spread | None:
    value = ours[place].value(key)
    if value is None or other is None:
        return value
    whole = ours[other].value(key)
    return spread([value.mean / whole.mean]) if whole and whole.mean else None


def _rows(one: _Entry, ours: Sequence[Ours]) -> Iterator[Figure]:
    unit = RATIO if AGAINST in one.settings else _unit(one.figure)
    words = _words(one.settings)
    for place, value in one.here.items():
        mean, bounds = (value.mean, value.interval_95) if value else (None, None)
        deviation = None if mean is None else mean - one.published
        yield Figure(words, one.figure, unit, one.published, place, ours[place].name, mean, bounds, deviation)
    if not one.here:
        yield Figure(words, one.figure, unit, one.published, None, "", None, None, None)


def _unit(figure: str) -> str:
    ends = (unit for end, unit in _UNITS.items() if figure.endswith(end))
    return "share" if figure.startswith("accuracy") else next(ends, "")


def _words(settings: Mapping[str, Any]) -> str:
    own = ", ".join(setting_words(key, value) for key, value in settings.items() if key != AGAINST)
    against = settings.get(AGAINST)
    return f"{own} over {_words(against)}" if against else own


def _order(found: Sequence[_Entry], ours: Sequence[Ours], model: str, separable: Separable) -> Order:
    agree = open_ = 0
    turned = []
    for one, other in combinations(found, 2):
        keys = _apart(one.settings, other.settings)
        if len(keys) != 1 or one.published == other.published:
            continue
        for place, against in _pairs(one, other, keys, ours):
            mine, its = one.here[place], other.here[against]
            if mine is None or its is None:
                continue
            if mine.mean == its.mean or not separable(_key(one.figure, model), place, against):
                open_ += 1
            elif (mine.mean > its.mean) == (one.published > other.published):
                agree += 1
            else:
                first, last = sorted((one, other), key=lambda each: -each.published)
                turned.append(f"{_words(first.settings)} > {_words(last.settings)}")
    return Order(found[0].figure, agree + open_ + len(turned), agree, open_, turned)


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys in which settings differ, without those within another of them."""
    keys = [key for key in {**one, **other} if _folded(one.get(key)) != _folded(other.get(key))]
    return [key for key in keys if not any(key != outer and within(key, outer) for outer in keys)]


def _pairs(one: _Entry, other: _Entry, keys: Sequence[str], ours: Sequence[Ours]) -> list[tuple[int, int]]:
    """Of each two runs; of several, those that differ in nothing else."""
    every = list(product(one.here, other.here))
    if len(every) == 1:
        return every
    return [(a, b) for a, b in every if ours[a].without(keys) == ours[b].without(keys)]
