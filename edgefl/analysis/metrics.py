"""The figures of runs, each defined once, in the one order in which all tables have them."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any, Literal

from edgefl.analysis.bills import TOTAL, Amount, Bill
from edgefl.analysis.explain.path import NOBODY
from edgefl.analysis.history import Evaluated
from edgefl.analysis.summary import Summary
from edgefl.analysis.values import NOT_REACHED, Value, over_seeds
from edgefl.core.corners import Interval

MODELS = ("global", "personal")
Better = Literal["higher", "lower", ""]
Of = Callable[[Summary], Value | None]


@dataclass(frozen=True)
class Metric:
    """A figure of each run.

    Attributes:
        key: its dotted place in a run's record of ``edgefl compare --json``.
        label: its name; a part of the figure before begins with two spaces.
        unit: as of ``core.units.amount``.
        better: which one is ahead; empty where neither is.
        of: a run's figure in base units; None where it has no such figure.
        main: whether it stands in the short table.
        judged: whether runs are judged by it.
        cost: whether it is what a whole run takes, which accuracy is traded for.
        model: the model that it is of; empty for a figure of the whole run.
        over: that of several runs where it is no mean over them.
    """

    key: str
    label: str
    unit: str
    better: Better
    of: Of
    main: bool = False
    judged: bool = False
    cost: bool = False
    model: str = ""
    over: Callable[[Sequence[Summary]], Value | None] | None = field(default=None, compare=False)

    def value(self, runs: Sequence[Summary]) -> Value | None:
        """The figure over runs that differ in nothing but their seeds; None where none has it."""
        return self.over(runs) if self.over else over_seeds([self.of(run) for run in runs])

    @property
    def is_known_part(self) -> bool:
        """Whether it is what is known of the metric before, of some clients."""
        return self.label == _KNOWN_PART


_KNOWN_PART = "  known part"


def metrics(runs: Sequence[Summary]) -> list[Metric]:
    """All that apply to some of the runs."""
    return [metric for part in _PARTS for metric in part(runs)]


def main_model(runs: Sequence[Summary]) -> str:
    """The model whose way to the target is judged: the first that all evaluated runs have."""
    return _models(runs)[0]


def _models(runs: Sequence[Summary]) -> list[str]:
    every = [run.accuracy for run in runs if run.accuracy]
    found = [model for model in MODELS if any(model in run for run in every)]
    return sorted(found, key=lambda model: not all(model in run for run in every)) or [MODELS[0]]


def target_name(runs: Sequence[Summary]) -> str:
    """How the runs' target is called; empty without any."""
    targets = {run.target.accuracy for run in runs if run.target}
    return "its target" if len(targets) > 1 else "".join(map(percent, targets))


def percent(target: float) -> str:
    """A target with all digits that it was given with."""
    return f"{(Decimal(repr(target)) * 100).normalize():f}%"


def _at(key: str) -> Of:
    """The number that a run's record has by this key, with its bounds."""

    def of(run: Summary) -> Value | None:
        low, high = (run.numbers.get(f"{key}_between.{end}") for end in ("low", "high"))
        between = None if low is None else Interval(low, high)
        return Value(float(run.numbers[key]), between) if key in run.numbers else None

    return of


def _read(key: str, label: str, unit: str, better: Better = "", **more: Any) -> Metric:
    return Metric(key, label, unit, better, _at(key), **more)


def _with_part(metric: Metric, runs: Sequence[Summary]) -> Iterator[Metric]:
    """A sum over clients, and what is known of it where that is not all of them."""
    yield metric

    def part(run: Summary) -> Value | None:
        found = metric.of(run)
        if found is None or found.part is None:
            return None
        return Value(found.part, known=found.known, clients=found.clients)

    if any(part(run) for run in runs):
        key = f"{metric.key} known"
        yield replace(metric, key=key, label=_KNOWN_PART, better="", of=part, judged=False, cost=False)


def _accuracies(runs: Sequence[Summary]) -> Iterator[Metric]:
    for model in (model for model in MODELS if any(model in run.accuracy for run in runs)):
        start, scores = f"accuracy.{model}.", [run.accuracy[model] for run in runs if model in run.accuracy]
        shown: dict[str, Any] = {"main": True, "judged": True, "model": model}
        yield _read(f"{start}value", f"accuracy, {model}", "share", "higher", **shown)
        if any(score.deviation_over_clients is not None for score in scores):
            yield _read(f"{start}deviation_over_clients", "  deviation over clients", "share")
        # Some were left out, or never trained.
        if any(
            run.accuracy[model].clients not in {None, run.clients} or run.accuracy[model].untrained
            for run in runs
            if model in run.accuracy
        ):
            yield _read(f"{start}clients", "  clients evaluated", "")
            yield _read(f"{start}untrained", "  of them untrained", "")
        after = next((run.after_rounds for run in runs if run.after_rounds), None)
        if after and any(score.before is not None for score in scores):
            yield _read(f"{start}before", f"  before {after}", "share")
    if any(run.training_loss is not None for run in runs):
        yield _read("training_loss", "training loss", "loss")


