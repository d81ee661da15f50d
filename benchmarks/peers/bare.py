"""The baseline: federated averaging as a loop in PyTorch, with one model and no framework."""

import os
import random

import torch
from models import build, count
from reporting import Laps, parser
from torch import Tensor, nn
from training import client, train
from workloads import Tensors, read


def main() -> None:
    """Runs the workload named in the environment."""
    arguments = parser()
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--channels-last", action="store_true")
    arguments.add_argument("--halves", action="store_true", help="two processes, each with half a cohort")
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)
    tensors = read()
    model = build(tensors.workload.model)
    if given.channels_last:
        model = model.to(memory_format=torch.channels_last)
    # The halves exchange nothing: a round without a server.
    loops = 2 if given.halves else 1
    first = not given.halves or os.fork()
    laps, steps, loss = Laps(given.launched), 0, 0.0
    for _ in range(given.rounds):
        more, loss = one_round(model, tensors, tensors.workload.cohort // loops)
        steps += more * loops
        laps.lap()
    if first:
        laps.report(loss=loss, steps=steps, parameters=count(model))


def one_round(model: nn.Module, tensors: Tensors, cohort: int) -> tuple[int, float]:
    """Trains a cohort and leaves its mean in the model; returns the steps and their mean loss."""
    workload = tensors.workload
    live = [value.detach() for value in model.parameters()]
    begin = [value.clone() for value in live]
    mean = [torch.zeros_like(value) for value in live]
    steps, total = 0, torch.zeros(())
    for number in random.sample(range(workload.clients), cohort):
        _copy(live, begin)
        losses, taken = train(model, client(tensors, number), workload)
        torch._foreach_add_(mean, live, alpha=1 / cohort)
        steps, total = steps + taken, total + losses
    _copy(live, mean)
    return steps, float(total) / steps


def _copy(target: list[Tensor], source: list[Tensor]) -> None:
    torch._foreach_copy_(target, source)


if __name__ == "__main__":
    main()
