"""What one round costs, by exchange, model and device, as tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from edgefl.analysis.published import Beside
from edgefl.core.corners import Interval
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT
from edgefl.core.merging import MergeCost
from edgefl.core.units import amount, show_bits, show_bytes, show_flops, show_seconds, show_share
from edgefl.planning.assumed import guesses, in_short
from edgefl.planning.costs import MARGIN, Profile, Row, SharedLink, added, of, within
from edgefl.planning.sensitivity import Sensitivity
from edgefl.show.published import tables
from edgefl.show.sensitivity import sensitivity
from edgefl.show.table import MISSING, NO_MARGIN, UNKNOWN, Cell, Column, Line, Table, fits, listed, set_apart
from edgefl.show.values import AT_LEAST, LOWER_BOUND, between

_TOO_LARGE = "!"
"""Before the figures of a device that cannot hold the work."""
_MOST, _MOST_SHARE = 9, 10

Columns = Mapping[str, Callable[[Row], Cell]]


def profiles(
    found: Sequence[Profile], beside: Sequence[Beside], swept: Sequence[Sensitivity]
) -> RenderableType:
    """What a round costs, published figures beside ours, and what the figures depend on."""
    overview = [device_rounds(found)] if len(found) > 1 else []
    published, orders = tables(beside)
    blocks = (*set_apart(published), *orders, *map(sensitivity, swept))
    return Group(*set_apart([*overview, *map(profile, found)]), *blocks)


def profile(one: Profile) -> RenderableType:
    """One run's costs by exchange, model and device."""
    blocks: list[RenderableType] = [Line(f"{one.scenario}: {one.method}", "bold")]
    blocks += [Line(f"assumed: {note}", "dim") for note in one.assumed]
    blocks.append(Line(f"network: {networks(one.prices)}", "dim"))
    blocks += [block for work in one.exchanges for block in _exchange(one, work)]
    if one.shared:
        table = Table(_SHARED.items(), one.shared, names=2)
        blocks += [Line("shared by clients", "bold"), table, Line(_ABOUT_SHARED, "dim"), Line()]
    if one.server:
        intervals = one.server_intervals or {}
        merges = [(name, cost, intervals.get(name, {})) for name, cost in one.server.items()]
        blocks += [Line("a merge on the server", "bold"), Table(_SERVED.items(), merges)]
        unbounded = any("seconds" in bounds and bounds["seconds"].high is None for _, _, bounds in merges)
        blocks += [Line(LOWER_BOUND, "dim")] if unbounded else []
        blocks.append(Line())
    # What is unknown shows in the tables.
    assumed = in_short(guesses(one.assumptions))
    free = "" if one.server else "; merging on the server is free, as there is no server.device"
    blocks += [Line(note, "dim") for note in (_NOT_COUNTED + free, *assumed)]
    for model in one.layers or ():
        counts = f"fvcore {show_flops(model.fvcore_flops)}, traced {show_flops(model.traced_flops)}"
        blocks.append(Line(f"{model.model}, forward, one sample, convolutions and linear layers: {counts}"))
    return Group(*blocks)


_NOT_COUNTED = "not counted: reading from storage, and evaluation, which is no work of the protocol"


def when(work: Row) -> str:
    """In words: ``"every round"``, ``"every 10 rounds, all clients"``, ``"once at the end, all clients"``."""
    every = "every round" if work["every"] == 1 else f"every {work['every']} rounds"
    words = {"start": "once at the start", "end": "once at the end"}.get(work["at"], every)
    return words + (", all clients" if work["everyone"] else "")


def networks(rows: Sequence[Row]) -> str:
    """The network class of each device: "wifi-pi4; ethernet (laptop-cpu)"."""
    devices: dict[str, dict[str, None]] = {}
    for row in rows:
        devices.setdefault(row["link"], {})[row["device"]] = None
    most = max(devices, key=lambda link: len(devices[link]), default="")
    others = [f"{link} ({', '.join(names)})" for link, names in devices.items() if link != most]
    return "; ".join([most, *others])


