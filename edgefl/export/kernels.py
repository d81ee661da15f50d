"""From an ONNX graph to the kernels it amounts to, so that the same devices price it.

As for traces (``edgefl.compute.kernels``), operators are matrix products, or bytes that move, or free, and
one that no table holds raises: a model is never priced by half. What a runtime does once when it loads the
model (everything that follows from weights and shapes alone) is free.

Runtimes fuse, and so do the counts: an activation behind a convolution or product whose result nothing else
reads belongs to it; in a quantised graph (QDQ), QuantizeLinear and DequantizeLinear around an operator do,
and that operator then reads and writes one byte a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from edgefl.core.cost import DENSE, DEPTHWISE, ELEMENTWISE, FORWARD, Kernel
from edgefl.core.devices import TRACED, WIDTHS
from edgefl.core.errors import UserError
from edgefl.export.model import Graph, Node, Value

INT8 = "int8"
QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"

# Views and questions about shapes: no data moves.
FREE = frozenset(
    "Constant ConstantOfShape Dropout Flatten Identity Reshape Shape Size Squeeze Unsqueeze".split()  # noqa: SIM905 - names as words
)

# Operators that read their operands and write their results once.
MOVES = frozenset(
    """Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast Ceil Clip Concat Cos CumSum
    DepthToSpace DequantizeLinear Div Elu Equal Erf Exp Expand Floor Gather GatherElements GatherND Gelu
    GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish
    InstanceNormalization LRN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization
    Max MaxPool Mean Min Mish Mod Mul Neg Not OneHot Or PRelu Pad Pow QuantizeLinear Range Reciprocal
    ReduceL1 ReduceL2 ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    Relu Resize Round ScatterElements ScatterND Selu Sigmoid Sign Sin Slice Softmax Softplus SpaceToDepth
    Split Sqrt Sub Sum Tanh Tile TopK Transpose Where Xor""".split()  # noqa: SIM905 - names as words
)

# What runtimes have for quantised values; between DequantizeLinear and QuantizeLinear others run as they are.
INTEGER = frozenset(
    """Add AveragePool Clip Concat Flatten Gather GlobalAveragePool GlobalMaxPool LeakyRelu MaxPool Mul Pad
    ReduceMean Relu Reshape Resize Sigmoid Slice Softmax Split Squeeze Sub Transpose Unsqueeze
    Where""".split()  # noqa: SIM905 - names as words
)

# What runtimes do in the same pass as the product before it.
ACTIVATIONS = frozenset("Clip HardSigmoid LeakyRelu Relu Sigmoid Tanh".split())  # noqa: SIM905 - names as words


@dataclass(frozen=True)
class Costed:
    """One operator's kernel.

    Attributes:
        node: the operator's name.
        kernel: its cost; bytes are counted in ``TRACED``, as all kernels' are.
        dtype: the number type that it runs in.
        moved_bytes: what it moves in truth.
    """

    node: str
    kernel: Kernel
    dtype: str
    moved_bytes: int


def kernels(graph: Graph, dtype: str | None = None) -> list[Costed]:
    """A graph's kernels, in its order.

    Args:
        graph: the graph.
        dtype: the number type of everything; int8 for what is quantised and fp32 for the rest by default.

    Raises:
        UserError: an operator that no table holds.
    """
    return Count(graph, dtype).kernels()


def is_quantised(graph: Graph) -> bool:
    """Whether a product of the graph runs in int8."""
    return Count(graph).quantised


class Count:
    """Counts a graph's kernels.

    Args:
        graph: the graph.
        dtype: the number type of everything; None is each tensor's own.
    """

    def __init__(self, graph: Graph, dtype: str | None = None) -> None:
        self._graph = graph
        self._dtype = dtype
        self._fused = {one for node in graph.nodes if (one := self._activation(node)) is not None}

    def kernels(self) -> list[Costed]:
        """See the function of this name."""
        found = []
        for node in self._graph.nodes:
            op = node.op.removeprefix("com.microsoft.") if _is_qdq(node) else node.op
            if op not in FREE | MOVES and op not in PRODUCTS:
                raise UserError(
                    f"the operator {op} (node {node.name!r}) has no cost yet",
                    where="edgefl/export/kernels.py",
                    hint="export the model without it, or add the operator to a table there",
                )
            if not self.is_free(node):
                found.append(self._costed(node, op))
        return found

    @property
    def quantised(self) -> bool:
        """See ``is_quantised``."""
        return any(node.op in PRODUCTS and self._is_quantised(node) for node in self._graph.nodes)

    def _costed(self, node: Node, op: str) -> Costed:
        narrow = self._is_quantised(node)
        dtype = self._dtype or (INT8 if narrow else TRACED)
        read = sum(self._bytes(name, narrow=narrow) for name in dict.fromkeys(node.inputs) if name)
        written = sum(self._bytes(name, narrow=narrow) for name in self._results(node))
        # Devices scale the bytes of all kernels by the type's width; these are true bytes already.
        moved = (read + written) * WIDTHS[TRACED] // WIDTHS[dtype]
        if op in PRODUCTS:
            kind, (m, n, k), groups = PRODUCTS[op](self._graph, node)
            kernel = Kernel(op, kind, FORWARD, "", m, n, k, groups, 2 * m * n * k * groups, moved)
        else:
            kernel = Kernel(op, ELEMENTWISE, FORWARD, "", 0, 0, 0, 1, 0, moved)
        return Costed(node.name, kernel, dtype, read + written)

    def _bytes(self, name: str, *, narrow: bool) -> int:
        """What a tensor moves where a node reads or writes it.

        Args:
            name: the tensor's.
            narrow: whether the node takes values as they are stored before DequantizeLinear and after
                QuantizeLinear.
        """
        value = self._graph.value(name)
        return value.count * self.width(self._stored(value) if narrow else value)

    def width(self, value: Value) -> int:
        """Bytes of an element; quantised values count as the type asked for, too."""
        if self._dtype is None:
            return value.width
        return WIDTHS[self._dtype] if value.floating or self._is_code(value.name) else value.width

    def _is_code(self, name: str) -> bool:
        """Whether a tensor holds quantised values."""
        made = self._graph.producers.get(name)
        read = self._graph.consumers.get(name, [])
        return (made is not None and _is_quantize(made)) or any(
            _is_dequantize(node) and node.inputs[0] == name for node in read
        )

    def _stored(self, value: Value) -> Value:
        made = self._graph.producers.get(value.name)
        if made is not None and _is_dequantize(made):
            return self._graph.value(made.inputs[0])
        read = self._readers(value.name)
        if read and all(map(_is_quantize, read)):
            return self._graph.value(read[0].outputs[0])
        return value

    def _results(self, node: Node) -> list[str]:
        """What a node writes; an activation that is fused into it writes in its place."""
        (first, *_), used = node.outputs, [name for name in node.outputs if name and self._is_used(name)]
        behind = self._graph.consumers.get(first, [])
        if node.op in PRODUCTS and len(behind) == 1 and behind[0].name in self._fused:
            return list(behind[0].outputs)
        return used

    def _is_used(self, name: str) -> bool:
        return name in self._graph.consumers or name in self._graph.outputs

    def _activation(self, node: Node) -> str | None:
        """The node's name where it is fused into the product before it."""
        if node.op not in ACTIVATIONS or node.inputs[0] in self._graph.outputs:
            return None
        made = self._graph.producers.get(node.inputs[0])
        alone = len(self._graph.consumers[node.inputs[0]]) == 1
        return node.name if made is not None and made.op in PRODUCTS and alone else None

    def is_free(self, node: Node) -> bool:
        """Whether a node's work is another's, none, or done when the model is loaded."""
        if node.op in FREE:
            return True
        if node.name in self._fused or all(name in self._graph.fixed for name in node.outputs):
            return True
        if _is_dequantize(node):
            return all(map(self._is_quantised, self._readers(node.outputs[0])))
        if _is_quantize(node):
            made = self._graph.producers.get(node.inputs[0])
            return made is not None and (self._is_quantised(made) or made.name in self._fused)
        return False

    def _is_quantised(self, node: Node) -> bool:
        """Whether a node reads dequantised values only and, unless a product, writes quantised ones only."""
        if _is_qdq(node):
            return False
        if node.op in PRODUCTS:
            return all(self._is_dequantised(name) for name in node.inputs[:2])
        data = [name for name in node.inputs if name and name not in self._graph.fixed]
        read = [one for name in node.outputs for one in self._readers(name)]
        return (
            node.op in INTEGER
            and bool(data and read)
            and all(map(self._is_dequantised, data))
            and all(map(_is_quantize, read))
        )

    def _readers(self, name: str) -> list[Node]:
        """Who reads a tensor's values, not only its shape."""
        fixed = self._graph.fixed
        return [one for one in self._graph.consumers.get(name, []) if not fixed.issuperset(one.outputs)]

    def _is_dequantised(self, name: str) -> bool:
        made = self._graph.producers.get(name)
        return made is not None and _is_dequantize(made)


