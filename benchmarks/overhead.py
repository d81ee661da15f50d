"""The share of a run's wall time spent on world, ledger and store rather than on learning.

Runs a shipped scenario and prints, for each of its runs, the share of wall time outside training, merging and
evaluation. CIFAR-10 is read from the folder in EDGEFL_DATA.

    python benchmarks/overhead.py [SCENARIO] [KEY=VALUE]...
"""

import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import edgefl


def main(arguments: list[str]) -> None:
    """Prints one line for each run."""
    scenario, *overrides = arguments or ["protocols-cifar10"]
    with tempfile.TemporaryDirectory() as folder:
        result = edgefl.run(
            scenario, overrides=overrides, data_dir=os.environ.get("EDGEFL_DATA"), out=Path(folder) / "run"
        )
        print(f"{scenario} {' '.join(overrides)} on {platform.machine()}, {os.cpu_count()} cores, one thread")
        for run in result.runs:
            host = json.loads((run.folder / "host.json").read_text())
            wall_s, learning_s = host["host_wall_s"], sum(host["host_s"].values())
            events = len(run.table("events"))
            print(
                f"  {run.name:14} wall {wall_s:7.2f} s  learning {learning_s:7.2f} s  "
                f"world + ledger + store {1 - learning_s / wall_s:6.2%}  ({events:,} events)"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
