"""Networks as ONNX files, and ONNX Runtime on them.

A file is made once, by a process that has PyTorch's exporter; what runs it is timed in fresh processes like
any other workload.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import torch
from torch import nn

OPSET = 20


def exported(modules: Mapping[str, tuple[nn.Module, tuple[int, ...]]]) -> None:
    """Writes each module, in evaluation mode, for any batch size.

    Args:
        modules: by the file's path, with the shape of one sample.
    """
    for file, (module, shape) in modules.items():
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            # The exporter's own dependencies warn of each other.
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module.eval(),
                (torch.randn(2, *shape),),
                file,
                dynamo=True,
                opset_version=OPSET,
                input_names=["x"],
                dynamic_shapes=({0: torch.export.Dim("batch")},),
                external_data=False,
                verbose=False,
            )


def session(file: str, shape: tuple[int, ...]) -> Callable[[], Any]:
    """A call of ONNX Runtime on a random batch of ``shape``, on as many threads as torch has."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    # Threads that wait by spinning take a shared core from the others.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    running = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    given = {running.get_inputs()[0].name: torch.randn(*shape).numpy()}
    return lambda: running.run(None, given)


def depthwise_stack(channels: int, layers: int = 3) -> nn.Module:
    """Depthwise convolutions alone: the networks that are fitted have none."""
    return nn.Sequential(
        *(nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False) for _ in range(layers))
    )


def runtime() -> str:
    """What runs the files, with its version."""
    return f"onnxruntime {version('onnxruntime')}"
