"""What checkpoints cost, and how long it takes until a run that was stopped goes on.

    python benchmarks/checkpoints.py [cost] [resume] [--rounds N] [--repeats K] [--out FILE]

Runs of W1 (see ``engines.py``) that save a checkpoint after every merge, and runs that save none before
their end, take turns in one process. The cost is told twice: as the difference of the medians of their
rounds, which is noisy on a shared machine, and as the time within the function that saves. By default a
checkpoint is saved at evaluations and every five minutes, so that these are bounds.
"""

import argparse
import datetime as dt
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parent / "peers"))

import edgefl_run
import workloads

import edgefl
from edgefl.core.host import processor
from edgefl.runs.run import RunInProgress

HERE = Path(__file__).parent
# Changes to W1's scenario; jobs that are trained ahead, and clients' states, are saved too.
COSTS: dict[str, tuple[dict[str, Any], str]] = {
    "W1": ({}, "loop"),
    "W1, ditto (each client's model)": ({"method": "ditto"}, "loop"),
    "W1, fedbuff on vmapped": (
        {"server": {"participants": 10, "policy": {"name": "fedbuff", "buffer": 10}}},
        "vmapped",
    ),
}
# One step of a small model for each of 1,000 clients.
MANY: dict[str, Any] = {
    "name": "many",
    "task": {"dataset": "digits", "clients": 1000, "partition": "iid"},
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"steps": 1, "batch_size": 1, "optimizer": {"name": "sgd", "lr": 0.01}},
    "fleet": "home-lab",
    "evaluate": {"every": 1000, "models": ["global"]},
    "checkpoint": {"minutes": 0},
}
MOST_SHARE, MOST_S = 0.02, 5.0


@dataclass
class Laps(edgefl.Callbacks):
    """Notes when something happens, and stops the run after a merge if it is told to.

    Attributes:
        stop: after so many merges.
    """

    stop: int | None = None
    begun_s: float = field(default_factory=time.perf_counter)
    at: dict[str, float] = field(default_factory=dict)
    merges: list[float] = field(default_factory=list)

    def _note(self, what: str) -> None:
        self.at[what] = time.perf_counter() - self.begun_s

    def began(self, run: Any) -> None:
        """All is read."""
        del run
        self._note("planned")

    def told(self, so_far: edgefl.Progress) -> None:
        """The engine is there, or a round is over."""
        if so_far.what == "ready":
            self._note("engine")
        if so_far.what != "merged":
            return
        self.merges.append(time.perf_counter() - self.begun_s)
        if self.stop is not None and len(self.merges) >= self.stop:
            raise KeyboardInterrupt

    @property
    def rounds(self) -> list[float]:
        """The seconds of each round but for the first."""
        return [after - before for before, after in zip(self.merges, self.merges[1:], strict=False)]


def saving() -> tuple[list[float], Callable[[], None]]:
    """The seconds of each checkpoint from now on, and what ends this."""
    found: list[float] = []
    save = RunInProgress._save  # noqa: SLF001 - what is measured

    def timed(self: RunInProgress, *given: Any, **named: Any) -> None:
        start = time.perf_counter()
        save(self, *given, **named)
        found.append(time.perf_counter() - start)

    def end() -> None:
        RunInProgress._save = save  # type: ignore[method-assign]  # noqa: SLF001

    RunInProgress._save = timed  # type: ignore[method-assign]  # noqa: SLF001
    return found, end


def w1(folder: Path, rounds: int, changes: dict[str, Any], minutes: float) -> dict[str, Any]:
    """W1's scenario with changes; its tensors are in the folder."""
    workload = workloads.WORKLOADS["W1"]
    file = folder / "W1.npz"
    if not file.exists():
        workloads.write(workload, file)
    os.environ[workloads.FILE] = str(file)
    found = {**edgefl_run.scenario(workload, rounds), **changes, "checkpoint": {"minutes": minutes}}
    return {**found, "server": {**found["server"], "rounds": rounds}}


def costs(folder: Path, rounds: int, repeats: int) -> Iterator[str]:
    """A line for each kind of run."""
    head = f"{'round, s':>9} {'with, s':>9} {'difference':>10} {'saving':>8}"
    yield f"{'a checkpoint after every merge':34} {head}"
    for name, (changes, engine) in COSTS.items():
        times: dict[float, list[float]] = {0: [], 10_000: []}
        shares = []
        for nth in range(repeats):
            for minutes in times:
                laps, (saved, end) = Laps(), saving()
                out = folder / f"{name}-{nth}-{minutes}"
                edgefl.run(w1(folder, rounds, changes, minutes), engine=engine, out=out, callbacks=laps)
                end()
                times[minutes] += laps.rounds
                if minutes == 0:
                    shares.append(median(saved) / median(laps.rounds))
        without, with_ = median(times[10_000]), median(times[0])
        share = median(shares)
        # By default ditto and fedbuff save as seldom as W1.
        verdict = "" if share < MOST_SHARE or changes else f"  MORE THAN {MOST_SHARE:.0%}"
        yield (f"{name:34} {without:9.3f} {with_:9.3f} {with_ / without - 1:10.1%} {share:8.2%}{verdict}")


def resumes(folder: Path, rounds: int) -> Iterator[str]:
    """A line for each run that is stopped in its last round but one, and resumed."""
    yield ""
    yield f"{'resumed':34} {'jobs':>8} {'loading, s':>10} {'going on, s':>11} {'a round, s':>10}"
    runs: dict[str, tuple[dict[str, Any], str, int]] = {
        "W1": (w1(folder, rounds, {}, 0), "loop", rounds),
        "1,000 clients a round": ({**MANY, "server": {"rounds": 101}}, "vmapped", 101),
    }
    for name, (scenario, engine, last) in runs.items():
        out, laps = folder / f"resumed-{name}", Laps(stop=last - 1)
        with suppress(KeyboardInterrupt):
            edgefl.run(scenario, engine=engine, out=out, callbacks=laps)
        jobs = sum(row["jobs"] for row in edgefl.open(out).runs[0].table("merges"))
        again = Laps()
        edgefl.resume(out, callbacks=again)
        # Loading is what any run does: data, the plan's net, an engine; then its past, and a round.
        round_s = median(laps.rounds)
        going_on_s = again.merges[0] - again.at["engine"] - round_s
        verdict = "" if going_on_s < MOST_S else f"  MORE THAN {MOST_S:g} s"
        yield f"{name:34} {jobs:8,} {again.at['engine']:10.2f} {going_on_s:11.2f} {round_s:10.3f}{verdict}"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="cost, resume; both by default")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="(benchmarks/results/checkpoints-DATE.txt)")
    given = parser.parse_args()
    today, parts = dt.datetime.now(dt.UTC).date(), given.parts or ["cost", "resume"]
    os.environ["EDGEFL_PATH"] = str(HERE / "components")
    lines = [f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}; {today}", ""]
    print(*lines, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        tables = {
            "cost": lambda: costs(folder, given.rounds, given.repeats),
            "resume": lambda: resumes(folder, given.rounds),
        }
        for part in parts:
            for line in tables[part]():
                print(line, flush=True)
                lines.append(line)
    out = given.out or HERE / "results" / f"checkpoints-{today}.txt"
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(any("MORE THAN" in line for line in lines))


if __name__ == "__main__":
    main()
