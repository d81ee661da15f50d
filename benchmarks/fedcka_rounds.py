"""FedCKA's Table 4: seconds a round of five methods as ratios to FedAvg, beside published and traced ones.

    python benchmarks/fedcka_rounds.py [--data-dir DIR] [--repeats N] [--rounds N]

FedCKA's CNN and settings (10 clients, all in every round, batches of 128, momentum 0.9), one epoch on 512
images of CIFAR-10 a client. Runs take turns; a run's first round, in which no client has a previous model, is
left out. Seconds are of this machine, one thread, merging included: wall time, and the processor's, which
other programs disturb less. Ratios are medians over repeats, each to the FedAvg of its repeat. "titan-v" is
the cost model's time on the paper's card.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import edgefl
from edgefl.core.host import processor

_COMPONENTS = Path(__file__).parent / "components"
HEADS = ("method", "s a round", "ratio (least to most)", "processor's", "FLOPs", "titan-v", "published")
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
    """Wall seconds, and seconds of the processor, at which rounds end."""

    def __init__(self) -> None:
        self.ends: list[tuple[float, float]] = []

    def told(self, so_far: edgefl.Progress) -> None:
        """Notes both."""
        if so_far.what == "merged":
            self.ends.append((time.perf_counter(), time.process_time()))


class Measured(NamedTuple):
    """A round: seconds here and of the processor, FLOPs, and seconds of work on the modelled card."""

    wall_s: float
    cpu_s: float
    flops: float
    modelled_s: float


def measured(run: Mapping[str, Any], data_dir: Path | None) -> Measured:
    """A round of a scenario, the mean of all but the first."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        result = edgefl.run(run, engine="loop", data_dir=data_dir, out=Path(folder) / "run", callbacks=clock)
        jobs = result.runs[0].table("jobs")
    rounds = len(clock.ends) - 1
    wall_s, cpu_s = ((end - start) / rounds for start, end in zip(clock.ends[0], clock.ends[-1], strict=True))
    last = [job for job in jobs if job["round"] == rounds]
    return Measured(wall_s, cpu_s, *(sum(job[name] for job in last) for name in ("flops", "work_s")))


def rows(repeats: Sequence[Mapping[str, Measured]]) -> Iterator[Sequence[str]]:
    """A row for each method, of what was measured in each repeat."""
    for method, published in PUBLISHED.items():
        found, plain = [each[method] for each in repeats], [each["fedavg"] for each in repeats]
        pairs = list(zip(found, plain, strict=True))
        wall = [own.wall_s / other.wall_s for own, other in pairs]
        yield (
            method,
            f"{median(each.wall_s for each in found):.2f}",
            f"{median(wall):.2f} ({min(wall):.2f} to {max(wall):.2f})",
            f"{median(own.cpu_s / other.cpu_s for own, other in pairs):.2f}",
            f"{found[0].flops / plain[0].flops:.2f}",
            f"{found[0].modelled_s / plain[0].modelled_s:.2f}",
            f"{published / PUBLISHED['fedavg']:.2f}",
        )


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
        {name: measured(scenario(name, given.rounds + 1), given.data_dir) for name in PUBLISHED}
        for _ in range(given.repeats)
    ]
    print(f"{processor()}, {os.cpu_count()} cores, one thread; {given.repeats} x {given.rounds} rounds\n")
    for row in (HEADS, ["---"] * len(HEADS), *rows(repeats)):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
