"""edgefl through its public API; a round includes world, ledger, merge and store."""

import tempfile
from pathlib import Path
from typing import Any

from reporting import Laps, parser
from workloads import Workload, read_workload

import edgefl


class Timer(edgefl.Callbacks):
    """Notes when a round is merged and stored; the evaluation after the last comes later."""

    def __init__(self, laps: Laps) -> None:
        self.laps = laps
        self.loss = 0.0

    def told(self, so_far: edgefl.Progress) -> None:
        """Ends a round."""
        if so_far.what == "merged":
            self.loss = so_far.new.get("training_loss", float("nan"))
            self.laps.lap()


def scenario(workload: Workload, rounds: int) -> dict[str, Any]:
    """The workload as a user of edgefl would write it."""
    return {
        "name": workload.name,
        "seed": 1,
        "task": {"dataset": "tensors", "partition": "iid", "clients": workload.clients},
        "model": {"name": workload.model, **workload.params},
        "method": "fedavg",
        "local": {
            "epochs": workload.epochs,
            "batch_size": workload.batch_size,
            "optimizer": {"name": "sgd", "lr": workload.lr},
        },
        # A device with enough memory for every model: a refused client's work would be missing.
        "fleet": {
            "like": "home-lab",
            "members": [{"device": "laptop-cpu", "share": 1, "link": "ethernet"}],
        },
        "server": {"participants": workload.cohort, "rounds": rounds},
        "evaluate": {"every": rounds, "models": ["global"]},
    }


def engine(text: str) -> dict[str, Any]:
    """An engine such as "processes:inner=vmapped,group=25", as a scenario has it."""
    name, _, settings = text.partition(":")
    pairs = (setting.partition("=") for setting in settings.split(",") if setting)
    return {"name": name, **{key: int(value) if value.isdigit() else value for key, _, value in pairs}}


def main() -> None:
    """Runs the workload named in the environment."""
    arguments = parser()
    arguments.add_argument("--engine", default="loop", help="NAME, or NAME:KEY=VALUE,...")
    given = arguments.parse_args()
    workload = read_workload()
    timer = Timer(Laps(given.launched))
    with tempfile.TemporaryDirectory() as folder:
        result = edgefl.run(
            scenario(workload, given.rounds),
            engine=engine(given.engine),
            out=Path(folder) / "run",
            callbacks=timer,
        )
        (run,) = result.runs
        if run.status != "done":
            raise SystemExit(run.reason)
        (a_job,) = {row["steps"] for row in run.table("prices")}
        jobs = sum(row["jobs"] for row in run.table("merges"))
        sent = sum(row["bytes"] for row in run.table("payloads") if row["direction"] == "up")
    timer.laps.report(loss=timer.loss, steps=jobs * a_job, parameters=sent // 4)


if __name__ == "__main__":
    main()