def _is_quantize(node: Node) -> bool:
    return node.op.endswith(QUANTIZE)


def _is_dequantize(node: Node) -> bool:
    return node.op.endswith(DEQUANTIZE)


def _is_qdq(node: Node) -> bool:
    return _is_quantize(node) or _is_dequantize(node)


Product = tuple[str, tuple[int, int, int], int]
"""(class of kernel, (m, n, k), groups)."""


def _conv(graph: Graph, node: Node) -> Product:
    x, weight, out = graph.value(node.inputs[0]), graph.value(node.inputs[1]), graph.value(node.outputs[0])
    groups = int(node.attributes.get("group", 1))
    sides = _places(out), weight.shape[0] // groups, prod(weight.shape[1:])
    return _conv_kind(x, groups), sides, groups


def _conv_transpose(graph: Graph, node: Node) -> Product:
    x, weight = graph.value(node.inputs[0]), graph.value(node.inputs[1])
    groups = int(node.attributes.get("group", 1))
    return _conv_kind(x, groups), (_places(x), prod(weight.shape[1:]), weight.shape[0] // groups), groups


def _places(x: Value) -> int:
    """How many positions an image batch (B, C, *area) has over samples and area."""
    return x.shape[0] * prod(x.shape[2:])


def _conv_kind(x: Value, groups: int) -> str:
    """Depthwise: every group has one input channel, and there are several groups."""
    return DEPTHWISE if groups > 1 and x.shape[1] == groups else DENSE


def _gemm(graph: Graph, node: Node) -> Product:
    first, out = graph.value(node.inputs[0]), graph.value(node.outputs[0])
    k = first.shape[0] if node.attributes.get("transA") else first.shape[1]
    return DENSE, (out.shape[0], out.shape[1], k), 1


def _matmul(graph: Graph, node: Node) -> Product:
    first, second, out = (graph.value(name) for name in (*node.inputs[:2], node.outputs[0]))
    k, n = first.shape[-1], second.shape[-1] if len(second.shape) > 1 else 1
    if prod(second.shape[:-2]) == 1:
        # A second operand that all samples share makes one product of all their rows.
        return DENSE, (out.count // n, n, k), 1
    rows = first.shape[-2] if len(first.shape) > 1 else 1
    return DENSE, (rows, n, k), out.count // (rows * n)


PRODUCTS: dict[str, Callable[[Graph, Node], Product]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
