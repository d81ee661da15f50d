"""What papers report of runs, beside what these runs have, and whether their order is the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

from edgefl.analysis.groups import SeedGroup, runs_of
from edgefl.analysis.metrics import MODELS, main_model
from edgefl.analysis.settings import canonical, dotted
from edgefl.analysis.values import Estimate, difference, estimate
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
    """A published figure beside a run's; None, or empty, where no run has its settings.

    Attributes:
        run: the published run, in words.
        figure: what it is, as the scenario has it: a key of a run in ``edgefl compare --json``.
        unit: as of ``Metric``; "x" of a share of another run's.
        group, name: the run's place and name, or of those that differ in nothing but their seeds.
        here: its figure, a mean over seeds.
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
class PublishedOrder:
    """Whether runs come in the published order.

    Two published runs that differ in one setting are a pair, unless their figures are equal.

    Attributes:
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
    """A paper's figures beside ours: one for each published figure and run that has its settings.

    The paper's name says where in it they are; the note is what the scenario says about it.
    """

    paper: str
    note: str
    figures: Sequence[Figure]
    orders: Sequence[PublishedOrder]


class Ours(NamedTuple):
    """Runs that differ in nothing but their seeds; settings and each seed's figures by dotted key."""

    name: str
    paper: Mapping[str, Any] | None
    settings: Mapping[str, Any]
    figures: Mapping[int, Mapping[str, float]]

    def has(self, wanted: Mapping[str, Any]) -> bool:
        """Whether it has these settings; of a component its name will do."""
        every = {"name": self.name, **self.settings}
        found = {key: every.get(key, every.get(f"{key}.name")) for key in dotted(wanted)}
        return all(_folded(found[key]) == _folded(value) for key, value in dotted(wanted).items())

    def without(self, keys: Sequence[str]) -> str:
        """Its settings but for those of some keys and the seed."""
        apart = [*keys, "seed"]
        return canonical({k: v for k, v in self.settings.items() if not any(within(k, one) for one in apart)})

    def value(self, key: str) -> Estimate | None:
        """A figure over its seeds; None where no run has it."""
        found = [one[key] for one in self.figures.values() if key in one]
        return estimate(found) if found else None

    def is_separable(self, key: str, other: "Ours") -> bool:
        """Whether a figure is not that of another, as far as several seeds tell."""
        mine, its = ({seed: run.get(key) for seed, run in one.figures.items()} for one in (self, other))
        found = difference(mine, its)
        return found is None or found.separable is not False


def _folded(value: Any) -> Any:
    return value.casefold().replace("_", "-") if isinstance(value, str) else value


def beside_runs(groups: Sequence[SeedGroup]) -> list[Beside]:
    """What the runs' scenarios say was published, each beside the runs of that scenario."""
    runs = runs_of(groups)
    if not any(run.published for run in runs):
        return []
    ours = [
        Ours(
            one.line,
            one.first.published,
            one.first.settings or {},
            {run.seed: run.numbers for run in one.runs},
        )
        for one in groups
    ]
    return _beside(ours, main_model(runs))


def beside_profiles(drafts: Sequence[Draft], profiles: Sequence[Profile]) -> list[Beside]:
    """Likewise of profiles, in the order of their runs: the figures of ``exchanges``."""
    ours = [
        Ours(scenario.name, document(scenario.published), dotted(scenario.resolved()), {0: _figures(profile)})
        for draft, profile in zip(drafts, profiles, strict=True)
        for scenario in [draft.scenario]
    ]
    return _beside(ours, MODELS[0])


def _figures(profile: Profile) -> dict[str, float]:
    """A profile's figures by the keys that ``Summary.exchanges`` gives them."""
    found: dict[str, float] = {}
    for row in profile.prices:
        start = f"exchanges.{row['exchange']}.{row['device']}"
        found[f"{start}.memory_bytes"] = row["peak_bytes"]
        found |= {f"{start}.compute_s": row["work_s"]} if not row["unknown"] else {}
    return found


class _PublishedEntry(NamedTuple):
    """A published figure, its key in a run's record, and what each run has that has its settings."""

    settings: Mapping[str, Any]
    figure: str
    key: str
    published: float
    here: Mapping[int, Estimate | None]