def _to_target(runs: Sequence[Summary], *, second: bool = False) -> Iterator[Metric]:
    """What it took the main model, or the second one, to reach the target."""
    name, main = target_name(runs), main_model(runs)
    for model in _models(runs) if name else ():
        if (model != main) == second and any(model in run.accuracy for run in runs):
            yield from _took(runs, model, f" to {name}" + (f", {model}" if second else ""))


def _took(runs: Sequence[Summary], model: str, end: str) -> Iterator[Metric]:
    found = [reached for run in runs if run.target and (reached := run.target.of(model))]

    def of(figure: Callable[[Evaluated], Value | None]) -> Of:
        def took(run: Summary) -> Value | None:
            if run.target is None or model not in run.accuracy:
                return None
            reached = run.target.of(model)
            return figure(reached) if reached else NOT_REACHED

        return took

    start = f"target.{model}."
    shown: dict[str, Any] = {"main": model == main_model(runs), "judged": True, "model": model}
    # Where none reached it, one row says so.
    if_any: dict[str, Any] = shown if found else {"model": model}
    yield Metric(
        f"{start}t_s", f"time{end}", "s", "lower", of(lambda one: Value(one.t_s, one.t_s_between)), **shown
    )
    if any(one.last_below for one in found):
        yield _read(f"{start}last_below.t_s", "  last evaluation below", "s", model=model)
    rounds, flops = of(lambda one: Value(one.rounds)), of(lambda one: Value(one.flops))
    yield Metric(f"{start}rounds", f"rounds{end}", "", "lower", rounds, model=model)
    yield Metric(f"{start}bytes", f"bytes{end}", "B", "lower", of(lambda one: Value(one.bytes)), **if_any)
    yield Metric(f"{start}flops", f"work{end}", "FLOP", "lower", flops, model=model)
    energy = of(lambda one: Value.over_clients(*one.energy, one.joules_between))
    yield from _with_part(Metric(f"{start}joules", f"energy{end}", "J", "lower", energy, **if_any), runs)
    for name, bill in _bills(runs).items():

        def paid(run: Summary, name: str = name, unit: str = bill.unit) -> Value | None:
            mine = _bill(run, name, unit)
            until = mine.to_target.get(model, {}) if mine else {}
            return of(lambda _: _of_amount(until.get(TOTAL)))(run) if mine else None

        key = f"costs.{name}.to_target.{model}.total.amount"
        yield from _with_part(Metric(key, f"{bill.label}{end}", bill.unit, "lower", paid, **if_any), runs)
    if any(one.wasted.bytes for one in found):
        wasted = of(lambda one: Value(one.wasted.bytes))
        yield Metric(f"{start}wasted.bytes", f"wasted bytes{end}", "B", "lower", wasted, **if_any)
    if any(one.wasted.joules for one in found):
        wasted = of(lambda one: Value.over_clients(one.wasted.joules, *one.energy[1:]))
        yield Metric(f"{start}wasted.joules", f"wasted energy{end}", "J", "lower", wasted, **if_any)


def _of_amount(found: Amount | None) -> Value | None:
    if found is None:
        return None
    return Value.over_clients(found.amount, found.known, found.clients, found.between)


def _wholes(runs: Sequence[Summary]) -> Iterator[Metric]:
    """What the whole run took."""
    shown: dict[str, Any] = {"main": True, "judged": True, "cost": True}
    yield _read("virtual_s", "virtual time", "s", "lower", **shown)
    yield _read("bytes", "bytes of all clients", "B", "lower", **shown)
    yield _read("down_bytes", "  down", "B", "lower")
    yield _read("up_bytes", "  up", "B", "lower")
    for part in dict.fromkeys(part for run in runs for part in run.bytes_by_part):
        for way in ("down", "up"):
            yield _read(f"bytes_by_part.{part}.{way}", f"  {part}, {way}", "B")
    yield _read("flops", "work of all clients", "FLOP", "lower")
    energy: Of = lambda run: Value.over_clients(*run.energy, run.joules_between)  # noqa: E731
    yield from _with_part(Metric("joules", "energy of all clients", "J", "lower", energy, **shown), runs)
    for phase in dict.fromkeys(phase for run in runs for phase in run.joules_by_phase):
        if any(run.joules_by_phase.get(phase) for run in runs):
            key = f"joules_by_phase.{phase}"
            yield Metric(key, f"  {phase}", "J", "", _of_whole(_at(key), lambda run: run.energy.joules))
    if any(run.waiting_joules for run in runs):
        waiting: Of = lambda run: _of_energy(run, run.waiting_joules)  # noqa: E731 - as above
        yield from _with_part(Metric("waiting_joules", WAITING, "J", "lower", waiting), runs)
    yield from _billed(runs)


