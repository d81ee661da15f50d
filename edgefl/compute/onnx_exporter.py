"""PyTorch's exporter to ONNX with the same options for every module."""

import logging
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

OPSET = 20


def onnx_model(
    module: nn.Module, example: Tensor, *, input_name: str, output_names: Sequence[str] | None = None
) -> Any:
    """A module in evaluation mode as an ``onnx.ModelProto``; its batch is a dynamic axis named "batch".

    ``example`` is an input of two samples: the exporter takes a batch of one for a constant.
    """
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        # The exporter and its dependencies warn about their own internals.
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(),
            (example,),
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=[input_name],
            output_names=output_names,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
        )
    return program.model_proto  # type: ignore[union-attr]  # dynamo=True always returns a program
