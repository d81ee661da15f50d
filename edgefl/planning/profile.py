"""What one round costs, before anything is trained: every exchange, on every model and device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from edgefl.compute.meta import Sizes, trace
from edgefl.compute.modules import fvcore_flops, modules, traced_flops
from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE, Cost
from edgefl.core.device import Device, Link
from edgefl.core.errors import UserError
from edgefl.core.fleet import Fleet
from edgefl.core.price import Pricer
from edgefl.core.scenario import Draft
from edgefl.planning.fleets import device, devices_of, fleet_of
from edgefl.planning.learning import DataAccess, Learning, data_of, learn_from
from edgefl.planning.pricing import phase_steps
from edgefl.protocol import Exchange


def profile(draft: Draft, names: Sequence[str] = (), *, layers: bool = False) -> dict[str, Any]:
    """The cost of one client's share of each exchange; needs no data files and trains nothing.

    The client has the dataset's training images divided evenly. Times are without slowdown and jitter.

    Args:
        draft: the scenario.
        names: devices to price on, on the fleet's first link; none takes the fleet's own.
        layers: whether to add fvcore's counts by module.

    Returns:
        "scenario", "method", "assumed", "exchanges" (a dict for each exchange and model, with a row for each
        device) and, where asked for, "layers".

    Raises:
        UserError: something in the scenario, or a device's name, is wrong.
    """
    learning = learn_from(draft, data_of(draft, DataAccess(need="nothing")))
    fleet = fleet_of(draft)
    where = str(draft.document.place(["fleet"]))
    devices = {name: device(name, where="--device") for name in names} or devices_of(fleet, where)
    samples = int(np.ceil(learning.federation.spec.train_size / draft.scenario.task.clients))
    found: dict[str, Any] = {
        "scenario": draft.scenario.name,
        "method": draft.scenario.method.name,
        "assumed": [f"every client has {samples} samples, an even share of {learning.federation.spec.name}"],
        "exchanges": [
            _exchange(draft, learning, place, model, samples, fleet, devices)
            for place in range(len(learning.methods[0].exchanges))
            for model in range(len(learning.nets))
        ],
    }
    if layers:
        found["layers"] = [
            {
                "model": net.name,
                "modules": [vars(one) for one in modules(net)],
                "fvcore_flops": fvcore_flops(net),
                "traced_flops": traced_flops(net),
            }
            for net in learning.nets
        ]
    return found


def _exchange(
    draft: Draft,
    learning: Learning,
    place: int,
    model: int,
    samples: int,
    fleet: Fleet,
    devices: Mapping[str, Device],
) -> dict[str, Any]:
    method, net = learning.methods[model], learning.nets[model]
    exchange = method.exchanges[place]
    steps = phase_steps(exchange, samples, draft.scenario.local.batch_size)
    wire = Sizes(learning.down.sizes, learning.up.sizes)
    cost = trace(method, exchange, net, [steps], wire).cost(steps)
    flops = dict.fromkeys((FORWARD, GRAD_INPUT, GRAD_WEIGHT, UPDATE), 0)
    for kernel, count in cost.work:
        flops[kernel.role] += kernel.flops * count
    return {
        "exchange": exchange.name,
        "when": _when(exchange),
        "model": net.name,
        "samples": samples,
        "steps": sum(count for counts in steps for count in counts.values()),
        "down": dict(cost.down),
        "up": dict(cost.up),
        "flops": flops,
        "kernels": cost.work.launches,
        "moved_bytes": cost.work.bytes,
        "peak": dict(cost.peak),
        "devices": [_row(name, one, cost, _link(fleet, name)) for name, one in devices.items()],
    }


def _when(exchange: Exchange) -> str:
    """In words: "every round", "every 10 rounds, all clients", "once at the end, all clients"."""
    when = exchange.when
    words = {"start": "once at the start", "end": "once at the end"}.get(when.at) or (
        "every round" if when.every == 1 else f"every {when.every} rounds"
    )
    return words + (", all clients" if exchange.who == "all" else "")


def _link(fleet: Fleet, name: str) -> Link:
    """The link of the fleet's first member with that device; of the first member where none has it."""
    member = next((one for one in fleet.members if one.device == name), fleet.members[0])
    return fleet.links[member.link]


def _row(name: str, found: Device, cost: Cost, link: Link) -> dict[str, Any]:
    room = found.usable_memory_bytes
    row: dict[str, Any] = {
        "device": name,
        "link": link.title,
        "unknown": "",
        "down_s": None,
        "compute_s": None,
        "up_s": None,
        "joules": None,
        "memory_share": cost.peak_bytes / room if room else None,
        "fits": None if room is None else cost.peak_bytes <= room,
    }
    try:
        price = Pricer(name, found).price(cost, link)
    except UserError as error:
        return {**row, "unknown": error.what}
    return {
        **row,
        "down_s": price.down_s,
        "compute_s": price.compute_s,
        "up_s": price.up_s,
        "joules": price.joules,
    }