def _beside(ours: Sequence[Ours], model: str) -> list[Beside]:
    """Each paper's figures beside the runs of its scenario; accuracies are of ``model`` if none is named."""
    found = []
    for paper in {canonical(one.paper): one.paper for one in ours if one.paper}.values():
        mine = {place: one for place, one in enumerate(ours) if one.paper == paper}
        entries = [
            _PublishedEntry(settings, figure, key, value, dict(_here(settings, key, mine)))
            for published in paper["runs"]
            for settings, figures in [told(published)]
            for figure, value in figures.items()
            for key in [_key(figure, model)]
        ]
        by_figure = {one.figure: [each for each in entries if each.figure == one.figure] for one in entries}
        orders = [_order(each, mine) for each in by_figure.values()]
        rows = [row for one in entries for row in _rows(one, mine)]
        found.append(Beside(paper["paper"], paper["note"], rows, [one for one in orders if one.pairs]))
    return found


def _key(figure: str, model: str) -> str:
    """A figure's key in a run's record; accuracies may be short, of the model that all runs have."""
    figure = f"accuracy.{model}" if figure == "accuracy" else figure
    return f"{figure}.value" if figure in {f"accuracy.{one}" for one in MODELS} else figure


def _here(
    settings: Mapping[str, Any], key: str, ours: Mapping[int, Ours]
) -> Iterator[tuple[int, Estimate | None]]:
    """What runs with these settings have, or as a share of what the runs have that these are against."""
    own = {name: value for name, value in settings.items() if name != AGAINST}
    others = {**own, **settings.get(AGAINST, {})}
    for place, one in ours.items():
        if not one.has(own):
            continue
        value = one.value(key)
        if AGAINST not in settings:
            yield place, value
            continue
        rest = one.without(list(others))
        for other in ours.values():
            if other.has(others) and other.without(list(others)) == rest:
                whole = other.value(key)
                yield place, estimate([value.mean / whole.mean]) if value and whole and whole.mean else None


def _rows(one: _PublishedEntry, ours: Mapping[int, Ours]) -> Iterator[Figure]:
    unit = RATIO if AGAINST in one.settings else _unit(one.figure)
    for place, value in one.here.items() or [(None, None)]:
        name = "" if place is None else ours[place].name
        mean, bounds = (value.mean, value.interval_95) if value else (None, None)
        deviation = None if mean is None else mean - one.published
        words = _words(one.settings)
        yield Figure(words, one.figure, unit, one.published, place, name, mean, bounds, deviation)


def _unit(figure: str) -> str:
    ends = (unit for end, unit in _UNITS.items() if figure.endswith(end))
    return "share" if figure.startswith("accuracy") else next(ends, "")


def _words(settings: Mapping[str, Any]) -> str:
    own = ", ".join(setting_words(key, value) for key, value in settings.items() if key != AGAINST)
    against = settings.get(AGAINST)
    return f"{own} over {_words(against)}" if against else own


def _order(found: Sequence[_PublishedEntry], ours: Mapping[int, Ours]) -> PublishedOrder:
    agree = open_ = 0
    turned = []
    for one, other in combinations(found, 2):
        keys = _apart(one.settings, other.settings)
        if len(keys) != 1 or one.published == other.published:
            continue
        pairs = list(product(one.here, other.here))
        # Of several runs, those that differ in nothing else.
        if len(pairs) > 1:
            pairs = [(a, b) for a, b in pairs if ours[a].without(keys) == ours[b].without(keys)]
        for place, against in pairs:
            mine, its = one.here[place], other.here[against]
            if mine is None or its is None:
                continue
            if mine.mean == its.mean or not ours[place].is_separable(one.key, ours[against]):
                open_ += 1
            elif (mine.mean > its.mean) == (one.published > other.published):
                agree += 1
            else:
                first, last = sorted((one, other), key=lambda each: -each.published)
                turned.append(f"{_words(first.settings)} > {_words(last.settings)}")
    return PublishedOrder(found[0].figure, agree + open_ + len(turned), agree, open_, turned)


def _apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys in which settings differ, without those within another of them."""
    keys = [key for key in {**one, **other} if _folded(one.get(key)) != _folded(other.get(key))]
    return [key for key in keys if not any(key != outer and within(key, outer) for outer in keys)]
