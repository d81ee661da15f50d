"""Flower's client, in a module of its own, which Ray's actors import once.

Functions of the main script would be sent again with every message.
"""

from functools import cache

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from models import build
from torch import nn
from training import client, train
from workloads import Tensors, read

app = ClientApp()


@cache
def _held() -> tuple[Tensors, nn.Module]:
    """An actor's tensors and model, created on its first message."""
    torch.set_num_threads(1)
    tensors = read()
    return tensors, build(tensors.workload.model)


@app.train()
def train_client(message: Message, context: Context) -> Message:
    """One client's job."""
    tensors, model = _held()
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    data = client(tensors, int(context.node_config["partition-id"]))
    losses, steps = train(model, data, tensors.workload)
    metrics = MetricRecord({"loss": float(losses) / steps, "steps": steps, "num-examples": len(data.y)})
    arrays = ArrayRecord(model.state_dict())
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)
