"""Runs of several seeds as a table: mean and standard deviation of what each policy took to reach the target.

    edgefl compare RUN... --target ACCURACY --json | python benchmarks/policies.py

All runs are of one fleet and one dataset; runs of one name differ in their seeds. Failed runs are left out.
"""

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

Run = dict[str, Any]
HEADS = (
    "policy",
    "reached by",
    "time, s",
    "faster than sync",
    "traffic, MB",
    "energy, J",
    "accuracy at the end, %",
    "wasted traffic",
    "wasted client time",
    "wasted energy",
)


def rounded(number: float, digits: int) -> str:
    """A number to some significant digits, without an exponent."""
    return f"{float(f'{number:.{digits}g}'):,g}"


def spread(values: Iterable[float | None]) -> str:
    """Mean and standard deviation over seeds; one of unknown values is unknown."""
    numbers = list(values)
    if not numbers:
        return "-"
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return "unknown"
    mean = rounded(statistics.mean(known), 3)
    return f"{mean} ± {rounded(statistics.stdev(known), 2)}" if len(set(known)) > 1 else mean


def share(runs: list[Run], wasted: Callable[[Run], float | None], whole: Callable[[Run], float]) -> str:
    """A wasted quantity in percent of the whole, as ``spread``."""
    parts = [(wasted(run), whole(run)) for run in runs]
    text = spread(None if part is None or not total else 100 * part / total for part, total in parts)
    return text if text in {"-", "unknown"} else f"{text} %"


def row(name: str, runs: list[Run], sync_s: dict[int, float]) -> list[str]:
    """A policy's row, of one run for each seed."""
    reached = [(run["seed"], run["target"]["global"]) for run in runs if run["target"]["global"]]
    gains = [f"{rounded(sync_s[seed] / hit['t_s'], 2)}x" for seed, hit in reached if seed in sync_s]
    return [
        name,
        f"{len(reached)} of {len(runs)}",
        spread(hit["t_s"] for _, hit in reached),
        ", ".join(gains),
        spread(hit["bytes"] / 1e6 for _, hit in reached),
        spread(hit["joules"] if hit["energy_known"] else None for _, hit in reached),
        spread(100 * run["accuracy"]["global"]["value"] for run in runs),
        share(
            runs,
            lambda run: run["wasted"]["down_bytes"] + run["wasted"]["up_bytes"],
            lambda run: run["down_bytes"] + run["up_bytes"],
        ),
        share(runs, lambda run: run["wasted"]["client_s"], lambda run: run["client_s"]),
        share(runs, lambda run: run["wasted"]["joules"], lambda run: run["joules"]),
    ]


def main() -> None:
    """Prints the table in Markdown."""
    by_name: dict[str, list[Run]] = defaultdict(list)
    for run in json.load(sys.stdin)["runs"]:
        if run["status"] == "done":
            by_name[run["name"]].append(run)
    sync_s = {
        run["seed"]: run["target"]["global"]["t_s"] for run in by_name["sync"] if run["target"]["global"]
    }
    print(f"| {' | '.join(HEADS)} |", f"|{'---|' * len(HEADS)}", sep="\n")
    for name, runs in by_name.items():
        print(f"| {' | '.join(row(name, runs, sync_s))} |")


if __name__ == "__main__":
    main()
