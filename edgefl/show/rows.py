"""The figures by which runs are compared, as texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from edgefl.analysis.carbon import COMPONENTS
from edgefl.analysis.waiting import Lost
from edgefl.core.corners import Interval
from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds, show_share
from edgefl.show.averages import Compared, Figure, Row, Show, amount
from edgefl.show.batteries import show_charge, show_days
from edgefl.show.intervals import Covered, bounded, counted, covered, covered_rows
from edgefl.show.summary import Accuracy, Summary
from edgefl.show.tables import MISSING, UNKNOWN
from edgefl.show.targets import emission_rows, to_target
from edgefl.show.usage_rows import part_of, usage_rows

# Of each measure, as many figures are shown: those that it gives first.
_MOST_FIGURES = 2
# Devices with rows of what was lost to them.
_MOST_WAITED = 3
MODELS = ("global", "personal")
# Idle power of clients whose uploads wait to be merged; no part of the energy.
WAITING = "idle while waiting"


def rows(compared: Sequence[Compared]) -> Iterator[Row]:
    """The figures that apply to some of the runs."""
    runs = [run for one in compared for run in one.runs]
    yield from _accuracies(runs, averaged=len(runs) > len(compared))
    if any(run.training_loss is not None for run in runs):
        show = partial(_measure_shown, unit="")
        yield amount("training loss", show, lambda run: run.training_loss, "", "", key="training_loss")
    yield from measure_rows(runs)
    yield _TIME
    yield amount("bytes down", show_bytes, lambda run: run.down_bytes, "B", key="down_bytes")
    yield amount("bytes up", show_bytes, lambda run: run.up_bytes, "B", key="up_bytes")
    for part in dict.fromkeys(part for run in runs for part in run.bytes_by_part):
        yield Row(f"  {part}, down / up", partial(_part, part=part))
    yield amount("work of all clients", show_flops, lambda run: run.flops, "FLOP", key="flops")
    yield from energy_rows(runs)
    if any(run.energy.joules for run in runs):
        yield Row("  compute / radio / tail / idle", _phases)
    if any(run.waiting_joules for run in runs):
        yield IDLE
    yield from _batteries(runs)
    yield from carbon_rows(runs)
    yield PEAK
    yield from list(server_rows(runs))[: None if any(run.server for run in runs) else 1]
    if any(run.refused for run in runs):
        yield REFUSED
    yield from to_target(runs, _evaluated(runs))
    yield from usage_rows(runs)
    yield from _waited(runs)
    yield amount("host time", show_seconds, lambda run: run.host_s, "s", "", key="host_s")
    if any(run.measures_host_s is not None for run in runs):
        label, key = "  of it for measures", "measures_host_s"
        yield amount(label, show_seconds, lambda run: run.measures_host_s, "s", "", key=key)


def _tenths(share: float) -> str:
    return show_share(share, 1)


def _refused(run: Summary) -> str:
    return f"{run.refused:,} of {run.clients:,}"


def _evaluated(runs: Sequence[Summary]) -> list[str]:
    return [model for model in MODELS if any(model in run.accuracy for run in runs)]


def _accuracies(runs: Sequence[Summary], *, averaged: bool) -> Iterator[Row]:
    """The accuracies of the models that were evaluated; of averages, the deviation is over seeds."""
    models = _evaluated(runs)
    scores = [score for run in runs for score in run.accuracy.values()]
    for model in models:
        yield Row(
            f"accuracy, {model}",
            partial(_accuracy, model=model, alone=not averaged),
            figure=_figure_of(model, lambda score: score.value),
            unit="share",
            better="higher",
            key=f"accuracy.{model}.value",
        )
    if averaged and any(score.deviation_over_clients is not None for score in scores):
        over_clients = _figure_of("personal", lambda score: score.deviation_over_clients)
        key = "accuracy.personal.deviation_over_clients"
        yield amount("  deviation over clients", _tenths, over_clients, "share", "", key=key)
    if any(map(_covered, runs)):
        yield Row("  of clients", _coverage)
    after = next((run.after_rounds for run in runs if run.after_rounds), None)
    if after and any(score.before is not None for score in scores):
        which = "both" if len(models) > 1 else models[0]
        yield Row(f"  before {after}, {which}", partial(_before, models=models))


def _figure_of(model: str, figure: Callable[[Accuracy], float | None]) -> Figure:
    return lambda run: figure(run.accuracy[model]) if model in run.accuracy else None


def _accuracy(one: Compared, model: str, *, alone: bool) -> str:
    text = one.show(_tenths, _figure_of(model, lambda score: score.value))
    score = one.first.accuracy.get(model)
    deviation = score.deviation_over_clients if alone and score else None
    return text if deviation is None else f"{text} ±{_tenths(deviation)}"


def _covered(run: Summary) -> bool:
    """Whether the mean of personal accuracies leaves out clients, or covers some that never trained."""
    score = run.accuracy.get("personal")
    return score is not None and (score.clients != run.clients or bool(score.untrained))


def _coverage(one: Compared) -> str:
    """How many clients the mean of personal accuracies covers, and how many of them never trained."""
    if not any(map(_covered, one.runs)):
        return ""
    scores = [run.accuracy["personal"] for run in one.runs]
    clients = counted([score.clients or 0 for score in scores])
    untrained = counted([score.untrained or 0 for score in scores])
    return f"{clients} of {one.first.clients}, {untrained} untrained"


def _before(one: Compared, models: Sequence[str]) -> str:
    texts = [one.show(_tenths, _figure_of(model, lambda score: score.before)) for model in models]
    return MISSING if set(texts) == {MISSING} else " / ".join(texts)


def measure_rows(runs: Sequence[Summary], most: int = _MOST_FIGURES) -> Iterator[Row]:
    """A row or two for each measure that some run has."""
    every = [(name, one) for run in runs for name, one in (run.measures or {}).items()]
    for name in dict.fromkeys(name for name, _ in every):
        same = [one for other, one in every if other == name]
        keys = [key for key in same[0].figures if not key.endswith(" std")][:most]
        for place, (key, words) in enumerate(zip(keys, _figure_words(keys), strict=True)):
            show = partial(_measure_shown, unit=same[0].unit)
            label = f"  {words}" if place else f"{name}, {words}"
            figure = partial(_of_measure, measure=name, key=key)
            at = f"measures.{name}.figures.{key}"
            yield amount(label, show, figure, same[0].unit, "", key=at)


def _figure_words(keys: Sequence[str]) -> list[str]:
    """What tells figures of one measure apart: the figure, or the model where it has no name of its own."""
    split = [key.partition(" ") for key in keys]
    figures = [figure or model for model, _, figure in split]
    if len(set(figures)) == len(figures):
        return figures
    return [f"{figure}, {model}" for figure, (model, *_) in zip(figures, split, strict=True)]


def _measure_shown(value: float, unit: str) -> str:
    return show_share(value, 1) if unit == "share" else f"{value:.3g} {unit}".strip()


def _of_measure(run: Summary, measure: str, key: str) -> float | None:
    found = (run.measures or {}).get(measure)
    return None if found is None else found.figures.get(key)


def _part(one: Compared, part: str) -> str:
    moved = [run.bytes_by_part[part] for run in one.runs if part in run.bytes_by_part]
    if not moved:
        return MISSING
    return " / ".join(show_bytes(sum(way) / len(moved)) for way in zip(*moved, strict=True))


def _time(one: Compared) -> str:
    return bounded(one, show_seconds, lambda run: run.virtual_s, lambda run: run.virtual_s_between, MISSING)


def energy_rows(runs: Sequence[Summary]) -> Iterator[Row]:
    """The energy of all clients, and what is known of some."""
    row = Row("energy of all clients", lambda _: MISSING, unit="J", better="lower", key=ENERGY)
    amount: Callable[[Summary], Covered] = lambda run: covered(run.energy, run.joules_between)  # noqa: E731
    yield from covered_rows(row, runs, amount, lambda _: MISSING)


ENERGY = "joules"
"""The key of the energy of all clients."""


_PHASES = (("compute",), ("receive", "transmit"), ("tail",), ("idle",))


def _phases(one: Compared) -> str:
    whole = sum(run.energy.joules or 0.0 for run in one.runs)
    parts = (
        sum(run.joules_by_phase.get(name, 0.0) for run in one.runs for name in names) for names in _PHASES
    )
    return " / ".join(show_share(part / whole) for part in parts) if whole else MISSING


def _batteries(runs: Sequence[Summary]) -> Iterator[Row]:
    """What jobs take from the batteries of each device that has one."""
    for device in dict.fromkeys(device for run in runs for device in run.batteries):
        for label, (show, of) in _BATTERY.items():
            yield Row(
                label.format(device),
                partial(_battery, device=device, show=show, of=of),
                figure=partial(_of_battery, device=device, of=of),
                unit="days" if of == "days" else "share",
                better="higher" if of == "days" else "lower",
                key=f"batteries.{device}.{of}",
                bounds=partial(_battery_between, device=device, of=of),
            )


_BATTERY: dict[str, tuple[Show, str]] = {
    "battery of {}, a round": (show_charge, "per_round"),
    "  a day": (show_charge, "per_day"),
    "  one charge lasts": (show_days, "days"),
}


def _of_battery(run: Summary, device: str, of: str) -> float | None:
    return getattr(run.batteries.get(device), of, None)


def _battery_between(run: Summary, device: str, of: str) -> Interval | None:
    return run.batteries[device].per_round_between if of == "per_round" and device in run.batteries else None


def _battery(one: Compared, device: str, show: Show, of: str) -> str:
    """A figure of ``BatteryUse``; "-" without the device, or where it was never asked."""
    unknown = any(run.batteries[device].joules is None for run in one.runs if device in run.batteries)
    figure = partial(_of_battery, device=device, of=of)
    bounds = partial(_battery_between, device=device, of=of)
    return bounded(one, show, figure, bounds, UNKNOWN if unknown else MISSING)


def carbon_rows(runs: Sequence[Summary]) -> Iterator[Row]:
    """What was emitted in all, and by each component that some run counts."""
    known = [run.carbon.emitted for run in runs if run.carbon]
    if not known:
        return
    yield from emission_rows("CO2e", "total", runs)
    for name in COMPONENTS:
        if any(getattr(each, name) for each in known):
            yield from emission_rows(f"  {name}", name, runs)
    if any(each.waiting.grams for each in known):
        yield from emission_rows(f"  {WAITING}, apart", "waiting", runs)


def server_rows(runs: Sequence[Summary]) -> Iterator[Row]:  # noqa: ARG001 - as others are made
    """What merges cost the server; no part of what clients take."""
    for label, name, unit, show in _OF_SERVER:
        figure: Figure = lambda run, name=name: getattr(run.server, name, None)  # type: ignore[misc]  # noqa: E731
        yield Row(label, partial(_server_shown, show, figure), figure, unit, "lower", f"server.{name}")


def _server_shown(show: Show, figure: Figure, one: Compared) -> str:
    return one.show(show, figure, "free" if one.first.server is None else UNKNOWN)


_OF_SERVER: tuple[tuple[str, str, str, Show], ...] = (
    ("merging on the server", "seconds", "s", show_seconds),
    ("  work", "flops", "FLOP", show_flops),
    ("  energy", "joules", "J", show_joules),
    ("  peak memory", "peak_bytes", "B", show_bytes),
)
_TIME = Row(
    "virtual time",
    _time,
    figure=lambda run: run.virtual_s,
    unit="s",
    better="lower",
    key="virtual_s",
    bounds=lambda run: run.virtual_s_between,
)
IDLE = part_of(
    WAITING,
    show_joules,
    lambda run: run.waiting_joules,
    lambda run: run.energy.joules,
    "J",
    "waiting_joules",
    sign="+",
)
PEAK = amount("peak device memory", show_bytes, lambda run: run.peak_bytes or None, "B", key="peak_bytes")
REFUSED = Row(
    "clients refused",
    lambda one: one.all(_refused),
    figure=lambda run: run.refused,
    better="lower",
    key="refused",
)
BYTES = amount(
    "bytes of all clients",
    show_bytes,
    lambda run: run.down_bytes + run.up_bytes,
    "B",
    key="down_bytes + up_bytes",
)
"""In both directions; a comparison has a row for each."""
COSTS = (_TIME.key, BYTES.key, ENERGY)
"""What accuracy is traded for, by key."""


def traded(compared: Sequence[Compared]) -> Iterator[Row]:
    """Accuracies, their costs - virtual time, bytes in both directions, energy - and those of a target."""
    for row in rows(compared):
        if row.key in COSTS or (
            row.better and row.key.startswith(("accuracy.", "target.")) and "wasted" not in row.key
        ):
            yield row
        if row.key == "up_bytes":
            yield BYTES


def _waited(runs: Sequence[Summary]) -> Iterator[Row]:
    """What was lost to the devices that cost most, and to which of its parts."""
    for device in _waited_devices(runs, _MOST_WAITED):
        yield Row(f"waited for {device}", partial(_lost, device=device))
        yield Row("  link/compute/slowdown/jitter", partial(_lost_parts, device=device))
        yield Row("  others idle", partial(_others_idle, device=device))


def _most_lost(one: Compared) -> str:
    """A device and what was lost to it."""
    return next((f"{device} {_lost(one, device)}" for device in _waited_devices(one.runs, 1)), MISSING)


WAITED_MOST = Row("waited most for", _most_lost)
"""The device that cost each run most."""


def _waited_devices(runs: Sequence[Summary], most: int) -> list[str]:
    """The devices that cost most, those that cost most first."""
    lost_s: Counter[str] = Counter()
    for run in runs:
        lost_s.update({one.device: one.lost.lost_s for one in run.waited_for_devices})
    return [device for device, _ in lost_s.most_common(most)]


def _lost_to(one: Compared, device: str) -> list[Lost]:
    return [each.lost for run in one.runs for each in run.waited_for_devices if each.device == device]


def _lost(one: Compared, device: str) -> str:
    """The seconds, and their share of the run."""
    lost_s = sum(lost.lost_s for lost in _lost_to(one, device))
    share = show_share(lost_s / sum(run.virtual_s for run in one.runs)) if lost_s else ""
    return f"{show_seconds(lost_s / len(one.runs))} ({share})" if lost_s else show_seconds(0)


def _lost_parts(one: Compared, device: str) -> str:
    found = _lost_to(one, device)
    whole = sum(lost.lost_s for lost in found)
    parts = zip(
        *((lost.link_s, lost.compute_s, lost.slowdown_s, lost.jitter_s) for lost in found), strict=True
    )
    return " / ".join(show_share(sum(part) / whole) for part in parts) if whole else MISSING


def _others_idle(one: Compared, device: str) -> str:
    """The share of the time of the merges that waited in which the other clients had nothing to do."""
    found = _lost_to(one, device)
    merges = sum(lost.merges for lost in found)
    return show_share(sum(lost.others_idle * lost.merges for lost in found) / merges) if merges else MISSING
