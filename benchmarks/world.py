"""Jobs a second of the null engine, beside a bare SimPy loop with three timeouts a job in the same process.

    python benchmarks/world.py [PART]... [--repeats K] [--scale SHARE] [--out FILE]

Planning is apart. What is counted are the rounds: the world, the ledger and the store, from the first
dispatch to the last commit of the run's directory. Runs and bare loops take turns, K times; the fastest of
each counts. Rates and ratios are of the processor's time, because other programs share the machine; the time
on the wall stands beside it.
"""

import argparse
import datetime as dt
import math
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import simpy

from edgefl.core.host import processor
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.runs.describing import describe
from edgefl.runs.group import drafts
from edgefl.runs.run import RunInProgress
from edgefl.store.writer import Store
from edgefl.trackers import Callbacks
from edgefl.world.pool import Flow, Pool

MOVES: dict[str, Any] = {"availability": {"name": "markov", "on": "2 h", "off": "4 h"}}
FAILS: dict[str, Any] = {**MOVES, "failures": {"crash": 0.02, "corrupt": 0.02, "timeout": "10 min"}}
# All that may happen to a job at once.
EVERYTHING: dict[str, Any] = {
    **FAILS,
    "on_leave": "pause",
    "speed": ["thermal", "load"],
    "jitter": {"name": "lognormal", "sigma": 0.3},
}
DEADLINE = {"name": "deadline", "quantile": 0.8}
MILLION_S, MILLION_BYTES = 120.0, 1e9
LINKS = {"uplink": "100 Mbit/s", "downlink": "1 Gbit/s"}
ASSUMED = {"status": "assumed", "source": "benchmark"}
ACCESS = {"down": {"value": "20 Mbit/s", **ASSUMED}, "up": {"value": "5 Mbit/s", **ASSUMED}}
HOMES: dict[str, Any] = {
    "members": [{"device": "phone-mid", "link": "4g", "cell": "home"}],
    "cells": {"home": {**ACCESS, "clients": 4}},
}


def _series(low: float, high: float) -> str:
    """A rate for each of 600 seconds, as in a trace's rows."""
    return " ".join(f"{second},{low + (high - low) * (second * 37 % 101) / 100}" for second in range(601))


MOBILE: dict[str, Any] = {
    "link": "mobile",
    "links": {
        "mobile": {
            "title": "a trace",
            "trace": {"rows": [{"down": _series(1e6, 5e7), "up": _series(1e5, 2e7)}]},
            "latency": {"value": "50 ms", **ASSUMED},
            "radio": {"status": "unknown", "source": "benchmark"},
        }
    },
}
FLOWS_S = 3.0


@dataclass(frozen=True)
class Case:
    """One run.

    Attributes:
        name: in the table.
        clients, participants: how many.
        rounds: how many, before ``--scale``.
        policy: the server's.
        fleet: keys that are added to ``city-phones``.
        server: keys that are added to the server's.
        required: jobs a second.
    """

    name: str
    clients: int
    participants: int
    rounds: int
    policy: Any = "sync"
    fleet: dict[str, Any] = field(default_factory=dict)
    required: float | None = None
    server: dict[str, Any] = field(default_factory=dict)


