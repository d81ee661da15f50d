"""What groups of runs took, by part of the payload, phase, ending and class of devices; and memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from edgefl.analysis.groups import SeedGroup, spreads
from edgefl.core.units import show_joules
from edgefl.planning.fleets import recorded_devices
from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, Switch
from edgefl.show.page.records import Read, Section, Told, once, partly

_COLUMNS = {
    "figure": FrameColumn("figure", told=False),
    "of": FrameColumn("of"),
    "unit": FrameColumn("unit", told=False),
    "amount": FrameColumn("@axis", "@unit"),
}
# What became of jobs: colours from cool to warm, patterns for those who do not see colours.
_ENDINGS = {
    "merged": ("merged (useful)", "#0072b2", ""),
    "late": ("late (wasted)", "#e69f00", "/"),
    "lost": ("lost (wasted)", "#d55e00", "x"),
    "cut": ("cut (wasted)", "#cc79a7", "."),
}
# Figures by name: their axes' titles, units and keys.
_WASTE = {
    "client time": ("time of all clients", "s", "client_s"),
    "bytes": ("bytes of all clients", "B", "bytes"),
    "energy": ("energy of all clients", "J", "joules"),
    "operations": ("operations of all clients", "FLOP", "flops"),
    "jobs": ("jobs", "", "jobs"),
}
_TAKEN = {
    "bytes by part": ("bytes of all clients", "B", "bytes_by_part."),
    "energy by phase": ("energy of all clients", "J", "joules_by_phase."),
}
_DEVICES = {
    "device": FrameColumn("device"),
    "clients": FrameColumn("clients"),
    "joules_per_round": FrameColumn("energy per client and round", "J"),
    "joules": FrameColumn("energy of all its clients", "J"),
    "per_round": FrameColumn("share of a full battery per round", "share"),
    "per_round_low": FrameColumn("share of a battery per round, at least", "share", told=False),
    "per_round_high": FrameColumn("share of a battery per round, at most", "share", told=False),
    "per_day": FrameColumn("share of a full battery per day", "share"),
}


def section(told: Told) -> Section:
    """What jobs took, useful or wasted."""
    means = list(map(_means_of, told.groups))
    ended, wasted = any(map(_ended, means)), any(_ended(one, but="merged") for one in means)
    nothing = "no job has ended yet, so nothing was spent."
    waste = Plot(
        "waste",
        "Useful and wasted",
        "Only jobs that were merged are useful: what late, lost and cut jobs took is wasted. Means of seeds.",
        "no job was late, lost or cut, so nothing was wasted." if ended else nothing,
        "bars",
        Frame(_COLUMNS, list(_blocks(told, means, _WASTE, _spent_blocks)) if wasted else []),
        **_BARS,
        looks={label: {"color": colour, "shape": shape} for label, colour, shape in _ENDINGS.values()},
    )
    costs = Plot(
        "costs",
        "Bytes by part and energy by phase",
        "What all jobs took, useful or wasted. Means over seeds.",
        nothing,
        "bars",
        Frame(_COLUMNS, list(_blocks(told, means, _TAKEN, _within))),
        **_BARS,
    )
    return Section("costs", "Costs", [waste, costs])


_BARS: Mapping[str, Any] = {
    "x": ["amount"], "series": "of", "by": [Switch("figure", "Show")], "share": True,
}  # fmt: skip
_Means: TypeAlias = Mapping[str, float]


def _means_of(group: SeedGroup) -> _Means:
    """The figures of the runs that have them, by dotted key."""
    return {key: found.mean for key, found in spreads(group.runs).items()}


def _ended(means: _Means, but: str = "") -> bool:
    return any(means.get(f"spent.{ending}.jobs") for ending in _ENDINGS if ending != but)


def _spent_blocks(means: _Means, key: str) -> dict[str, float]:
    """A figure by ending."""
    keys = {label: f"spent.{ending}.{key}" for ending, (label, *_) in _ENDINGS.items()}
    return {label: means[own] for label, own in keys.items() if own in means}


def _within(means: _Means, start: str) -> dict[str, float]:
    """The figures whose keys begin so, by the rest."""
    rests = {key: key.removeprefix(start).rsplit(".", 1) for key in means if key.startswith(start)}
    return {", ".join(rest): means[key] for key, rest in rests.items()}


def _blocks(
    told: Told,
    means: Sequence[_Means],
    figures: Mapping[str, tuple[str, str, str]],
    of: Callable[[_Means, str], Mapping[str, float]],
) -> Iterator[Block]:
    """Of each figure that some group has, a block for each group."""
    for figure, (axis, unit, key) in figures.items():
        amounts = [of(one, key) for one in means]
        if not any(amount for one in amounts for amount in one.values()):
            continue
        notes = " ".join(_cost_notes(told, means, amounts, figure, unit))
        for place, own in enumerate(amounts):
            yield {
                "group": place,
                "figure": figure,
                "axis": axis,
                "unit": unit,
                "of": list(own),
                "amount": list(own.values()),
                "notes": {"": notes},
            }


def _cost_notes(
    told: Told, means: Sequence[_Means], amounts: Sequence[_Means], figure: str, unit: str
) -> Iterator[str]:
    """Whose bars are missing, and of what an energy is."""
    names = [group.line for group in told.groups]
    for ended, words in ((False, "No job has ended of"), (True, "A number is unknown that it takes of")):
        bare = [
            name
            for name, one, own in zip(names, means, amounts, strict=True)
            if not own and _ended(one) == ended
        ]
        if bare:
            yield f"{words} {once(bare)}."
    if unit == "J" and (some := partly(told)):
        yield some
    if figure == "energy by phase":
        waits = [one.get("waiting_joules") for one in means]
        idle = [f"{name} {show_joules(wait)}" for name, wait in zip(names, waits, strict=True) if wait]
        if idle:
            yield f"Not included: idle energy while uploads wait for the server, {once(idle)}."


def devices(told: Told) -> Section:
    """Energy by class of devices, and the share of a battery that a round takes."""
    blocks: list[dict[str, Any]] = [
        {"group": place, **{name: [row.get(name) for row in rows] for name in _DEVICES}}
        for place, group in enumerate(told.groups)
        if (rows := _devices_plot(_means_of(group)))
    ]
    known = any(value is not None for one in blocks for value in one["joules"])
    plot = Plot(
        "devices",
        "Energy by class of devices",
        "The energy of the clients with each device; means over seeds. Bars at a share of the battery are its"
        " bounds.",
        "no energy is known: a number that it needs is unknown of every device."
        if blocks
        else "no client took part.",
        "points",
        Frame(_DEVICES, blocks if known else []),
        x=["joules_per_round", "joules", "per_round", "per_day"],
        row="device",
        log="x",
    )
    return Section("devices", "Energy by device", [plot])


def _devices_plot(means: _Means) -> list[dict[str, Any]]:
    """What each device's clients took, and of their batteries."""
    found: dict[str, dict[str, Any]] = {}
    for key, mean in means.items():
        kind, _, rest = key.partition(".")
        if kind in {"devices", "batteries"}:
            device, _, name = rest.replace("per_round_between.", "per_round_").rpartition(".")
            found.setdefault(device, {"device": device})[name] = mean
    return [found[device] for device in sorted(found) if "clients" in found[device]]


