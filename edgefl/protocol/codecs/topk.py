"""Top-k: the entries of largest magnitude of each tensor's change, which the receiver adds to what it has.

Aji and Heafield, "Sparse Communication for Distributed Gradient Descent" (EMNLP 2017), and Lin et al., "Deep
Gradient Compression" (ICLR 2018), for a model's update in place of a gradient, and without error feedback:
what is not sent is lost, not carried over.

It codes the difference of an upload from the payload that the client received, which the server has as well,
and so works on the way up only. Of a tensor of n numbers, k = ceil(share * n) are sent, each as its value in
the tensor's own type and its row-major index as an int32. With float32 this saves bytes if share is below
1/2.

Tensors without a counterpart of the same path, shape and type in the payload received, such as the sums of a
calibration, are sent whole. So are integers, scalars and empty tensors.
"""

import math
from fractions import Fraction
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from edgefl.protocol.codecs import TensorCodec, coded


class Params(TensorCodec):
    NEEDS_REFERENCE = True

    share: Annotated[float, Field(gt=0, le=1, description="share of each tensor's entries sent")] = 0.1

    def message(self, leaf: Tensor, base: Tensor | None) -> tuple[Tensor, ...] | None:
        """The (k,) values of the largest changes, and their (k,) places in the flat tensor."""
        if base is None or not coded(leaf):
            return None
        # As the decimal that was written: 100 times 0.07 is 7, not 7.000000000000001 with ceiling 8.
        count = math.ceil(Fraction(str(self.share)) * leaf.numel())
        change = (leaf - base).reshape(-1)
        places = change.abs().topk(count, sorted=False).indices
        return change.gather(0, places), places.to(torch.int32)

    def restored(self, message: tuple[Tensor, ...], like: Tensor, base: Any) -> Tensor:
        values, places = message
        change = torch.zeros_like(like).reshape(-1).scatter(0, places.long(), values)
        found: Tensor = base + change.reshape(like.shape)
        return found
