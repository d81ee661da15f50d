"""Flower: FedAvg on its simulation engine, with two Ray actors of one CPU each."""

from collections.abc import Iterable
from typing import Any

import flower_client
import flower_template
from flwr.app import ArrayRecord, Context, Message
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from models import build, count
from reporting import Laps, parser
from workloads import Workload, read_workload

_CPUS = 2
_CLIENTS = {"template": flower_template.app, "tuned": flower_client.app}


class Timed(FedAvg):
    """FedAvg that records when its rounds end and how many steps they took."""

    def __init__(self, laps: Laps, workload: Workload) -> None:
        # Wait for all nodes: otherwise the first cohort is drawn from those that have connected so far.
        super().__init__(
            fraction_train=workload.cohort / workload.clients,
            fraction_evaluate=0.0,
            min_train_nodes=workload.cohort,
            min_available_nodes=workload.clients,
        )
        self.laps = laps
        self.steps = 0
        self.loss = 0.0

    def aggregate_train(self, server_round: int, replies: Iterable[Message]) -> tuple[Any, Any]:
        """Merges a round; a failed client fails the benchmark."""
        replies = list(replies)
        failed = [one.error.reason for one in replies if one.has_error()]
        if failed:
            raise RuntimeError(failed[0])
        arrays, metrics = super().aggregate_train(server_round, replies)
        self.steps += sum(int(one.content["metrics"]["steps"]) for one in replies)
        self.loss = float(metrics["loss"])
        self.laps.lap()
        return arrays, metrics


def main() -> None:
    """Runs the workload named in the environment."""
    arguments = parser()
    arguments.add_argument("--client", choices=_CLIENTS, default="template")
    given = arguments.parse_args()
    workload = read_workload()
    model = build(workload.model)
    laps = Laps(given.launched)
    strategy = Timed(laps, workload)
    server = ServerApp()

    @server.main()
    def serve(grid: Grid, context: Context) -> None:  # noqa: ARG001 - Flower's signature
        strategy.start(grid=grid, initial_arrays=ArrayRecord(model.state_dict()), num_rounds=given.rounds)

    run_simulation(
        server_app=server,
        client_app=_CLIENTS[given.client],
        num_supernodes=workload.clients,
        backend_config={
            "init_args": {"num_cpus": _CPUS},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    laps.report(loss=strategy.loss, steps=strategy.steps, parameters=count(model))


if __name__ == "__main__":
    main()
