"""``batch_size: fit``: the largest batch that the fleet's devices can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgefl.compute import meta
from edgefl.core.devices import TRACED, WIDTHS, Board
from edgefl.core.errors import ScenarioError
from edgefl.core.fleet import Fleet
from edgefl.core.scenario import Draft
from edgefl.core.units import show_bytes
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import Learning

FIT = "fit"


def fitted(draft: Draft, learning: Learning, fleet: Fleet, samples: Iterable[int]) -> Draft:
    """The draft with a number where its batch size is "fit".

    One number for all clients, since a batch size is part of the learning: the largest with which every
    exchange, on every model, leaves each device of the fleet enough memory. A device that cannot hold one
    sample does not count, since its clients are refused whatever the batch size; neither does one whose
    memory is unknown.

    Args:
        draft: the scenario.
        learning: what it trains.
        fleet: its fleet.
        samples: how many the clients have.

    Raises:
        ScenarioError: one sample fits nowhere, or no memory is known.
    """
    if draft.scenario.local.batch_size != FIT:
        return draft
    where = str(draft.document.place(["local", "batch_size"]))
    rooms = _rooms(fleet, devices_of(fleet, where))
    if not rooms:
        raise ScenarioError(
            "no device of the fleet has a known memory to fit a batch into",
            where=where,
            hint="give a batch size, or a fleet with known memories",
        )
    one = _needs(learning, 1)
    able = [room for room in rooms.values() if room >= one]
    if not able:
        name, room = max(rooms.items(), key=lambda item: item[1])
        raise ScenarioError(
            f"not even one sample fits: it takes {show_bytes(one)}, and {name} has {show_bytes(room)}",
            where=where,
            hint="take a smaller model, or a fleet with more memory",
        )
    local = draft.scenario.local.model_copy(
        update={"batch_size": _largest(learning, min(able), set(samples))}
    )
    return draft.model_copy(update={"scenario": draft.scenario.model_copy(update={"local": local})})


def _rooms(fleet: Fleet, devices: Mapping[str, Board]) -> dict[str, float]:
    """What each member may use, in bytes of fp32: a narrower type needs as much less."""
    rooms: dict[str, float] = {}
    for member in fleet.members:
        room = devices[member.device].usable_memory_bytes
        if room is not None:
            wide = room * WIDTHS[TRACED] / WIDTHS[member.dtype]
            rooms[member.device] = min(rooms.get(member.device, wide), wide)
    return rooms


def _largest(learning: Learning, room: float, samples: set[int]) -> int:
    """By bisection: memory never falls with the batch. A rest of one joins a batch, which must then fit."""
    low, high = 1, max(samples) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _needs(learning, middle) <= room else (low, middle)
    joined = any(count > low > 1 and count % low == 1 for count in samples)
    return low - joined


def _needs(learning: Learning, batch_size: int) -> int:
    """The memory that the hungriest exchange takes on the hungriest model, in bytes."""
    return max(
        meta.peak_bytes(method, exchange, net, batch_size)
        for method, net in zip(learning.methods, learning.nets, strict=True)
        for exchange in method.exchanges
    )
