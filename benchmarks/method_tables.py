"""The tables of ``methods.py``, of the runs that have been done."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import NamedTuple, TypeAlias

from method_runs import DIRICHLET, METHODS, SHARDS, VARIANTS, Results, Run, last

from edgefl.analysis.values import estimate

# The target of a group: this share of its first method's accuracy, rounded down to a whole per cent.
_SHARE = 0.9
_COSTS = (("time, s", 2, 1.0), ("traffic, MB", 3, 1e6), ("energy, kJ", 4, 1e3), ("work, TFLOP", 5, 1e12))
_NONE = "-"
Point: TypeAlias = list[float | None] | None
_BEFORE = "before calibration"


class Claim(NamedTuple):
    """A published difference in accuracy, in points, by partition."""

    method: str
    against: str
    source: str
    published: Mapping[str, float]


CLAIMS = (
    Claim("FLex&Chill, T = 0.05", "FedAvg", "FLex&Chill, Table 1", {SHARDS: 3.37}),
    Claim("FLex&Chill, T = 0.25", "FedAvg", "FLex&Chill, Table 1", {SHARDS: 2.07}),
    Claim("FLex&Chill, T = 4", "FedAvg", "FLex&Chill, Table 1", {SHARDS: -3.76}),
    Claim("FedCKA", "FedAvg", "FedCKA, Table 2", {DIRICHLET: 1.92}),
    Claim("MOON", "FedAvg", "FedCKA, Table 2", {DIRICHLET: 1.20}),
    Claim("FedCKA", "MOON", "FedCKA, Table 2", {DIRICHLET: 0.72}),
    Claim("SCAFFOLD", "FedAvg", "FedCKA, Table 2", {DIRICHLET: -9.90}),
    Claim("FedNTD", "FedAvg", "FedNTD, Tables 8, 9", {SHARDS: 6.28, DIRICHLET: 4.17}),
    Claim("SCAFFOLD", "FedAvg", "FedNTD, Tables 8, 9", {SHARDS: 4.97, DIRICHLET: -16.41}),
    Claim("FedNova", "FedAvg", "FedNTD, Tables 8, 9", {SHARDS: -1.72, DIRICHLET: -3.42}),
    Claim("FedProx", "FedAvg", "FedNTD, Tables 8, 9", {SHARDS: -0.05, DIRICHLET: 3.60}),
    Claim("MOON", "FedAvg", "FedNTD, Table 1", {SHARDS: -1.63, DIRICHLET: -1.72}),
    Claim("SphereFed + FFC", "FedAvg", "SphereFed, Table 2", {DIRICHLET: 2.62}),
    Claim("SphereFed + FFC", _BEFORE, "SphereFed, Table 4", {DIRICHLET: 0.95}),
    Claim("FedBABU", "FedAvg", "SphereFed, Table 2", {DIRICHLET: 1.01}),
    Claim("CCVR", _BEFORE, "SphereFed, Table 2", {DIRICHLET: 0.15}),
    Claim("LG-FedAvg", "FedRep", "SphereFed, Table 8", {DIRICHLET: 8.32}),
)
_MODELS = {
    "global": "Accuracy of the global model on the test images",
    "personal": "Mean accuracy of the clients' own models on test images of their classes",
}


def three(number: float) -> str:
    """A number to three significant digits."""
    return f"{float(f'{number:.3g}'):,g}"


def shown(values: Sequence[float], of: int, text: Callable[[float], str]) -> str:
    """The mean with its interval, and of how many of the runs, if not of all."""
    if not values:
        return _NONE
    average = estimate(values)
    mean, half = average.mean, average.half
    among = "" if len(values) == of else f" ({len(values)} of {of})"
    return text(mean) + ("" if half is None else f" ± {text(half)}") + among


def ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """The geometric mean of ratios, as an addition to a figure."""
    found = [value / other for value, other in pairs if other]
    return f"; {geometric_mean(found):.2g}x" if found and all(found) else ""


def percent(share: float) -> str:
    """In per cent, to a tenth, without the sign."""
    return f"{100 * share:.1f}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = (heads, ["---"] * len(heads), *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def reached(run: Run, target: float) -> Point:
    """A run's first evaluation at or above the target."""
    return next((point for point in run["curve"] if point[1] >= target), None)


def _counted(results: Results, method: str, partition: str) -> list[Run]:
    """The runs of a method that count, if all have been done."""
    runs = [run for task in results.counted(method, partition) if (run := results.of(task)) is not None]
    return runs if len(runs) == len(results.scale.seeds) else []


def target(results: Results, model: str, partition: str) -> float | None:
    """The accuracy that all methods of a group are to reach; None before the first method's runs are done."""
    runs = _counted(results, next(iter(METHODS[model])), partition)
    return int(100 * _SHARE * fmean(map(last, runs))) / 100 if runs else None


def gains(runs: Sequence[Run], others: Sequence[Run]) -> list[float]:
    """Differences in accuracy at the end, of the seeds in which neither diverged."""
    pairs = zip(runs, others, strict=True)
    return [last(run) - last(other) for run, other in pairs if run["curve"] and other["curve"]]


def _row(results: Results, model: str, method: str, partition: str) -> list[str]:
    runs, goal = _counted(results, method, partition), target(results, model, partition)
    first = _counted(results, next(iter(METHODS[model])), partition)
    if not runs or not first or goal is None:
        return [method, *[_NONE] * (3 + len(_COSTS))]
    of, rate = len(runs), results.rate(method, partition) or 0.0
    edge = " (edge)" if rate in (results.scale.rates[0], results.scale.rates[-1]) else ""
    learned = [last(run) for run in runs if run["curve"]]
    points = [reached(run, goal) for run in runs]
    others = [reached(run, goal) for run in first]
    return [
        method,
        f"{rate:g}{edge}",
        shown(learned, of, percent),
        _NONE if method == next(iter(METHODS[model])) else shown(gains(runs, first), of, percent),
        *(_cost(points, others, column, unit) for _, column, unit in _COSTS),
    ]