def _exchange(one: Profile, work: Row) -> Iterator[RenderableType]:
    rows = _kind_named(of(one.prices, work))
    done = f"{work['samples']:,} samples, {work['steps']:,} steps"
    yield Line(f"{work['exchange']} ({when(work)}), {work['model']}, {done}", "bold")
    host, floats = work.get("measured", {}), all(row["dtype"] == "fp32" for row in rows)
    lines = {
        "work": _flops(work["flops"]),
        "of": _flops(work["flops_by_part"]) if work["flops_by_part"] else "",
        "": f"{work['kernels']:,} kernels, {show_bytes(work['moved_bytes'])} moved",
        "down": _sizes(work["down"]),
        "up": _sizes(work["up"]),
        # Rows have it in their own types.
        "peak": _sizes(work["peak"]) + ("" if floats else " (in fp32)"),
        "memory": _checked(host["memory"]) if "memory" in host else "",
        "time": _timed(host["time"]) if "time" in host else "",
    }
    yield Table([Column(""), Column("", left=True)], [line for line in lines.items() if line[1]])
    yield Line()
    priced = [row for row in rows if not row["unknown"]]
    if priced:
        yield Table(_TIMES.items(), priced)
        if any(_is_bound(row) for row in priced):
            yield Line(LOWER_BOUND, "dim")
        if any(row["fits"] and not row["fits_with_margin"] for row in priced):
            yield Line(f"{NO_MARGIN}: libraries may take {MARGIN:.0%} more than the traced peak", "dim")
        yield Line()
        columns = dict(_ENERGIES)
        if any(_battery(row) != MISSING for row in priced):
            columns["of battery"] = _battery
            if a_day := work.get("jobs_per_day"):
                columns["a day"] = lambda row: _a_day(row, a_day)
        yield Table(columns.items(), priced)
    for row in rows:
        if row["unknown"]:
            reason = row["unknown"].removeprefix(f"device {row['device']!r} ")
            yield Line(f" {row['device']}: {reason}{_holds(row)}", "yellow")
    yield Line()
    yield from _by_layer(one, work, priced)


def _kind_named(rows: Sequence[Row]) -> list[Row]:
    """Rows with their ``name``: the device, with the type and link that distinguish it from the others."""
    links: dict[str, set[str]] = {}
    for row in rows:
        links.setdefault(row["device"], set()).add(row["link"])
    found = list[Row]()
    for row in rows:
        dtype = [] if row["dtype"] == "fp32" else [row["dtype"]]
        link = [row["link"]] if len(links[row["device"]]) > 1 else []
        found.append({**row, "name": ", ".join([row["device"], *dtype, *link])})
    return found


def _flops(flops: Mapping[str, int]) -> str:
    return " + ".join(f"{name} {show_flops(value)}" for name, value in flops.items() if value) or "no FLOPs"


def _sizes(parts: Mapping[str, int]) -> str:
    held = {part: size for part, size in parts.items() if size}
    if not held:
        return "nothing"
    shown = ", ".join(f"{part} {show_bytes(size)}" for part, size in held.items())
    return shown if len(held) == 1 else f"{show_bytes(sum(held.values()))}: {shown}"


def _timed(check: Row) -> str:
    """A step's time by device, and on this host."""
    predicted = ", ".join(
        f"{show_seconds(seconds)} ({check['errors'][name]:+.0%}) for {name}"
        for name, seconds in check["predicted_s"].items()
    )
    measured = f"measured here {show_seconds(check['measured_s'])} a step, on one thread"
    return f"predicted {predicted}, {measured}" if predicted else measured


def _checked(check: Row) -> str:
    """Both figures, the verdict, and what it means for the devices."""
    error = "" if check["error"] is None else f" ({check['error']:+.0%})"
    predicted, measured = show_bytes(check["predicted_bytes"]), show_bytes(check["measured_bytes"])
    limits: dict[str, list[str]] = {}
    for device, limit in check["limits"].items():
        limits.setdefault(limit, []).append(device)
    fitting = "; ".join(f"{limit}: {', '.join(devices)}" for limit, devices in limits.items())
    verdict = f"predicted {predicted}{error}, measured here {measured}: {check['verdict']}"
    return verdict + (f"\n{fitting}" if fitting else "")


def _profile_figure(unit: str, key: str, unknown: str = UNKNOWN) -> Callable[[Row], str]:
    """A column of figures with their bounds, and what stands where nothing is known."""
    return lambda row: between(row[key], within(row, key), unit, unknown)


def _brief(unit: str, key: str) -> Callable[[Row], str]:
    """A column of figures, with their bounds only where they are unknown, to be short."""
    return lambda row: between(row[key], within(row, key) if row[key] is None else None, unit)


def _a_day(row: Row, jobs: float) -> str:
    """What so many jobs a day take of the battery."""
    share, bounds = row["battery_share"], within(row, "battery_share")
    return between(share, bounds, "battery", MISSING, write=lambda one: amount(one * jobs, "battery"))


def _is_bound(row: Row, key: str = "work_s") -> bool:
    """Whether a time is a lower bound: nothing bounds it from above."""
    return row[key] is not None and within(row, key).high is None


