"""A 1-D CNN for sequences of sensors, (channels, 1, length), such as UCI HAR's (9, 1, 128).

Two convolutions over time of width 5, each with ReLU and max-pooling 2, and a hidden layer. A convolution
over one row is what ``Conv1d`` computes, and images of one row go through every engine, codec and export.
"""

from collections import OrderedDict

from pydantic import Field
from torch import nn

from edgefl.core.errors import UserError
from edgefl.models import ModelParams
from edgefl.models._layers import SECOND_CONVOLUTION, Width, net_of, two_convolutions
from edgefl.protocol import Net

_KERNEL, _PADDING, _POOL = (1, 5), (0, 2), (1, 2)
_SMALLEST = 4  # the shortest sequence that survives two poolings


class Params(ModelParams):
    channels: tuple[Width, Width] = Field((32, 64), description="Channels of the two convolutions.")
    hidden: Width = Field(128, description="Width of the hidden layer, whose activation is the features.")
    head_bias: bool = Field(True, description="Whether the classifier has a bias.")

    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """Rows are convolved one by one. Raises a ``UserError`` for sequences shorter than 4."""
        depth, rows, length = shape
        if length < _SMALLEST:
            what = f"cnn1d needs sequences of at least {_SMALLEST} steps, not {length}"
            raise UserError(what, where="model cnn1d", hint="use mlp")
        flat = self.channels[1] * rows * (length // 4)

        def body() -> nn.Module:
            return nn.Sequential(
                two_convolutions(depth, self.channels, _KERNEL, padding=_PADDING, pool=_POOL)
                | OrderedDict[str, nn.Module](fc1=nn.Linear(flat, self.hidden), relu3=nn.ReLU())
            )

        return net_of(
            self,
            body,
            shape,
            classes,
            self.hidden,
            layers=("relu1", "relu2", "relu3"),
            stage=SECOND_CONVOLUTION,
        )
