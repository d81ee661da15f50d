"""Apple's pfl: FederatedAveraging on its SimulatedBackend, in this process."""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from models import build, count
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.pytorch import PyTorchTensorDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from reporting import Laps, parser
from torch import Tensor, nn
from training import client, epoch
from workloads import Tensors, Workload, read


class Shuffled(PyTorchTensorDataset):
    """A user's tensors in a new order every epoch; pfl's own dataset has the same batches every time."""

    def __init__(self, tensors: Tensors, user: int) -> None:
        data = client(tensors, user)
        super().__init__((data.x, data.y), user_id=str(user))
        self._workload = tensors.workload

    def iter(self, batch_size: int | None) -> Iterator[tuple[Tensor, Tensor]]:
        """One epoch. pfl passes another ``batch_size`` in evaluation, which does nothing here."""
        del batch_size
        return epoch(*self.raw_data, self._workload)


class Task(nn.Module):
    """The model with a loss, in pfl's form; counts its steps."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self.net = build(workload.model)
        self.steps = 0
        self.round_steps = 0
        self.round_loss = torch.zeros(())

    def loss(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of a batch."""
        found = F.cross_entropy(self.net(x), y)
        self.round_loss += found.detach()
        self.round_steps += 1
        return found

    def metrics(self, x: Tensor, y: Tensor) -> dict[str, Any]:  # noqa: ARG002 - pfl's signature
        """Nothing: pfl cannot skip the evaluation of iteration 0, and no contender evaluates."""
        return {"nothing": Weighted(0.0, len(y))}


class Timer(TrainingProcessCallback):
    """Records when an iteration ends."""

    def __init__(self, task: Task, laps: Laps) -> None:
        self.task = task
        self.laps = laps
        self.loss = 0.0

    def after_central_iteration(
        self,
        aggregate_metrics: Metrics,  # noqa: ARG002 - pfl's signature
        model: PyTorchModel,  # noqa: ARG002
        *,
        central_iteration: int,  # noqa: ARG002
    ) -> tuple[bool, Metrics]:
        """Ends a round; training goes on."""
        self.loss = float(self.task.round_loss) / self.task.round_steps
        self.task.steps += self.task.round_steps
        self.task.round_loss, self.task.round_steps = torch.zeros(()), 0
        self.laps.lap()
        return False, Metrics()


def main() -> None:
    """Runs the workload named in the environment."""
    arguments = parser()
    arguments.add_argument("--threads", type=int, default=1)
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)
    tensors = read()
    workload = tensors.workload
    task, laps = Task(workload), Laps(given.launched)
    timer = Timer(task, laps)
    sampler = get_user_sampler("minimize_reuse", random.sample(range(workload.clients), workload.clients))
    users = FederatedDataset(partial(Shuffled, tensors), sampler)
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=given.rounds,
            evaluation_frequency=given.rounds + 1,
            train_cohort_size=workload.cohort,
            val_cohort_size=0,
        ),
        SimulatedBackend(training_data=users, val_data=users),
        PyTorchModel(
            task,
            local_optimizer_create=partial(torch.optim.SGD, foreach=True),
            central_optimizer=torch.optim.SGD(task.parameters(), lr=1.0),
        ),
        NNTrainHyperParams(
            local_batch_size=workload.batch_size,
            local_num_epochs=workload.epochs,
            local_learning_rate=workload.lr,
        ),
        callbacks=[timer],
        send_metrics_to_platform=False,
    )
    laps.report(loss=timer.loss, steps=task.steps, parameters=count(task.net))


if __name__ == "__main__":
    main()
