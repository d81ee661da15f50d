"""ONNX files: their input and outputs, their metadata, and their graph with every shape known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from edgefl.core.errors import UserError
from edgefl.core.params import Positive, Strict
from edgefl.core.validation import validate
from edgefl.core.yamls import Document

IMAGE, PIXELS = "image", "pixels"
LOGITS, PROBABILITIES = "logits", "probabilities"
PREFIX = "edgefl."
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"


@dataclass(frozen=True)
class ExportForm:
    """The input and the outputs of an exported model.

    Attributes:
        raw_input: the caller scales and normalises the images, not the graph.
        softmax: probabilities come out too, at temperature 1.
    """

    raw_input: bool = False
    softmax: bool = False

    @classmethod
    def of(cls, proto: Any) -> "ExportForm":
        """The form of an exported model."""
        names = {one.name for one in (*proto.graph.input, *proto.graph.output)}
        return cls(PIXELS in names, PROBABILITIES in names)

    @property
    def input(self) -> str:
        """The input's name: "image" for uint8 pixels, "pixels" for normalised float32 ones."""
        return PIXELS if self.raw_input else IMAGE

    @property
    def outputs(self) -> list[str]:
        """The outputs' names, in order."""
        return [LOGITS, PROBABILITIES] if self.softmax else [LOGITS]


@dataclass(frozen=True)
class ModelFile:
    """A valid ONNX file; ``proto`` is the model as a protobuf message of onnx."""

    path: Path
    size_bytes: int
    proto: Any

    @cached_property
    def facts(self) -> dict[str, str]:
        """The metadata that ``edgefl export`` wrote, by key; empty if another program made the file."""
        known = {entry.key: entry.value for entry in self.proto.metadata_props}
        return {key.removeprefix(PREFIX): text for key, text in known.items() if key.startswith(PREFIX)}


def read_model(path: Path) -> ModelFile:
    """Reads an ONNX file.

    Raises:
        UserError: the file is missing, damaged, or no ONNX model.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        # By content: onnx would parse a file whose name ends in .json as JSON.
        proto = onnx.load(path, format="protobuf")
        onnx.checker.check_model(str(path))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}", where=str(path)) from error
    except (DecodeError, onnx.checker.ValidationError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), "")
        raise UserError(
            f"{path.name} is not an ONNX model, or is damaged: {reason}",
            where=str(path),
            hint="export or copy it again",
        ) from error
    if not _readable(proto):
        raise UserError(
            f"{path.name} is damaged: a name in it is not UTF-8",
            where=str(path),
            hint="export or copy it again",
        )
    return ModelFile(path, path.stat().st_size, proto)


def _readable(proto: Any) -> bool:
    """Whether names and metadata are texts; protobuf hands out bytes that are not UTF-8 as they are."""
    graph = proto.graph
    named = (*graph.node, *graph.input, *graph.output, *graph.initializer, *graph.value_info)
    names = [one.name for one in named] + [
        text for node in graph.node for text in (*node.input, *node.output)
    ]
    pairs = [text for entry in proto.metadata_props for text in (entry.key, entry.value)]
    return all(isinstance(text, str) for text in (*names, *pairs, *(node.op_type for node in graph.node)))


@dataclass(frozen=True)
class GraphValue:
    """A tensor of a graph; ``width`` is the bytes of one element, as stored."""

    name: str
    shape: tuple[int, ...]
    width: int
    floating: bool

    @property
    def count(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Node:
    """One operator of a graph.

    Attributes:
        op: its type, such as "Conv"; prefixed with its domain if that is not ONNX's own.
        name: its name, or its first output's.
        inputs: the names of its inputs; empty for an omitted one.
        attributes: its integer attributes, single ones and lists.
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


class Graph:
    """A model's graph at one batch size.

    Raises:
        UserError: the model does not take this batch, or a shape depends on more than the batch size.
    """

    def __init__(self, model: ModelFile, batch: int) -> None:
        import onnx

        proto = onnx.ModelProto()
        proto.CopyFrom(model.proto)
        self._where = str(model.path)
        for one in model_inputs(proto):
            _fix(one, batch, self._where)
        # Shapes stored for any batch size would conflict with those inferred for this one.
        del proto.graph.value_info[:]
        for output in proto.graph.output:
            output.type.tensor_type.ClearField("shape")
        try:
            inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True)
        except onnx.shape_inference.InferenceError as error:
            raise UserError(
                f"shapes cannot be inferred for a batch of {batch}: {error}", where=self._where
            ) from error
        graph = inferred.graph
        self.inputs = [_typed(one) for one in model_inputs(inferred)]
        self.outputs = [one.name for one in graph.output]
        self.nodes = [_node(one) for one in graph.node]
        self.constants = [one.name for one in graph.initializer]
        typed = [*map(_typed, graph.value_info), *map(_typed, graph.output), *self.inputs]
        self._values = {one.name: one for one in typed if one is not None}
        for tensor in graph.initializer:
            element = _element(tensor.data_type)
            self._values[tensor.name] = GraphValue(tensor.name, tuple(tensor.dims), *element)
        self.producers = {name: node for node in self.nodes for name in node.outputs}
        self.consumers: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                self.consumers.setdefault(name, []).append(node)
        self.fixed = self._fixed()

    def value(self, name: str) -> GraphValue:
        """A tensor by name.

        Raises:
            UserError: its shape is not known.
        """
        value = self._values.get(name)
        if value is None:
            node = self.producers.get(name)
            origin = f", the result of {node.op}," if node else ""
            raise UserError(
                f"the shape of {name!r}{origin} does not follow from the batch size", where=self._where
            )
        return value

    def _fixed(self) -> set[str]:
        """The tensors that are the same for all inputs of this batch size; a runtime computes them once."""
        fixed = set(self.constants)
        for node in self.nodes:
            if node.op in {"Shape", "Size"} or all(name in fixed for name in node.inputs if name):
                fixed |= set(node.outputs)
        return fixed


