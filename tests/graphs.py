"""Small ONNX models, written node by node, and QDQ ones as quantisers write them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgefl.export.model import Graph, read_model

FLOAT, BYTE = TensorProto.FLOAT, TensorProto.UINT8
Spec = tuple[str, Sequence[str], Sequence[str]] | tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]


def write(
    path: Path,
    nodes: Sequence[Spec],
    weights: Mapping[str, Any],
    shape: Sequence[int | str],
    *,
    kind: int = FLOAT,
    outputs: Sequence[str] = ("y",),
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a model with one input ``x``."""
    graph = helper.make_graph(
        [helper.make_node(*one[:3], **(one[3] if len(one) > 3 else {})) for one in nodes],
        "graph",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    model = onnx.shape_inference.infer_shapes(model)
    for key, value in (facts or {}).items():
        entry = model.metadata_props.add()
        entry.key, entry.value = f"edgefl.{key}", value if isinstance(value, str) else json.dumps(value)
    onnx.save(model, path)
    return path


def graph_of(path: Path, *arguments: Any, batch: int = 1, **settings: Any) -> Graph:
    """The graph of a model written so."""
    return Graph(read_model(write(path, *arguments, **settings)), batch)


def floats(*shape: int) -> Any:
    """Weights."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def codes(*shape: int) -> Any:
    """Quantised weights."""
    return np.random.default_rng(0).integers(-100, 100, shape).astype(np.int8)


SCALE: dict[str, Any] = {"scale": np.float32(0.1), "zero": np.int8(0)}


def quantise(source: str) -> list[Spec]:
    """A pair of nodes: ``source`` to ``source_q`` to ``source_dq``."""
    return [
        ("QuantizeLinear", [source, "scale", "zero"], [f"{source}_q"]),
        ("DequantizeLinear", [f"{source}_q", "scale", "zero"], [f"{source}_dq"]),
    ]