PARTS: dict[str, tuple[Case, ...]] = {
    "sync": (
        Case("sync, 1,000 at a time", 10_000, 1000, 300, required=15_000),
        Case("sync, 100 at a time", 10_000, 100, 3000, required=15_000),
    ),
    "dynamic": (
        Case("deadline, markov, failures, 1,000", 10_000, 1000, 100, DEADLINE, FAILS),
        Case("deadline, markov, failures, 100", 10_000, 100, 1000, DEADLINE, FAILS),
    ),
    "async": (
        Case("fedbuff, buffer of 10, 100 at a time", 10_000, 100, 3000, "fedbuff", required=7_000),
        Case("fedasync, 100 at a time", 10_000, 100, 10_000, "fedasync", required=7_000),
        Case("fedbuff, markov, failures, 100", 10_000, 100, 2000, "fedbuff", FAILS),
    ),
    "everything": (
        Case("sync, everything on, 1,000", 10_000, 1000, 60, "sync", EVERYTHING, 4_000),
        Case("deadline, everything on, 1,000", 10_000, 1000, 60, DEADLINE, EVERYTHING, 4_000),
        Case("fedbuff, everything on, 100", 10_000, 100, 1000, "fedbuff", EVERYTHING, 4_000),
        Case("fedasync, everything on, 100", 10_000, 100, 3000, "fedasync", EVERYTHING, 4_000),
        Case("server's link, everything on, 1,000", 10_000, 1000, 30, "sync", EVERYTHING, 4_000, LINKS),
    ),
    "population": tuple(
        Case(f"{what}, 1,000 of {clients:,}", clients, 1000, 300, "sync", fleet)
        for what, fleet in (("always", {}), ("markov", MOVES))
        for clients in (10_000, 100_000, 1_000_000)
    ),
    "shared": (
        Case("server's link, 1,000 at a time", 10_000, 1000, 100, required=5_000, server=LINKS),
        Case("server's link, homes, 1,000", 10_000, 1000, 100, fleet=HOMES, server=LINKS),
        Case("server's link, traces, 1,000", 10_000, 1000, 30, fleet=MOBILE, server=LINKS),
        Case("traces, 1,000 at a time", 10_000, 1000, 100, fleet=MOBILE),
        Case("server's link, deadline, markov, failures", 10_000, 1000, 30, DEADLINE, FAILS, server=LINKS),
        Case("server's link, fedbuff, 100 at a time", 10_000, 100, 1000, "fedbuff", server=LINKS),
    ),
    "jobs": tuple(
        Case(f"sync, {rounds:,} rounds of 1,000", 10_000, 1000, rounds) for rounds in (100, 300, 1000)
    ),
}


@dataclass(frozen=True)
class Figures:
    """What one run took, in seconds: planning, writing the plan to the directory, the rounds.

    ``cpu_s`` is the processor's time for the rounds.
    """

    plan_s: float
    write_s: float
    rounds_s: float
    cpu_s: float
    jobs: int


def scenario(case: Case, scale: float) -> dict[str, Any]:
    """A case as a user would write it."""
    return {
        "name": "world",
        "seed": 7,
        "task": {
            "dataset": "digits",
            "clients": case.clients,
            "samples": {"name": "lognormal", "mu": 4, "sigma": 1},
        },
        "model": {"name": "mlp", "hidden": [64]},
        "method": "fedavg",
        "local": {"epochs": 5, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.1}},
        "fleet": {"like": "city-phones", **case.fleet},
        "server": {
            "policy": case.policy,
            "participants": case.participants,
            "rounds": max(1, round(case.rounds * scale)),
            **case.server,
        },
        "engine": "null",
    }


def planned(case: Case, scale: float) -> tuple[Planned, float]:
    """The plan of a case, and the seconds that it took."""
    start = time.perf_counter()
    (draft,) = drafts(scenario(case, scale))
    made = plan(draft, DataAccess(need="nothing"))
    return made, time.perf_counter() - start