def _cost(points: Sequence[Point], others: Sequence[Point], column: int, unit: float) -> str:
    """What it took to reach the target, and beside the first method's on the same seeds."""
    both = zip(points, others, strict=True)
    values = [(point and point[column], other and other[column]) for point, other in both]
    known = [value / unit for value, _ in values if value is not None]
    pairs = [(value, other) for value, other in values if value is not None and other is not None]
    return shown(known, len(values), three) + (ratio(pairs) if pairs else "")


def result_tables(results: Results) -> Iterator[tuple[str, str]]:
    """A heading and a table for each kind of model and partition."""
    for model, methods in METHODS.items():
        for partition in results.scale.partitions:
            goal = target(results, model, partition)
            if goal is None:
                continue
            heads = ["method", "rate", "accuracy, %", f"against {next(iter(methods))}"]
            heads += [name for name, _, _ in _COSTS]
            rows = [_row(results, model, method, partition) for method in methods]
            heading = f"{_MODELS[model]}; {partition}; costs are those to {100 * goal:.0f}%"
            yield heading, table(heads, rows)


def _differences(results: Results, method: str, against: str, partition: str) -> list[float]:
    runs = _counted(results, method, partition)
    if against == _BEFORE:
        return [last(run) - run["before"] for run in runs if run["before"] is not None]
    others = _counted(results, against, partition)
    return gains(runs, others) if runs and others else []


def claims_table(results: Results) -> str:
    """Published differences beside ours, and whether the signs are the same."""
    rows = []
    for claim in CLAIMS:
        cells = []
        for partition in results.scale.partitions:
            difference = claim.published.get(partition)
            found = _differences(results, claim.method, claim.against, partition)
            cells += [
                _NONE if difference is None else f"{difference:+.1f}",
                shown(found, len(found), percent) + _verdict(difference, found),
            ]
        rows.append([claim.method, claim.against, claim.source, *cells])
    heads = ["method", "against", "published in"]
    for partition in results.scale.partitions:
        heads += [f"{partition}: published", "here"]
    return table(heads, rows)


def _verdict(published: float | None, found: Sequence[float]) -> str:
    """Whether a difference is the published one's sign, by the interval of ours."""
    if published is None or len(found) < 2:
        return ""
    average = estimate(found)
    mean, half = average.mean, average.half
    if abs(mean) <= (half or 0.0):
        return ": open"
    return ": agrees" if mean * published > 0 else ": disagrees"


def rounds_table(results: Results) -> str:
    """How far methods are ahead of the first during training, in points."""
    rows, rounds = [], (10, 30, 50)
    first, *others = METHODS["global"]
    for method in others:
        cells = []
        for partition in results.scale.partitions:
            runs, plain = (_counted(results, name, partition) for name in (method, first))
            for round_ in rounds:
                pairs = zip(_at(runs, round_), _at(plain, round_), strict=False)
                cells.append(shown([own - other for own, other in pairs], len(runs), percent))
        rows.append([method, *cells])
    heads = ["method"]
    heads += [f"{partition}: round {round_}" for partition in results.scale.partitions for round_ in rounds]
    return table(heads, rows)


def _at(runs: Sequence[Run], round_: int) -> list[float]:
    return [point[1] for run in runs for point in run["curve"] if point[0] == round_]


def variants_table(results: Results) -> str:
    """What variants of the methods learn, beside what they are compared with."""
    rows = []
    for name, variant in VARIANTS.items():
        cells = []
        for partition in results.scale.partitions:
            rate, runs = results.rate(name, partition), _counted(results, name, partition)
            learned = [last(run) for run in runs if run["curve"]]
            found = _differences(results, name, variant.against, partition)
            cells += [
                f"{rate:g}" if runs else _NONE,
                shown(learned, len(runs), percent),
                shown(found, len(runs), percent),
            ]
        rows.append([name, variant.against, *cells])
    heads = ["variant", "compared with"]
    for partition in results.scale.partitions:
        heads += [f"{partition}: rate", "accuracy, %", "difference"]
    return table(heads, rows)


def tuning_tables(results: Results) -> Iterator[tuple[str, str]]:
    """A heading and a table for each partition: accuracy on held-out data by rate."""
    rates = results.scale.rates
    for partition in results.scale.partitions:
        rows = []
        for methods in METHODS.values():
            for method in methods:
                best = results.rate(method, partition)
                runs = {task.rate: results.of(task) for task in results.tuning(method, partition)}
                cells = {rate: _scored(run) for rate, run in runs.items() if run is not None}
                if best is not None:
                    cells[best] = f"**{cells[best]}**"
                rows.append([method, *(cells.get(rate, _NONE) for rate in rates)])
        yield (
            f"Accuracy on held-out data by learning rate, %; {partition}",
            table(["method", *(f"{rate:g}" for rate in rates)], rows),
        )


def _scored(run: Run) -> str:
    return percent(last(run)) if run["curve"] else "diverged"


def document(results: Results) -> str:
    """All tables, each under its heading."""
    sections = [
        *result_tables(results),
        ("Published differences in accuracy, in points, and ours", claims_table(results)),
        ("Accuracy against FedAvg's during training, in points", rounds_table(results)),
        ("Variants, to see what a result is due to", variants_table(results)),
        *tuning_tables(results),
    ]
    return "\n\n".join(f"{heading}:\n\n{text}" for heading, text in sections) + "\n"