def _share(share: float | None) -> str:
    """A share; one of more than ten wholes as a multiple, such as ``"2,936x"``."""
    if share is None:
        return MISSING
    return show_share(share, 1) if share < _MOST_SHARE else f"{share:,.0f}x"


def _bound_text(key: str) -> Callable[[Row], str]:
    """The share of the time to compute that one of its bounds takes."""
    return lambda row: show_share(row[key] / row["work_s"]) if row["work_s"] else MISSING


_BOUND_BY: Columns = {
    f"{what}-bound": _bound_text(f"{what}_bound_s") for what in ("compute", "memory", "launch")
}
_TIMES: Columns = {
    "device": lambda row: row["name"],
    "down": _profile_figure("s", "down_s"),
    "compute": _profile_figure("s", "work_s"),
    "up": _profile_figure("s", "up_s"),
    **_BOUND_BY,
    "memory used": lambda row: _share(row["memory_share"]),
    "fits": lambda row: fits(row["fits"], with_margin=row["fits_with_margin"]),
}
_ENERGIES: Columns = {
    "device": lambda row: row["name"],
    "energy": _profile_figure("J", "joules"),
    **{name: _brief("J", f"{name}_j") for name in ("receive", "compute", "transmit", "tail", "idle")},
}
_battery = _profile_figure("battery", "battery_share", MISSING)


def _holds(row: Row) -> str:
    """Whether the memory would suffice, which is known without a price."""
    if row["memory_share"] is None:
        return ""
    held = "fits" if row["fits_with_margin"] else "fits without margin"
    return f"; memory used {_share(row['memory_share'])}, {held if row['fits'] else 'does not fit'}"


_ABOUT_SHARED = "least time: all payloads at the full rate; alone: one client, on its own link"
_SHARED: dict[str, Callable[[SharedLink], Cell]] = {
    "exchange": lambda one: one.exchange,
    "link": lambda one: one.capacity,
    "rate": lambda one: show_bits(one.bps),
    "payloads": lambda one: f"{one.clients:,} x {show_bytes(one.payload_bytes)}",
    "least time": lambda one: show_seconds(one.at_least_s),
    "alone": lambda one: between(None, one.alone_s, "s"),
}
_SERVED: dict[str, Callable[[tuple[str, MergeCost, Mapping[str, Interval]]], Cell]] = {
    "exchange": lambda row: row[0],
    "uploads": lambda row: f"{row[1].uploads:,}",
    "work": lambda row: show_flops(row[1].flops),
    "moved": lambda row: show_bytes(row[1].moved_bytes),
    "time": lambda row: between(row[1].seconds, row[2].get("seconds"), "s"),
    "energy": lambda row: between(row[1].joules, row[2].get("joules"), "J"),
    "peak memory": lambda row: show_bytes(row[1].peak_bytes),
}


def _by_layer(one: Profile, work: Row, priced: Sequence[Row]) -> Iterator[RenderableType]:
    """An exchange's layers: what they do, and what they take on each device that has a price."""
    parts = of(one.parts, work)
    tables = {what: [row for row in parts if row["what"] == what] for what in ("layer", "other work")}
    if not parts:
        return
    if tables["layer"]:
        yield Line(f"{work['exchange']}, {work['model']}, layer by layer: {work['steps']:,} steps", "bold")
        yield Table(_LAYER.items(), tables["layer"])
        yield Line(_ABOUT_LAYERS, "dim")
    if tables["other work"]:
        yield Line()
        yield Table(_OTHER.items(), tables["other work"])
    for row in priced:
        mine = of(one.part_prices, row, "device", "dtype", "link")
        yield Line()
        yield Line(row["name"], "bold")
        own = [part for part in mine if part["what"] == "layer"]
        if own:
            yield Table(_PRICED.items(), own)
            yield Line()
        yield Table(_TOTALS.items(), _totals(own, mine))
    yield Line()


def _totals(own: Sequence[Row], every: Sequence[Row]) -> list[Row]:
    """All layers as one row, everything else, and the sum of these."""
    sums = "seconds", "joules"
    rows: list[Row] = [{"part": "all layers", **added(own, sums)}] if own else []
    rows += [part for part in every if part["what"] != "layer"]
    return [*rows, {"part": "together", **added(rows, sums)}]


def _size(key: str) -> Callable[[Row], str]:
    return lambda row: show_bytes(row[key]) if row[key] else MISSING


