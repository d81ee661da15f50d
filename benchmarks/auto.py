"""What the engine auto chooses for runs, beside what is fastest on this machine.

    python benchmarks/auto.py [SCENARIO]... [--grid] [--data-dir DIR] [--seconds S] [--out FILE]

Microseconds a client's step are of the processor's time, in one process, of the first round's jobs: one after
another (``loop``) and stacked (``vmapped``). Runs whose steps are alike are measured once. ``--grid`` adds
runs that are not shipped: several models, batch sizes and numbers of clients.
"""

import argparse
import datetime as dt
import itertools
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import torch

from edgefl.compute.engines.auto import Params
from edgefl.compute.job import Engine
from edgefl.core import catalogue
from edgefl.core.drafts import Draft
from edgefl.core.errors import UserError
from edgefl.core.event import TrainingJob
from edgefl.core.host import processor
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs import auto
from edgefl.runs.context import Context
from edgefl.runs.group import drafts
from edgefl.runs.states import States

BASE: dict[str, Any] = {
    "task": {"dataset": "digits", "clients": 50, "partition": "iid"},
    "method": "fedavg",
    "fleet": "home-lab",
    "local": {"epochs": 1, "optimizer": {"name": "sgd", "lr": 0.05}},
}


def shipped(names: Sequence[str]) -> Iterator[tuple[str, Draft]]:
    """The runs of scenarios; those without data cannot be trained."""
    for name in names or catalogue.entries("scenarios"):
        for draft in drafts(name):
            if draft.scenario.task.samples is None:
                yield name, draft


def grid() -> Iterator[tuple[str, Draft]]:
    """Runs on digits: model x batch size x clients in a round."""
    mlps = [{"name": "mlp", "hidden": hidden} for hidden in ([16], [64], [256], [256, 256], [1024])]
    nets = [{"name": "spherefed_convnet"}, {"name": "mobilenet_v2"}]
    sizes: list[tuple[dict[str, Any], int]] = [
        *itertools.product(mlps, (4, 16, 32)),
        *itertools.product(nets, (8, 29)),
    ]
    for (model, batch_size), participants in itertools.product(sizes, (2, 8, 32)):
        name = " ".join([model["name"], *map(str, model.get("hidden", ()))])
        title = f"{name}, batch {batch_size}, {participants} clients"
        server = {"rounds": 1, "participants": participants}
        local = {**BASE["local"], "batch_size": batch_size}
        (draft,) = drafts({**BASE, "name": title, "model": model, "local": local, "server": server})
        yield "grid", draft


def step_s(engine: Engine, jobs: Sequence[TrainingJob], least_s: float) -> float:
    """Seconds of the processor's time a client's step, the faster of two tries after a step to warm up."""

    def timed(limit: int) -> float:
        begun = [replace(job, steps=min(job.steps, limit)) for job in jobs]
        start = time.process_time()
        for _ in engine.outcomes(begun):
            pass
        return time.process_time() - start

    timed(1)
    limit = max(1, int(least_s / max(timed(1), 1e-6)))
    limit = min(limit, max(job.steps for job in jobs))
    try:
        return min(timed(limit), timed(limit)) / sum(min(limit, job.steps) for job in jobs)
    finally:
        engine.close()


def built(context: Context, name: str) -> Engine:
    """An engine as it is by default, on the CPU."""
    module = catalogue.load("engines", name)
    engine: Engine = module.Params(device="cpu").build(context)
    return engine


def row(draft: Draft, access: DataAccess, least_s: float, seen: set[Any]) -> list[str] | None:
    """What was chosen and measured for a run; None if one like it was measured."""
    planned = plan(draft, access)
    with tempfile.TemporaryDirectory() as folder:
        context = Context(planned, States(Path(folder), 10**9), torch.device("cpu"))
        choice = auto.choose(context, Params(workers=1))
        shape = choice.shape
        alike = (draft.scenario.method.name, shape.kernels, round(shape.kernel_bytes, -3), shape.together)
        if alike in seen:
            return None
        seen.add(alike)
        cohort = auto.cohort_of(context)
        loop_s = step_s(built(context, "loop"), cohort[:3], least_s)
        stacked_s = step_s(built(context, "vmapped"), cohort[:64], least_s)
    chosen_s = {"loop": loop_s, "vmapped": stacked_s}[choice.engine["name"]]
    lost = chosen_s / min(loop_s, stacked_s)
    return [
        f"{shape.kernels:.0f}", f"{shape.kernel_bytes / 1e3:.1f}", f"{shape.together:.1f}",
        f"{1e6 * loop_s:.0f}", f"{1e6 * stacked_s:.0f}", choice.engine["name"], f"{lost:.2f}",
    ]  # fmt: skip


def _verdict(lost: Sequence[float]) -> str:
    """How often the choice was the fastest, given its time over the faster engine's."""
    near, far = sum(one <= 1.1 for one in lost), sum(one <= 1.5 for one in lost)
    often = f"of {len(lost)} runs, {near} within 10% of the faster engine, {far} within 50%"
    return f"{often}; at most {max(lost):.2f} times its time, {sum(lost) / len(lost):.2f} on average"


def main() -> None:
    """Prints the table, and how often the choice was the fastest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="default: all that are shipped")
    parser.add_argument("--grid", action="store_true", help="also runs that are not shipped")
    parser.add_argument("--data-dir", type=Path, help="the folder of the datasets' files")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each try takes, at least")
    parser.add_argument("--out", type=Path, help="also write the results to this file")
    given = parser.parse_args()
    access = DataAccess(given.data_dir, download=False, need="pixels")
    head = [
        "scenario",
        "run",
        "kernels",
        "kB each",
        "together",
        "loop us",
        "vmapped us",
        "chosen",
        "x fastest",
    ]
    rows, seen = [head], set[Any]()
    for name, draft in (*shipped(given.scenarios), *(grid() if given.grid else ())):
        try:
            found = row(draft, access, given.seconds, seen)
        except UserError as error:
            print(f"{name}: left out: {error.what}", file=sys.stderr)
            continue
        if found:
            rows.append([name, draft.scenario.name[:32], *found])
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lost = [float(each[-1]) for each in rows[1:]]
    lines = [
        f"{processor() or platform.machine()}, {psutil.cpu_count()} cores, torch {torch.__version__}",
        f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, load {psutil.getloadavg()[0]:.1f}",
        "",
        *(
            "  ".join(cell.ljust(width) for cell, width in zip(each, widths, strict=True)).rstrip()
            for each in rows
        ),
        "",
        _verdict(lost),
    ]
    print("\n".join(lines))
    if given.out:
        given.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