def _of_whole(part: Of, whole: Callable[[Summary], float | None]) -> Of:
    def of(run: Summary) -> Value | None:
        found = part(run)
        return found and replace(found, whole=whole(run))

    return of


WAITING = "idle while waiting, apart"
"""Idle power of clients whose uploads wait to be merged; no part of the energy."""


def _of_energy(run: Summary, joules: float | None) -> Value | None:
    """A part of a run's energy, or an energy beside it, which is known of the same clients."""
    found = Value.over_clients(joules, *run.energy[1:])
    return found and replace(found, whole=run.energy.joules)


def _bill(run: Summary, name: str, unit: str) -> Bill | None:
    """None of one in another currency, which cannot be compared."""
    found = (run.costs or {}).get(name)
    return found if found and found.unit == unit else None


def _bills(runs: Sequence[Summary]) -> dict[str, Bill]:
    """Those that some run has, by name; the first run's say in which unit."""
    return {name: bill for run in reversed(runs) for name, bill in (run.costs or {}).items()}


def _billed(runs: Sequence[Summary]) -> Iterator[Metric]:
    """What whole runs cost, by component and by device."""
    for name, bill in _bills(runs).items():
        rows = [("whole", TOTAL, bill.label)]
        for component, found in bill.whole.items():
            if component != TOTAL and (component != "waiting" or found.amount):
                rows.append(("whole", component, f"  {WAITING if component == 'waiting' else component}"))
        rows += [("devices", device, f"  {device}") for device in bill.devices]
        for kind, part, label in rows:
            shown: dict[str, Any] = dict.fromkeys(
                ("main", "judged", "cost"), (kind, part) == ("whole", TOTAL)
            )
            of = partial(_part_of_bill, name, bill.unit, kind, part)
            key = f"costs.{name}.{kind}.{part}.amount"
            yield from _with_part(Metric(key, label, bill.unit, "lower", of, **shown), runs)


def _part_of_bill(name: str, unit: str, kind: str, part: str, run: Summary) -> Value | None:
    mine = _bill(run, name, unit)
    return _of_amount(getattr(mine, kind).get(part)) if mine else None


def _batteries(runs: Sequence[Summary]) -> Iterator[Metric]:
    """What jobs take from the batteries of each device that has one."""

    def of(device: str, figure: str, run: Summary) -> Value | None:
        use = run.batteries.get(device)
        if use is None:
            return None
        between = use.per_round_between if figure == "per_round" else None
        value = getattr(use, figure)
        return Value(value, between) if value is not None or use.joules is None else None

    for device in dict.fromkeys(device for run in runs for device in run.batteries):
        rows = (
            (f"battery of {device}, a round", "per_round", "battery", "lower"),
            ("  a day", "per_day", "battery", "lower"),
            ("  one charge lasts", "days", "days", "higher"),
        )
        for label, figure, unit, better in rows:
            key = f"batteries.{device}.{figure}"
            yield Metric(key, label, unit, better, partial(of, device, figure))  # type: ignore[arg-type]


def _wasted(runs: Sequence[Summary]) -> Iterator[Metric]:
    """How jobs ended, and what was wasted."""
    if not any(run.wasted.jobs for run in runs):
        return
    for ending in runs[0].spent:
        yield _read(f"spent.{ending}.jobs", f"jobs {ending}", "")
    judged = not any(metric.key.endswith("wasted.bytes") and metric.judged for metric in _to_target(runs))
    shown: dict[str, Any] = {"main": judged, "judged": judged}
    rows = (("bytes", "bytes", "B"), ("flops", "work", "FLOP"), ("client_s", "client time", "s"))
    for name, what, unit in rows:
        key = f"wasted.{name}"
        only = shown if unit == "B" else {}
        yield Metric(key, f"wasted {what}", unit, "lower", _of_whole(_at(key), attrgetter(name)), **only)
    energy: Of = lambda run: _of_energy(run, run.wasted.joules)  # noqa: E731 - it has a type
    yield from _with_part(Metric("wasted.joules", "wasted energy", "J", "lower", energy, **shown), runs)