def _count(*roles: str) -> Callable[[Row], str]:
    """Operations of some roles, or of all, without their unit, which the column has."""

    def cell(row: Row) -> str:
        value = sum(row["flops"][role] for role in roles or row["flops"])
        number, unit = amount(value, "FLOP")
        return f"{number} {unit.removesuffix('FLOP')}".rstrip() if value else MISSING

    return cell


def _least(key: str) -> Callable[[Row], str]:
    """A layer's time; as a lower bound where it is one. Other bounds stand in the totals, to be short."""

    def cell(row: Row) -> str:
        least = AT_LEAST if _is_bound(row, key) else ""
        return f"{least}{show_seconds(row[key])}" if row[key] else MISSING

    return cell


def _kernels(row: Row) -> str:
    return f"{row['kernels']:,}"


_ABOUT_LAYERS = (
    "FLOPs of forward, grad-input and grad-weight; weights, their gradients and kept results in fp32"
)
_LAYER: Columns = {
    "layer": lambda row: row["part"],
    "forward": _count(FORWARD),
    "grad\ninput": _count(GRAD_INPUT),
    "grad\nweight": _count(GRAD_WEIGHT),
    "kernels": _kernels,
    "moved": _size("moved_bytes"),
    "weights": _size("parameter_bytes"),
    "gradients": _size("gradient_bytes"),
    "kept": _size("activation_bytes"),
}
_OTHER: Columns = {
    "other work": lambda row: row["part"],
    "FLOPs": _count(),
    "kernels": _kernels,
    "moved": _size("moved_bytes"),
    "kept": _size("activation_bytes"),
}
_PRICED: Columns = {
    "layer": lambda row: row["part"],
    "forward": _least("forward_s"),
    "grad\ninput": _least("grad_input_s"),
    "grad\nweight": _least("grad_weight_s"),
    "energy": _brief("J", "joules"),
    "memory": _size("memory_bytes"),
}
_TOTALS: Columns = {
    "": lambda row: row["part"],
    "time": lambda row: _profile_figure("s", "seconds")(row) if row["seconds"] else MISSING,
    "energy": _profile_figure("J", "joules"),
}


def device_rounds(found: Sequence[Profile]) -> RenderableType:
    """Bytes and memory, then times and energies by device; a column for each run and model."""
    columns: dict[str, dict[str, Row]] = {}
    for one in found:
        several = len({work["model"] for work in one.exchanges}) > 1
        for row in _kind_named(one.rounds()):
            head = f"{one.scenario}, {row['model']}" if several else one.scenario
            columns.setdefault(head, {})[row["name"]] = row
    devices = list(dict.fromkeys(name for rounds in columns.values() for name in rounds))
    first = [next(iter(rounds.values())) for rounds in columns.values()]
    sizes = {"down": "down_bytes", "up": "up_bytes", "peak memory, in fp32": "peak_bytes"}
    rows = [[label, *(show_bytes(row[key]) for row in first)] for label, key in sizes.items()]
    blocks: list[RenderableType] = [Table(["bytes of a client's round", *columns], rows), Line()]
    for title, unit, key in (("time", "s", "seconds"), ("energy", "J", "joules")):
        table = [
            [name, *(_fitting(unit, key, rounds[name]) for rounds in columns.values())] for name in devices
        ]
        table = [row for row in table if any(row[1:])]
        if table:
            blocks += [Table([f"{title} of a client's round", *columns], table), Line()]
    every = {name: [rounds[name] for rounds in columns.values()] for name in devices}
    unpriced = [name for name, rows in every.items() if all(row["seconds"] is None for row in rows)]
    shown = [row for name, rows in every.items() if name not in unpriced for row in rows]
    return Group(*blocks, *_profile_notes(shown, unpriced), Line())


def _fitting(unit: str, key: str, row: Row) -> Cell:
    """A figure, which is marked where the memory does not suffice in every exchange."""
    text = _profile_figure(unit, key, "")(row)
    return Text(f"{_TOO_LARGE}{text}", "red") if text and row["fits"] is False else text


def _profile_notes(shown: Sequence[Row], unpriced: Sequence[str]) -> list[Line]:
    notes = ["a round is to receive, compute and send; exchanges before and after the rounds are below"]
    if any(_is_bound(row, "seconds") for row in shown):
        notes.append(LOWER_BOUND)
    if any(row["fits"] is False for row in shown):
        notes.append(f"{_TOO_LARGE} does not fit into the device's memory")
    if unpriced:
        notes.append(f"no price, for the reasons below: {listed(unpriced, _MOST, '; ')}")
    return [Line(note, "dim") for note in notes]
