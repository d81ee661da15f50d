"""Flower's client as in its own PyTorch template: model and loader are created for each message.

The template caches the dataset, as this does, and transforms every image again in every epoch, which this
does not.
"""

from functools import cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from models import build
from torch.nn import CrossEntropyLoss
from torch.utils.data import DataLoader, TensorDataset
from training import Client, client
from workloads import Tensors, read

app = ClientApp()


@cache
def _held() -> Tensors:
    """An actor's tensors, read on its first message."""
    torch.set_num_threads(1)
    return read()


def _loader(data: Client, batch_size: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    return DataLoader(TensorDataset(data.x, data.y), batch_size=batch_size, shuffle=True)


@app.train()
def train_client(message: Message, context: Context) -> Message:
    """One client's job."""
    tensors = _held()
    workload = tensors.workload
    model = build(workload.model)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    data = client(tensors, int(context.node_config["partition-id"]))
    loader = _loader(data, workload.batch_size)
    optimizer, criterion = torch.optim.SGD(model.parameters(), lr=workload.lr), CrossEntropyLoss()
    running, steps = 0.0, 0
    for _ in range(workload.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
            steps += 1
    metrics = MetricRecord({"loss": running / steps, "steps": steps, "num-examples": len(data.y)})
    arrays = ArrayRecord(model.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