# A kind's refusal is by the first exchange that its device cannot do.
_SQL = """
SELECT device, model, priced.exchange AS exchange, SUM(clients) AS clients,
  IFNULL(SUM(clients) FILTER (WHERE refused.exchange = priced.exchange), 0) AS refused,
  MAX(peak_bytes) AS peak_bytes,
  IFNULL(MAX(refused.reason) FILTER (WHERE refused.exchange = priced.exchange), '') AS reason
FROM prices AS priced JOIN exchanges USING (exchange) JOIN kinds USING (kind)
JOIN (SELECT kind, COUNT(*) AS clients FROM fleet GROUP BY kind) USING (kind)
LEFT JOIN refused_kinds AS refused USING (kind)
GROUP BY device, model, place ORDER BY MIN(kind), place
"""
_LIMIT, _REFUSED = "limit of the device", "refused: needs more than it may use"
_MEMORY = {
    "device": FrameColumn("device"),
    "what": FrameColumn("what"),
    "bytes": FrameColumn("memory of a client", "B"),
    "share": FrameColumn("share of the limit", "share"),
    "clients": FrameColumn("clients"),
    "reason": FrameColumn("refused because"),
}


def memory(told: Told, read: Sequence[Block]) -> Section:
    """Needs beside limits."""
    del told
    blocks = [block for block in read if block["what"]]
    plot = Plot(
        "memory",
        "Memory against each device's limit",
        "The most memory that each exchange needs at once, and what the device has.",
        "no memory need is known of these runs.",
        "points",
        Frame(_MEMORY, blocks),
        x=["bytes"],
        runs="one",
        series="what",
        row="device",
        log="X",
        looks={
            _LIMIT: {"symbol": "line-ns-open", "color": "--ink"},
            _REFUSED: {"symbol": "x-thin-open", "color": "#d55e00"},
        },
    )
    return Section("memory", "Memory", [plot])


def needs_of(one: Read) -> Block:
    """A run's clients by device and model: the largest need of any in each exchange, and the device's limit.

    The limit is the usable memory by which planning admits. Some are refused because of an exchange; for want
    of memory, or for the reason that is told: what the device cannot do.

    Raises:
        UserError: ``plan.yaml`` is damaged.
    """
    rooms = {name: device.usable_memory_bytes for name, device in recorded_devices(one.run.reader).items()}
    found = [dict(row) for row in one.run.reader.query(_SQL)]
    found.sort(key=lambda row: rooms[row["device"]] or float("inf"))
    several = len({row["model"] for row in found}) > 1
    rows: list[Mapping[str, Any]] = []
    refusals: list[str] = []
    for row in found:
        room = rooms[row["device"]]
        name = f"{row['device']}, {row['model']}" if several else row["device"]
        limit = {"device": name, "what": _LIMIT, "bytes": room and int(room), "clients": row["clients"]}
        need = {**limit, "what": f"need of {row['exchange']}", "bytes": row["peak_bytes"]}
        need["share"] = row["peak_bytes"] / room if room else None
        rows.append(need)
        if row["refused"]:
            rows.append({**need, "what": _REFUSED, "clients": row["refused"], "reason": row["reason"]})
            refusals.append(
                f"{row['refused']:,} clients ({row['device']}, {row['model']}: {row['exchange']})"
            )
        if room and limit not in rows:
            rows.append(limit)
    unknown = sorted({row["device"] for row in found if not rooms[row["device"]]})
    notes = f"Refused: {'; '.join(refusals)}." if refusals else "Nobody was refused."
    notes += f" The limit is unknown of {', '.join(unknown)}." if unknown else ""
    columns = {name: [row.get(name) for row in rows] for name in _MEMORY}
    return {"run": one.place, **columns, "notes": {"": notes}}