def ran(made: Planned, plan_s: float) -> Figures:
    """Runs a plan into a new directory, as ``edgefl run --engine null`` does."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with Store.planned(run := Path(folder) / "run") as store:
            describe(made, store, "null")
        store = Store.open(run)
        began, cpu_began_s = time.perf_counter(), time.process_time()
        RunInProgress(made.plan, store, None, Callbacks()).to_end()
        ended, cpu_s = time.perf_counter(), time.process_time() - cpu_began_s
        jobs = store.reader().query("SELECT COUNT(*) AS jobs FROM jobs")[0]["jobs"]
        store.close("done")
    return Figures(plan_s, began - start, ended - began, cpu_s, jobs)


def bare(processes: int, jobs: int) -> float:
    """The processor's seconds of SimPy alone: so many processes of three timeouts, some at a time."""
    env = simpy.Environment()

    def job(delay_s: float) -> Generator[simpy.Event, Any, None]:
        for _ in range(3):
            yield env.timeout(delay_s)

    def client(delay_s: float) -> Generator[simpy.Event, Any, None]:
        for _ in range(jobs // processes):
            yield env.process(job(delay_s))

    for place in range(processes):
        env.process(client(1.0 + place / processes))
    start = time.process_time()
    env.run()
    return time.process_time() - start


def measured(case: Case, given: argparse.Namespace) -> tuple[str, ...]:
    """A row of the table; runs and bare loops take turns."""
    made, plan_s = planned(case, given.scale)
    runs, loops = [], []
    for _ in range(given.repeats):
        runs.append(ran(made, plan_s))
        loops.append(bare(case.participants, runs[-1].jobs))
    best, loop_s = min(runs, key=lambda one: one.cpu_s), min(loops)
    rate = best.jobs / best.cpu_s
    required = "" if case.required is None else f"{case.required:,.0f} {verdict(rate >= case.required)}"
    return (
        case.name,
        f"{best.jobs:,}",
        f"{plan_s:.2f}",
        f"{best.write_s:.2f}",
        f"{best.rounds_s:.2f}",
        f"{best.cpu_s:.2f}",
        f"{rate:,.0f}",
        f"{best.jobs / loop_s:,.0f}",
        f"{loop_s / best.cpu_s:.2f}",
        required,
    )


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """The rows under their heads."""
    heads = ("run", "jobs", "plan s", "write s", "rounds s", "CPU s", "jobs/s", "bare/s", "ratio", "required")
    rows = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ["<", *">" * (len(heads) - 2), "<"]
    return [
        "  ".join(
            f"{cell:{way}{width}}" for cell, way, width in zip(row, aligned, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def million() -> list[str]:
    """``edgefl run fleet-million``: wall time and peak memory of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "edgefl", "run", "fleet-million", "--out", str(out)]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        wall_s = time.perf_counter() - start
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    # Linux counts in KiB.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    took = f"{wall_s:.1f} s, peak {peak / 1e6:,.0f} MB, directory {size / 1e6:,.0f} MB"
    kept = verdict(wall_s < MILLION_S and peak < MILLION_BYTES)
    required = f"{MILLION_S:g} s and {MILLION_BYTES / 1e6:,.0f} MB"
    return [f"edgefl run fleet-million: {took}; required {required}: {kept}"]


def flows() -> list[str]:
    """10,000 concurrent flows on one link: as many starts and as many ends."""
    chance, pool = random.Random(7), Pool(1e9)  # noqa: S311 - nothing secret
    started = time.process_time()
    for _ in range(10_000):
        pool.start(Flow(None, chance.lognormvariate(14.5, 1.0)), chance.uniform(1e6, 1e7), 0.0)
    while pool.next_s < math.inf:
        pool.finish()
    took_s = time.process_time() - started
    kept = verdict(took_s < FLOWS_S)
    return [f"10,000 concurrent flows, 20,000 changes: {took_s:.2f} s; required {FLOWS_S:g} s: {kept}"]


def verdict(reached: bool) -> str:  # noqa: FBT001 - its only argument
    """Whether a requirement was met, in words."""
    return "reached" if reached else "NOT REACHED"


OTHERS = {"million": million, "flows": flows}


def main() -> None:
    """Prints one table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("parts", nargs="*", metavar="PART", help=", ".join((*PARTS, *OTHERS)))
    arguments.add_argument("--repeats", type=int, default=3)
    arguments.add_argument("--scale", type=float, default=1.0, help="share of the rounds")
    arguments.add_argument("--out", type=Path)
    given = arguments.parse_args()
    parts = given.parts or [*PARTS, *OTHERS]
    if unknown := set(parts) - {*PARTS, *OTHERS}:
        arguments.error(f"unknown: {', '.join(sorted(unknown))}")
    cores, load = psutil.cpu_count(), psutil.getloadavg()[0]
    machine = f"{processor() or platform.machine()}, {cores} cores, {platform.system()}"
    libraries = ", ".join(f"{name} {version(name)}" for name in ("simpy", "numpy", "edgefl-emulator"))
    lines = [
        f"{machine}, Python {platform.python_version()}, load before the run {load:.2f}",
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}; {libraries}",
        f"python benchmarks/world.py {' '.join(sys.argv[1:])}".rstrip(),
        "",
    ]
    # First, while this process has no children of another size.
    whole = [line for part, lines in OTHERS.items() if part in parts for line in lines()]
    rows = []
    for case in [case for part in parts if part in PARTS for case in PARTS[part]]:
        rows.append(measured(case, given))
        print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    lines += [*(table(rows) if rows else []), *whole]
    print("\n".join(lines))
    if given.out:
        given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
