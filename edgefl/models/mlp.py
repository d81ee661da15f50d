"""Fully connected layers with ReLU between them; 64-64-10 on 8x8 digits by default."""

from itertools import pairwise
from math import prod

from pydantic import Field
from torch import nn

from edgefl.models import ModelParams
from edgefl.models._layers import Width, net_of
from edgefl.protocol import Net


class Params(ModelParams):
    hidden: tuple[Width, ...] = Field(
        (64,), description="Widths of the hidden layers; [] is softmax regression."
    )
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """A linear layer and a ReLU for each hidden width; the last activation is the features.

        Without hidden layers the features are the flattened sample and the body has no parameters.
        """
        widths, last = (prod(shape), *self.hidden), len(self.hidden)

        def body() -> nn.Module:
            layers = nn.Sequential()
            layers.add_module("flatten", nn.Flatten())
            for number, (before, after) in enumerate(pairwise(widths), start=1):
                layers.add_module(f"fc{number}", nn.Linear(before, after))
                layers.add_module(f"relu{number}", nn.ReLU())
            return layers

        return net_of(
            self,
            body,
            shape,
            classes,
            widths[-1],
            layers=tuple(f"relu{number + 1}" for number in range(last)),
            stage=(f"relu{last - 1}" if last > 1 else "flatten", f"fc{last}", f"relu{last}") if last else (),
        )
