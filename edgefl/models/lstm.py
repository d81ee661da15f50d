"""A long short-term memory (Hochreiter and Schmidhuber 1997) over sequences, (channels, 1, length).

One layer, with the gates in torch's order (input, forget, cell, output); its last hidden state is the
features. Written as linear layers, one a time step, because torch's fused operator can neither be stacked
over clients nor be counted by fvcore. The rows of an image are one step's inputs, as its channels are.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from edgefl.models import ModelParams
from edgefl.models._layers import Width, net_of
from edgefl.protocol import Net


class Params(ModelParams):
    hidden: Width = Field(64, description="Width of the hidden state, the last of which is the features.")
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:

        def body() -> nn.Module:
            return _Lstm(shape[0] * shape[1], self.hidden)

        return net_of(self, body, shape, classes, self.hidden, layers=("inputs",))


class _Lstm(nn.Module):
    """(B, channels, rows, length) -> the last hidden state (B, hidden)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.inputs = nn.Linear(inputs, 4 * hidden)
        self.state = nn.Linear(hidden, 4 * hidden, bias=False)
        # As torch's LSTM; its two biases are one.
        for weight in self.parameters():
            nn.init.uniform_(weight, -(hidden**-0.5), hidden**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(1, 2).transpose(1, 2).flatten(0, 1)
        given = self.inputs(rows).unflatten(0, (-1, x.shape[-1]))
        state: Tensor = given.new_zeros(())
        cell = state
        for step in range(given.shape[1]):
            gates = given[:, step] if not step else given[:, step] + self.state(state)
            into, keep, new, out = gates.chunk(4, dim=-1)
            cell = torch.sigmoid(keep) * cell + torch.sigmoid(into) * torch.tanh(new)
            state = torch.sigmoid(out) * torch.tanh(cell)
        return state
