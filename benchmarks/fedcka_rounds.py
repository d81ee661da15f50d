"""FedCKA's Table 4: seconds a round of five methods as ratios to FedAvg, beside published and traced ones.

    python benchmarks/fedcka_rounds.py [--data-dir DIR] [--repeats N] [--rounds N]

FedCKA's CNN and settings (10 clients, all in every round, batches of 128, momentum 0.9), one epoch on 512
images of CIFAR-10 a client. Runs take turns; a run's first round, in which no client has a previous model, is
left out. Seconds are wall time on one thread of this machine, merging included. Ratios are medians over
repeats, each to the FedAvg of its repeat. "titan-v" is the cost model's time on the paper's card.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import edgefl
from edgefl.core.host import processor

_COMPONENTS = Path(__file__).parent / "components"
# method -> the paper's seconds a round
PUBLISHED = {"fedavg": 54.82, "scaffold": 57.19, "fedprox": 57.20, "moon": 97.58, "fedcka": 104.17}


def scenario(method: str, rounds: int) -> dict[str, Any]:
    """A run of FedCKA's settings with little data."""
    optimizer = {"name": "sgd", "lr": 0.01, "momentum": 0.9, "weight_decay": 1e-5}
    return {
        "name": method,
        "task": {"dataset": {"name": "cifar10_part", "train": 5120, "test": 100}, "clients": 10},
        "model": "fedcka_cnn",
        "method": method,
        "local": {"epochs": 1, "batch_size": 128, "optimizer": optimizer},
        "fleet": {"members": [{"device": "titan-v", "share": 1, "link": "ethernet"}]},
        "server": {"rounds": rounds},
        "evaluate": {"every": rounds, "models": ["global"]},
    }


class Clock(edgefl.Callbacks):
    """Wall seconds at which rounds end."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def merged(self, round_: int, t_s: float, loss: float | None) -> None:
        """Notes the time."""
        del round_, t_s, loss
        self.ends.append(time.perf_counter())


def measured(method: str, rounds: int, data_dir: Path | None) -> tuple[float, int, float]:
    """Seconds a round, and a round's FLOPs and seconds of work on the modelled card."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        result = edgefl.run(
            scenario(method, rounds + 1),
            engine="loop",
            data_dir=data_dir,
            out=Path(folder) / "run",
            callbacks=clock,
        )
        jobs = [job for job in result.runs[0].table("jobs") if job["round"] == rounds]
    seconds = (clock.ends[-1] - clock.ends[0]) / rounds
    return seconds, sum(job["flops"] for job in jobs), sum(job["work_s"] for job in jobs)


def main() -> None:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data-dir", type=Path, default=os.environ.get("EDGEFL_DATA"))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="that count, of each run")
    given = parser.parse_args()
    folders = str(_COMPONENTS), *filter(None, [os.environ.get("EDGEFL_PATH")])
    os.environ["EDGEFL_PATH"] = os.pathsep.join(folders)
    repeats = [
        {method: measured(method, given.rounds, given.data_dir) for method in PUBLISHED}
        for _ in range(given.repeats)
    ]
    print(f"{processor() or platform.machine()}, {os.cpu_count()} cores, one thread; ", end="")
    print(f"{given.repeats} repeats of {given.rounds} rounds\n")
    print("| method | s a round | ratio here (least to most) | published | FLOPs | titan-v |")
    print("|---|---|---|---|---|---|")
    for method, published in PUBLISHED.items():
        found = [repeat[method] for repeat in repeats]
        ratios = [repeat[method][0] / repeat["fedavg"][0] for repeat in repeats]
        (_, flops, modelled), (_, plain, plain_s) = found[0], repeats[0]["fedavg"]
        print(
            f"| {method} | {median(seconds for seconds, _, _ in found):.2f} "
            f"| {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
            f"| {published / PUBLISHED['fedavg']:.2f} | {flops / plain:.2f} | {modelled / plain_s:.2f} |"
        )


if __name__ == "__main__":
    main()
