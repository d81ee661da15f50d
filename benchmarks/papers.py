"""The papers' settings at the scale of two cores: three seeds of what ``docs/papers.md`` shows.

    python benchmarks/papers.py [--data-dir DIR] [--only NAME]... [--processes N] [--out FILE]

Each run is a file of ``scenarios/papers`` at ``scale=2core``, with the settings named here; everything takes
three hours of processor time. FILE (JSON) has every run and is written whenever one ends; a run that is there
is not done again. Beside it are the tables in Markdown. No figure depends on the machine's speed, but for the
processor's time.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from methods import end_with_parent

import edgefl
from edgefl.analysis.published import Ours
from edgefl.analysis.settings import dotted
from edgefl.core.drafts import load
from edgefl.core.host import processor
from edgefl.core.scenario import told

_OUT = Path(__file__).parent / "results" / "papers.json"
_SEEDS = (1, 2, 3)
_SPHEREFED_ROWS = (
    {"method": "fedavg", "local.optimizer.lr": 0.1},
    {"method": "spherefed", "local.optimizer.lr": 0.5},
)

# Name -> (file, what its runs override together, its rows: name -> what each overrides).
EXPERIMENTS: dict[str, tuple[str, dict[str, Any], dict[str, dict[str, Any]]]] = {
    "FedClassAvg, Table 2, Dir(0.5)": (
        "fedclassavg-table2-cifar10",
        {"task.partition": {"name": "dirichlet_equal", "alpha": 0.5}},
        {
            "local training": {"method": "local"},
            "FedProto": {"method": "fedproto"},
            "KT-pFL": {"method": {"name": "ktpfl", "distill_epochs": 1}},
            "FedClassAvg": {"method": {"name": "fedclassavg", "rho": 0.1}},
        },
    ),
    # Why KT-pFL is ahead in the table above: fewer public images, or more of one's own, make steps alike.
    "FedClassAvg, Table 2, Dir(0.5), other steps": (
        "fedclassavg-table2-cifar10",
        {"task.partition": {"name": "dirichlet_equal", "alpha": 0.5}},
        {
            "KT-pFL, 60 public images": {
                "method": {"name": "ktpfl", "distill_epochs": 1}, "task.public.samples": 60,
            },
            "FedClassAvg, two local epochs": {
                "method": {"name": "fedclassavg", "rho": 0.1}, "local.epochs": 2,
            },
        },
    ),
    **{
        f"FedCKA, Table 2, alpha = {alpha}": (
            "fedcka-table2",
            {"sweep": None, "task.partition.alpha": alpha},
            {"FedAvg": {"method": "fedavg"}, "FedCKA": {"method": {"name": "fedcka", "mu": mu}}},
        )
        for alpha, mu in ((5.0, 5), (1.0, 3), (0.1, 3))
    },
    "FLex&Chill, Table 1": (
        "flexchill-table1-cifar10",
        {},
        {f"T = {t}": {"method.temperature": t} for t in (4.0, 1.0, 0.05)},
    ),
    "FedNTD, Table 8, E = 1": (
        "fedntd-table8",
        {"local.epochs": 1},
        {"FedAvg": {"method": "fedavg"}, "FedNTD": {"method": "fedntd"}},
    ),
    "SphereFed, Table 2, on CIFAR-10": (
        "spherefed-table2-mobilenet-v2",
        {
            "task.dataset": "cifar10", "task.share": 0.1,
            "task.partition": {"name": "dirichlet", "alpha": 0.5},
            "local.epochs": 2, "local.steps": None, "server.rounds": 4, "evaluate.every": 1,
        },
        {
            f"{name}, {row['method']}": {"model": model, **row}
            for name, model in {
                "ConvNet": {"name": "spherefed_convnet", "head_bias": False},
                "ResNet-18": {"name": "resnet18", "stem": "imagenet", "norm": "group", "head_bias": False},
                "MobileNetV2": {"name": "mobilenet_v2", "stem": "imagenet", "head_bias": False},
            }.items()
            for row in _SPHEREFED_ROWS
        },
    ),
}  # fmt: skip


def run(experiment: str, row: str, seed: int, data_dir: Path | None) -> dict[str, Any]:
    """One run.

    Returns:
        ``curve``: the accuracy after each evaluation, [round, accuracy]; ``before``: the accuracy before the
        exchanges at the end, null where there are none; ``cpu_s``: the processor's time.
    """
    start = time.process_time()
    file, common, rows = EXPERIMENTS[experiment]
    with tempfile.TemporaryDirectory() as folder:
        result = edgefl.run(
            f"papers/{file}", overrides={"scale": "2core", **common, **rows[row], "seed": seed},
            engine="loop", data_dir=data_dir, offline=True, out=Path(folder) / "run", progress=False,
        )  # fmt: skip
        (one,) = result.runs
        summary = one.summary()
        curve = [[each["round"] + 1, round(each["accuracy"], 4)] for each in one.table("evaluations")]
    (accuracy,) = summary.accuracy.values()
    return {
        "experiment": experiment, "row": row, "seed": seed, "curve": curve, "before": accuracy.before,
        "status": one.status, "reason": one.reason, "cpu_s": round(time.process_time() - start, 1),
    }  # fmt: skip


def published(experiment: str, row: str) -> float | None:
    """The accuracy that the paper prints for a row; None where it prints none for these settings."""
    file, common, rows = EXPERIMENTS[experiment]
    given = {"scale": "2core", **common, **rows[row]}
    path = Path(__file__).parents[1] / "scenarios" / "papers" / f"{file}.yaml"
    (draft,) = load(path, [f"{key}={json.dumps(value)}" for key, value in given.items()])
    scenario = draft.scenario
    ours = Ours(scenario.name, None, dotted(scenario.resolved()), {})
    found = [told(one) for one in scenario.published.runs] if scenario.published else []
    return next((figures["accuracy"] for settings, figures in found if ours.has(settings)), None)


def tables(runs: Sequence[Mapping[str, Any]]) -> str:
    """Mean and standard deviation over the seeds that have run, beside the published figure, in Markdown."""
    lines = ["| table | run | published | here | seeds |", "| --- | --- | --- | --- | --- |"]
    for experiment, (_, _, rows) in EXPERIMENTS.items():
        for row in rows:
            mine = [one for one in runs if (one["experiment"], one["row"]) == (experiment, row)]
            ends = [one["curve"][-1][1] for one in mine if one["status"] == "done"]
            before = [one["before"] for one in mine if one["before"] is not None]
            here = _spread(ends) + (f", before its calibration {_spread(before)}" if before else "")
            here += f"; {len(mine) - len(ends)} diverged" if len(ends) < len(mine) else ""
            paper = published(experiment, row)
            shown = "-" if paper is None else f"{100 * paper:.1f}"
            lines.append(f"| {experiment} | {row} | {shown} | {here} | {len(mine)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    spread = f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.1f}{spread}"


def main() -> None:
    """Does what is missing and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("EDGEFL_DATA"))
    parser.add_argument("--only", action="append", choices=EXPERIMENTS, metavar="NAME", help="all by default")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE")
    given = parser.parse_args()
    done = json.loads(given.out.read_text(encoding="utf-8"))["runs"] if given.out.exists() else []
    known = {(one["experiment"], one["row"], one["seed"]) for one in done}
    # All rows of a seed before the next seed: what is cut short can be compared.
    todo = [
        (experiment, row, seed)
        for seed in _SEEDS
        for experiment in given.only or EXPERIMENTS
        for row in EXPERIMENTS[experiment][2]
        if (experiment, row, seed) not in known
    ]
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.processes, mp_context=fresh, initializer=end_with_parent) as pool:
        for future in as_completed([pool.submit(run, *one, given.data_dir) for one in todo]):
            done.append(future.result())
            one = done[-1]
            last = f"{100 * one['curve'][-1][1]:.1f}%" if one["curve"] else one["reason"]
            print(
                f"{one['experiment']}: {one['row']}, seed {one['seed']}: {last}, {one['cpu_s']} s", flush=True
            )
            lines = ",\n".join(json.dumps(each) for each in done)
            given.out.write_text(
                f'{{"processor": {json.dumps(processor())}, "runs": [\n{lines}\n]}}\n', encoding="utf-8"
            )
            given.out.with_suffix(".md").write_text(tables(done) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