def _merging(runs: Sequence[Summary]) -> Iterator[Metric]:
    """What merges cost the server; no part of what clients take."""

    def of(name: str, run: Summary) -> Value | None:
        return Value(getattr(run.server, name)) if run.server else None

    rows = (
        ("seconds", "merging on the server", "s"),
        ("flops", "  work", "FLOP"),
        ("joules", "  energy", "J"),
        ("peak_bytes", "  peak memory", "B"),
    )
    for name, label, unit in rows if any(run.server for run in runs) else ():
        yield Metric(f"server.{name}", label, unit, "lower", partial(of, name))


def _clients(runs: Sequence[Summary]) -> Iterator[Metric]:
    """What clients need, and how many took part."""
    if any(run.refused for run in runs):
        yield _read("refused", "clients refused", "", "lower", main=True)
    if any(run.peak_bytes for run in runs):
        yield _read("peak_bytes", "peak device memory", "B", "lower", main=True)
    yield _read("utilisation", "utilisation", "share", "lower")
    if any(run.fairness is not None and run.fairness < 1 for run in runs):
        yield _read("merged_clients", "clients that were merged", "", "higher")
        yield _read("fairness", "fairness of participation", "index", "higher")


# Devices with rows of their part of the critical path.
_MOST_WAITED = 3


def _paths(runs: Sequence[Summary]) -> Iterator[Metric]:
    """The devices with most of the critical path, and what it was spent on."""
    devices = _waited_devices(runs)
    if devices:
        yield Metric("path", "waited most for", "s", "", lambda _: None, main=True, over=_waited_most)
    for device in devices[:_MOST_WAITED]:
        yield Metric(f"path.{device}.seconds", f"critical path: {device}", "s", "", partial(_on_path, device))
        for stage in ("download", "compute", "upload"):
            name = f"{stage}_s"
            yield Metric(f"path.{device}.{name}", f"  {stage}", "s", "", partial(_on_path, device, name=name))


def _on_path(device: str, run: Summary, name: str = "seconds") -> Value:
    found = run.path.get(device)
    whole = run.virtual_s if name == "seconds" or not found else found.seconds
    return Value(getattr(found, name) if found else 0.0, whole=whole)


def _waited_devices(runs: Sequence[Summary]) -> list[str]:
    """Those with most of the critical path first."""
    seconds: Counter[str] = Counter()
    for run in runs:
        seconds.update({device: one.seconds for device, one in run.path.items() if device != NOBODY})
    return [device for device, _ in seconds.most_common()]


def _waited_most(runs: Sequence[Summary]) -> Value | None:
    """The device with most of these runs' critical paths."""
    for device in _waited_devices(runs)[:1]:
        found = over_seeds([_on_path(device, run) for run in runs])
        return found and replace(found, name=device)
    return None


# Of each measure, as many figures are shown: those that it gives first.
_MOST_FIGURES = 2


def _measures(runs: Sequence[Summary]) -> Iterator[Metric]:
    every = [(name, one) for run in runs for name, one in (run.measures or {}).items()]
    for name in dict.fromkeys(name for name, _ in every):
        same = next(one for other, one in every if other == name)
        keys = [key for key in same.figures if not key.endswith(" std")][:_MOST_FIGURES]
        for place, (key, words) in enumerate(zip(keys, _figure_words(keys), strict=True)):
            label = f"  {words}" if place else f"{name}, {words}"
            yield _read(f"measures.{name}.figures.{key}", label, same.unit or "loss", main=not place)


def _figure_words(keys: Sequence[str]) -> list[str]:
    """What tells figures of one measure apart: the figure, or the model where it has no name of its own."""
    split = [key.partition(" ") for key in keys]
    names = [figure or model for model, _, figure in split]
    if len(set(names)) == len(names):
        return names
    return [f"{figure}, {model}" for figure, (model, *_) in zip(names, split, strict=True)]


def _host(runs: Sequence[Summary]) -> Iterator[Metric]:
    yield _read("host_s", "host time", "s")
    if any(run.measures_host_s is not None for run in runs):
        yield _read("measures_host_s", "  of it for measures", "s")


_PARTS: Sequence[Callable[[Sequence[Summary]], Iterator[Metric]]] = (
    _accuracies, _to_target, _wholes, _wasted, _batteries, _clients, _merging, _paths, _measures,
    partial(_to_target, second=True), _host,
)  # fmt: skip
