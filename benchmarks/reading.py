"""What it takes to read runs back: two checkouts side by side, each on runs that it made itself.

    python benchmarks/reading.py BEFORE AFTER [--runs N] [--repeats N]

Nothing is trained: N runs of 20 rounds, and one of a million jobs. CPU seconds and peak memory of whole
commands, medians of alternate repeats, and the ratio of AFTER to BEFORE.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

LONG = ["fleet-million", "--out", "long"]
COMMANDS = {
    "compare, {n} runs": ["compare", "short"],
    "compare --json, {n} runs": ["compare", "short", "--json"],
    "runs, {n} runs": ["runs", "short"],
    "report, {n} runs": ["report", "short", "--out", "page.html", "--force"],
    "compare, a million jobs": ["compare", "long"],
    "explain, a million jobs": ["explain", "long"],
    "report, a million jobs": ["report", "long", "--out", "page.html", "--force"],
    "check, a million clients": ["check", "fleet-million"],
}


def command(tree: Path, folder: Path, arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and peak mebibytes of one command of a checkout."""
    process = subprocess.Popen(
        [sys.executable, "-m", "edgefl", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{tree}: edgefl {' '.join(arguments)}: {process.stderr.read().decode()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Prints a line a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs=2, type=lambda text: Path(text).resolve())
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    short = ["stragglers", "--out", "short", "--set", "engine=null", "--set", "sweep=null"]
    short += ["--seeds", str(given.runs)]
    with tempfile.TemporaryDirectory() as scratch:
        folders = [Path(scratch, name) for name in ("before", "after")]
        for tree, folder in zip(given.trees, folders, strict=True):
            folder.mkdir()
            for arguments in (short, LONG):
                command(tree, folder, ["run", *arguments])
        for title, arguments in COMMANDS.items():
            found: list[list[tuple[float, float]]] = [[], []]
            for _ in range(given.repeats):
                for values, tree, folder in zip(found, given.trees, folders, strict=True):
                    values.append(command(tree, folder, arguments))
            (cpu_a, memory_a), (cpu_b, memory_b) = (
                [median(column) for column in zip(*one, strict=True)] for one in found
            )
            print(
                f"{title.format(n=given.runs):<26} {cpu_a:6.2f} s -> {cpu_b:6.2f} s ({cpu_b / cpu_a:.2f}), "
                f"{memory_a:5.0f} MiB -> {memory_b:5.0f} MiB ({memory_b / memory_a:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