def model_inputs(proto: Any) -> list[Any]:
    """A model's inputs, without weights, which old files list among them."""
    weights = {one.name for one in proto.graph.initializer}
    return [one for one in proto.graph.input if one.name not in weights]


def _fix(value: Any, batch: int, where: str) -> None:
    """Gives an input's first axis the batch size.

    Raises:
        UserError: the axis has another fixed size, or another axis is dynamic.
    """
    axes = value.type.tensor_type.shape.dim
    for place, axis in enumerate(axes):
        size = axis.dim_value if axis.HasField("dim_value") else None
        if place and size is None:
            raise UserError(
                f"axis {place} of input {value.name!r} has no fixed size ({axis.dim_param or 'unnamed'}); "
                "only the batch may vary",
                where=where,
            )
        if not place and size not in {None, batch}:
            raise UserError(f"the model takes batches of {size}, not of {batch}", where=where)
    if axes:
        axes[0].dim_value = batch


def _typed(value: Any) -> GraphValue | None:
    """A value with its shape; None if an axis is dynamic."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or not all(axis.HasField("dim_value") for axis in tensor.shape.dim):
        return None
    return GraphValue(
        value.name, tuple(axis.dim_value for axis in tensor.shape.dim), *_element(tensor.elem_type)
    )


def _element(kind: int) -> tuple[int, bool]:
    """Bytes of an element, and whether it is a floating-point number.

    Raises:
        UserError: the type is unknown.
    """
    import numpy as np
    import onnx

    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    except KeyError as error:
        raise UserError(
            f"a tensor has elements of the unknown type {kind}", hint="export or copy it again"
        ) from error
    return dtype.itemsize, bool(np.issubdtype(dtype, np.floating)) or kind == onnx.TensorProto.BFLOAT16


def _node(node: Any) -> Node:
    import onnx

    # ONNX Runtime's own quantisation operators differ from ONNX's only in their number types.
    standard = node.domain in {"", "ai.onnx"} or node.op_type in {QUANTIZE, DEQUANTIZE}
    op = node.op_type if standard else f"{node.domain}.{node.op_type}"
    integers = (onnx.AttributeProto.INT, onnx.AttributeProto.INTS)
    attributes = {
        one.name: onnx.helper.get_attribute_value(one) for one in node.attribute if one.type in integers
    }
    return Node(op, node.name or node.output[0], tuple(node.input), tuple(node.output), attributes)


Record = TypeVar("Record", bound=Strict)
# Pixels on a side, and in all: more than any camera has, and an array of them fits into memory.
Side = Annotated[int, Field(ge=1, le=65_535)]
MOST_PIXELS = 10**8


class ImageMetadata(Strict):
    """What a classifier of images takes and gives; but for texts, facts are JSON, see ``build``.

    Attributes:
        shape: (channels, height, width) of an image; 1 or 3 channels.
        class_names: of the classes, in order.
        mean, std: of the training images' pixels in 0 to 1, by channel.
    """

    shape: tuple[Side, Side, Side]
    class_names: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[Positive, ...]

    @model_validator(mode="after")
    def _agree(self) -> "ImageMetadata":
        channels, height, width = self.shape
        if channels not in {1, 3}:
            raise ValueError(f"the model takes {channels} channels; images have 1 or 3")
        if height * width > MOST_PIXELS:
            raise ValueError(f"'shape' must not exceed {MOST_PIXELS:,} pixels; got {height} x {width}")
        for key, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != channels:
                raise ValueError(f"{key!r} must have a number for each of {channels} channels")
        return self


class Origin(Strict):
    """The trained model that a file was exported from.

    Attributes:
        run_id: of its run.
        client: the client whose own model it is, or "global".
        version: of the server's state.
    """

    run_id: str
    client: int | Literal["global"]
    version: int


def image_metadata(model: ModelFile) -> ImageMetadata:
    """How a model takes images.

    Raises:
        UserError: the metadata lacks it or is damaged; edgefl may not have exported the file.
    """
    return _read(ImageMetadata, model)


def origin(model: ModelFile) -> Origin | None:
    """Where a model comes from; None if the file does not say.

    Raises:
        UserError: the metadata is damaged.
    """
    return _read(Origin, model) if "run_id" in model.facts else None


def _read(record: type[Record], model: ModelFile) -> Record:
    facts = {
        key: model.facts[key] if one.annotation is str else _parsed(model.facts[key])
        for key, one in record.model_fields.items()
        if key in model.facts
    }
    missing = [key for key in record.model_fields if key not in facts]
    hint = "use a file that edgefl export wrote"
    if missing:
        what = f"{model.path.name} was not exported by edgefl: its metadata lacks {', '.join(missing)}"
        raise UserError(what, where=str(model.path), hint=hint)
    try:
        return validate(record, facts, Document(str(model.path), facts))
    except UserError as error:
        what = f"{model.path.name} has metadata that edgefl does not write: {error.what}"
        raise UserError(what, where=error.where, hint=hint) from error


def _parsed(text: str) -> Any:
    """A value of JSON; a text that is none is told as such where a number is asked for."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
