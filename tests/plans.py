"""Plans built by hand, devices and links with round numbers, and a caller that answers the world."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from edgefl.core.clients import Clients
from edgefl.core.cost import ELEMENTWISE, FORWARD, Cost, Kernel, Work
from edgefl.core.devices import Battery
from edgefl.core.devices.roofline import Roofline
from edgefl.core.event import TAIL, ServerEvent
from edgefl.core.fleet import Cell, Fleet, FleetMember
from edgefl.core.link import Link
from edgefl.core.plan import Plan, Prices, Refusal
from edgefl.core.price import COLUMNS, Demand
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.scenario import Scenario
from edgefl.core.yamls import RECORDED, RESOLVED
from edgefl.world.driver import converse, simulate
from edgefl.world.job import LIVE
from edgefl.world.needs import Feedback, Merge, Need
from edgefl.world.world import World

# A transfer of a fixed time is a handshake of that time over an endless rate.
_TIMES = {"down_s": "down_delay_s", "compute_s": "work_s", "up_s": "up_delay_s"}
_DEFAULTS = {"down_bps": math.inf, "up_bps": math.inf}
_UNKNOWN = {"status": "unknown", "source": "test"}
# A battery of which nothing is known: a fleet's own numbers apply.
PHONE = Battery.model_validate({"capacity": _UNKNOWN})


def prices(exchange, clients, *, at="round", every=1, everyone=False, stateful=False, **columns) -> Prices:
    """An exchange's prices, each client a kind of its own.

    A column is a list, one number a client; a number for all of them; or 0.

    ``down_s``, ``compute_s`` and ``up_s`` are the times of a download, the work and an upload.
    """
    columns = {_TIMES.get(name, name): value for name, value in columns.items()}
    assert set(columns) <= set(COLUMNS), f"no columns: {set(columns) - set(COLUMNS)}"
    values = {
        name: np.array(
            np.broadcast_to(columns.get(name, _DEFAULTS.get(name, 0)), (clients,)).tolist(), dtype=kind
        )
        for name, kind in COLUMNS.items()
    }
    return Prices(exchange, at, every, everyone, stateful, Demand(**values))


def reasked(prices_: Prices, **columns) -> Prices:
    """Prices of which some columns are others."""
    return replace(prices_, demand=prices_.demand._replace(**columns))


def in_cells(plan_, bps, size) -> Plan:
    """A plan whose clients share cells of a rate both ways, so many each."""
    rate = {"value": bps, "status": "assumed", "source": "test"}
    cell = Cell.model_validate({"down": rate, "up": rate, "clients": size}, context=RESOLVED)
    count = len(plan_.clients)
    clients = replace(plan_.clients, cell=np.arange(count) // size, cells=("home",) * -(-count // size))
    return replace(plan_, clients=clients, fleet=plan_.fleet.model_copy(update={"cells": {"home": cell}}))


def _column(value, clients, dtype):
    return np.broadcast_to(np.asarray(value, dtype=dtype), (clients,)).copy()


def plan(
    table,
    *,
    rounds=1,
    participants=None,
    every=1,
    seed=0,
    slowdown=1.0,
    refused=(),
    jitter=None,
    policy="sync",
    params=None,
    selector="random",
    choice=None,
    until=None,
    samples=1,
    device=0,
    batteries=(PHONE,),
    throttling=(None,),
    **dynamics,
) -> Plan:
    """A plan over hand-made prices; ``refused`` are clients that are not admitted.

    ``params`` are the policy's, ``choice`` the selector's. ``device`` is each client's, an index into
    ``batteries`` and ``throttling``. ``dynamics`` are keys of the fleet: availability, on_leave, speed,
    failures.
    """
    count = len(table[0].demand.work_s)
    scenario = Scenario.model_validate(
        {
            "seed": seed,
            "task": {"dataset": "none", "clients": count},
            "model": "none",
            "method": "none",
            "fleet": "none",
            "server": {
                "until": until or {"rounds": rounds},
                "participants": participants,
                "policy": params or policy,
                "selector": choice or selector,
            },
            "evaluate": {"every": every},
        },
        context=RECORDED,
    )
    zeros = np.zeros(count, dtype=np.int64)
    admitted = np.ones(count, dtype=bool)
    admitted[list(refused)] = False
    clients = Clients(
        device=_column(device, count, np.int64),
        link=zeros,
        dtype=zeros,
        model=zeros,
        samples=_column(samples, count, np.int64),
        kind=np.arange(count),
        slowdown=_column(slowdown, count, np.float64),
        admitted=admitted,
        cell=np.full(count, -1),
        user=np.arange(count),
        devices=("board", *(f"board {nth}" for nth in range(2, len(batteries) + 1))),
        links=("cable",),
        dtypes=("fp32",),
        models=("net",),
        cells=(),
        batteries=tuple(batteries),
        throttling=tuple(throttling),
    )
    refusals = {client: Refusal("board", table[0].exchange, 2, 1, {"weights": 2}) for client in refused}
    fleet = Fleet(members=(FleetMember(device="board", link="cable"),), jitter=jitter or Fixed(), **dynamics)
    return Plan(scenario, clients, tuple(table), fleet, refusals)


def with_server(plan_: Plan, **settings) -> Plan:
    """A plan whose server has other settings, in base units."""
    server = plan_.scenario.server.model_copy(update=settings)
    return replace(plan_, scenario=plan_.scenario.model_copy(update={"server": server}))


def told(plan_: Plan, feedback=lambda _: Feedback()) -> tuple[list[ServerEvent], list[Need], np.ndarray]:
    """Runs a plan: the server's events, its needs, and its jobs as rows in the order in which they ended.

    ``feedback`` answers each need.
    """
    return told_all(plan_, feedback)[:3]


def told_all(
    plan_: Plan, feedback=lambda _: Feedback()
) -> tuple[list[ServerEvent], list[Need], np.ndarray, np.ndarray]:
    """As ``told``, and the tails that were settled."""
    server: list[ServerEvent] = []
    needs: list[Need] = []
    chunks: list[np.ndarray] = [np.zeros(0, dtype=LIVE)]

    def answer(need: Need) -> Feedback:
        needs.append(need)
        # They hold until the need is answered.
        _ = need.ready, need.completed, getattr(need, "totals", None)
        return feedback(need)

    tails: list[np.ndarray] = [np.zeros(0, dtype=TAIL)]
    world = simulate(plan_, server.append, chunks.append, settled=tails.append)
    converse(world, answer)
    return server, needs, np.concatenate(chunks), np.concatenate(tails)


@contextmanager
def dispatched() -> Iterator[list[int]]:
    """The numbers of the jobs that worlds dispatch meanwhile, in order."""
    numbers: list[int] = []
    dispatch = World.dispatch

    def noted(*args, **options):
        jobs = dispatch(*args, **options)
        numbers.extend(job.job for job in jobs)
        return jobs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "dispatch", noted)
        yield numbers


def facts(need: Need) -> dict[str, object]:
    """All that a need says, as values that compare; asked for before it was answered."""
    names = ("version", "round", "t_s", "ready", "completed")
    if isinstance(need, Merge):
        names += ("exchange", "merged", "weights", "scales", "correction", "slowest", "live_versions")
    else:
        names += ("totals",)
    return {name: getattr(need, name) for name in names}


def sourced(value):
    """A number as a device file has it; None is an unknown one."""
    return _UNKNOWN if value is None else {"value": value, "status": "assumed", "source": "test"}


def device(
    *,
    peak=10e9,
    dense=0.5,
    depthwise=0.1,
    elementwise=0.5,
    bandwidth=1e9,
    launch=1e-3,
    backward=None,
    idle=2.0,
    active=4.0,
    single_core=None,
    memory=1e9,
    reserved=0.0,
) -> Roofline:
    """A device with round numbers: 5 GFLOP/s dense, 1 depthwise, 1 GB/s (elementwise 0.5), 2 W and 4 W."""
    return Roofline.model_validate(
        {
            "title": "a board",
            "category": "sbc",
            "peak": {"fp32": sourced(f"{peak} FLOP/s")},
            "efficiency": {
                "dense": sourced(dense),
                "depthwise": sourced(depthwise),
                "elementwise": sourced(elementwise),
            },
            "memory_bandwidth": sourced(f"{bandwidth} B/s"),
            "launch_overhead": sourced(f"{launch} s"),
            "memory": sourced(f"{memory} B"),
            "reserved_memory": sourced(f"{reserved} B"),
            "power": {
                "idle": sourced(None if idle is None else f"{idle} W"),
                "active": sourced(None if active is None else f"{active} W"),
                **({} if single_core is None else {"single_core": sourced(f"{single_core} W")}),
            },
            **({} if backward is None else {"backward_overhead": sourced(f"{backward} s")}),
        }
    )


def board(**power) -> Roofline:
    """A device whose powers are these numbers."""
    given = device().model_dump(mode="json")
    given["power"] = {"idle": sourced(2.0), "active": sourced(4.0), **power}
    return type(device()).model_validate(given, context=RESOLVED)


def link(down=8e6, up=4e6, latency=0.5, radio=None) -> Link:
    """A link with round numbers: 1 MB/s down, 0.5 MB/s up, half a second of latency, a cable's radio."""
    return Link.model_validate(
        {
            "title": "a link",
            "down": sourced(f"{down} bit/s"),
            "up": sourced(f"{up} bit/s"),
            "latency": sourced(f"{latency} s"),
            "radio": sourced({"base": "0 W"} if radio is None else radio)
            if radio != "unknown"
            else sourced(None),
        }
    )


def kernel(kind="dense", flops=0, size=0, op="op", backward=0) -> Kernel:
    """A kernel by class, operations and bytes; ``backward`` is 1 if a backward pass begins with it."""
    return Kernel(op, kind, "forward", "", 0, 0, 0, 1, flops, size, backward=backward)


def cost(work=None, down=0, up=0) -> Cost:
    """A cost with one part each way."""
    return Cost(
        down={"w": down} if down else {},
        up={"w": up} if up else {},
        steps=((work, 1),) if work and work.kernels else (),
    )


# What a device works on: a product whose weights train, and an elementwise kernel.
JOB = cost(
    Work.of(
        [
            Kernel("mm", "dense", FORWARD, "head", 10, 100, 500, 1, 10**6, 10**6),
            kernel(ELEMENTWISE, 10**6, 10**6),
        ]
    ),
    down=10**6,
    up=10**6,
)
