"""What one call of an ONNX graph costs: its kernels and its memory, so that the same devices price it.

As for traces (``edgefl.compute.kernels``), operators are matrix products, or bytes that move, or free, and
one that no table holds raises: a model is never priced in part. The products are counted by the same formulas
(``edgefl.core.cost``). What a runtime does once when it loads the model (everything that follows from weights
and shapes alone) is free.

Runtimes fuse operators, and so do the counts: an activation after a convolution or product whose result
nothing else reads belongs to it; in a quantised graph (QDQ), QuantizeLinear and DequantizeLinear around an
operator do, and that operator then reads and writes one byte a value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from edgefl.core.cost import Kernel, Product, convolution
from edgefl.core.devices import TRACED, WIDTHS
from edgefl.core.errors import UserError
from edgefl.export.model import DEQUANTIZE, QUANTIZE, Graph, Node
from edgefl.show.onnx import MemoryFigures

INT8 = "int8"

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
        kernel: its cost; bytes are counted in ``TRACED``, as all kernels' are.
        dtype: the number type it runs in.
        moved_bytes: the bytes it really moves.
    """

    kernel: Kernel
    dtype: str
    moved_bytes: int


@dataclass
class _Buffer:
    """The memory of a result: its size, and the first and last operator during which it is needed."""

    size: int
    first: int = 0
    last: int = 0


class GraphCost:
    """What one call of a graph costs.

    ``dtype`` is the number type of everything; by default each tensor's own, so that quantised operators run
    in int8 and the others in fp32.
    """

    def __init__(self, graph: Graph, dtype: str | None = None) -> None:
        self._graph = graph
        self._dtype = dtype
        self._fused = {node.name for node in graph.nodes if self._is_fused(node)}

    def kernels(self) -> list[Costed]:
        """The kernels, in the graph's order.

        Raises:
            UserError: no table holds an operator, or a shape is not known.
        """
        kernels = []
        for node in self._graph.nodes:
            if node.op not in FREE | MOVES and node.op not in PRODUCTS:
                raise UserError(
                    f"the cost of operator {node.op} (node {node.name!r}) is unknown",
                    where="edgefl/export/kernels.py",
                    hint="export the model without it, or add the operator to a table there",
                )
            if not self._is_free(node):
                kernels.append(self._costed(node))
        return kernels

    def memory(self) -> MemoryFigures:
        """The memory of one call.

        Raises:
            UserError: a shape is not known.
        """
        graph = self._graph
        held = {one.name: _Buffer(self._size(one.name)) for one in graph.inputs if one is not None}
        buffers = list(held.values())
        for step, node in enumerate(graph.nodes):
            for name in node.inputs:
                if name in held:
                    held[name].last = step
            for name in node.outputs:
                if not name or name in graph.fixed:
                    continue
                buffer = held.get(node.inputs[0]) if node.inputs and self._is_free(node) else None
                if buffer is None:
                    buffer = _Buffer(self._size(name), first=step)
                    buffers.append(buffer)
                # A float between two integers that are fused never exists.
                buffer.size = min(buffer.size, self._size(name))
                buffer.last = len(graph.nodes) if name in graph.outputs else step
                held[name] = buffer
        steps = range(len(graph.nodes) + 1)
        activations = max(sum(one.size for one in buffers if one.first <= step <= one.last) for step in steps)
        return MemoryFigures(sum(map(self._size, graph.constants)), activations)

    @property
    def quantised(self) -> bool:
        """Whether a matrix product or convolution runs in int8."""
        return any(node.op in PRODUCTS and self._is_quantised(node) for node in self._graph.nodes)

    def _costed(self, node: Node) -> Costed:
        narrow = self._is_quantised(node)
        dtype = self._dtype or (INT8 if narrow else TRACED)
        names = [*dict.fromkeys(filter(None, node.inputs)), *self._results(node)]
        true_bytes = sum(self._size(self._stored(name) if narrow else name) for name in names)
        # Devices scale the bytes of all kernels by the type's width; these are true bytes already.
        moved = true_bytes * WIDTHS[TRACED] // WIDTHS[dtype]
        # A product of nothing has no sides to divide by.
        if node.op in PRODUCTS and all(self._graph.value(name).count for name in names):
            kernel = Kernel.multiplying(node.op, PRODUCTS[node.op](self._graph, node), moved)
        else:
            kernel = Kernel.moving(node.op, moved)
        return Costed(kernel, dtype, true_bytes)

    def _size(self, name: str) -> int:
        """Bytes of a tensor; quantised values, too, are as wide as the number type asked for."""
        value = self._graph.value(name)
        if self._dtype and (value.floating or self._holds_codes(name)):
            return value.count * WIDTHS[self._dtype]
        return value.count * value.width

    def _holds_codes(self, name: str) -> bool:
        """Whether a tensor holds quantised values."""
        readers = self._graph.consumers.get(name, [])
        return self._made_by(name, QUANTIZE) or any(
            node.op == DEQUANTIZE and node.inputs[0] == name for node in readers
        )

    def _stored(self, name: str) -> str:
        """Of a tensor that a quantised operator reads or writes, the one with its quantised values."""
        if self._made_by(name, DEQUANTIZE):
            return self._graph.producers[name].inputs[0]
        readers = self._readers(name)
        return readers[0].outputs[0] if self._is_quantised_after(readers) else name

    def _results(self, node: Node) -> list[str]:
        """What a node writes; an activation that is fused into it writes in its place."""
        behind = self._graph.consumers.get(node.outputs[0], [])
        if node.op in PRODUCTS and len(behind) == 1 and behind[0].name in self._fused:
            return list(behind[0].outputs)
        consumers, outputs = self._graph.consumers, self._graph.outputs
        return [name for name in node.outputs if name and (name in consumers or name in outputs)]

    def _is_fused(self, node: Node) -> bool:
        """Whether a node is an activation that belongs to the product before it."""
        if node.op not in ACTIVATIONS or node.inputs[0] in self._graph.outputs:
            return False
        producer = self._graph.producers.get(node.inputs[0])
        alone = len(self._graph.consumers[node.inputs[0]]) == 1
        return producer is not None and producer.op in PRODUCTS and alone

    def _is_free(self, node: Node) -> bool:
        """Whether a node's work is part of another's, none, or done when the model is loaded."""
        if node.op in FREE or node.name in self._fused or self._graph.fixed.issuperset(node.outputs):
            return True
        if node.op == DEQUANTIZE:
            return all(map(self._is_quantised, self._readers(node.outputs[0])))
        if node.op == QUANTIZE:
            producer = self._graph.producers.get(node.inputs[0])
            return producer is not None and (self._is_quantised(producer) or producer.name in self._fused)
        return False

    def _is_quantised(self, node: Node) -> bool:
        """Whether a node reads dequantised values only and, unless a product, writes quantised ones only."""
        if node.op in PRODUCTS:
            return all(self._made_by(name, DEQUANTIZE) for name in node.inputs[:2])
        data = [name for name in node.inputs if name and name not in self._graph.fixed]
        return (
            node.op in INTEGER
            and bool(data)
            and all(self._made_by(name, DEQUANTIZE) for name in data)
            and self._is_quantised_after([one for name in node.outputs for one in self._readers(name)])
        )

    def _is_quantised_after(self, readers: list[Node]) -> bool:
        return bool(readers) and all(node.op == QUANTIZE for node in readers)

    def _readers(self, name: str) -> list[Node]:
        """The nodes that read a tensor's values, not only its shape."""
        fixed = self._graph.fixed
        return [one for one in self._graph.consumers.get(name, []) if not fixed.issuperset(one.outputs)]

    def _made_by(self, name: str, op: str) -> bool:
        producer = self._graph.producers.get(name)
        return producer is not None and producer.op == op


def _convolution(graph: Graph, node: Node) -> Product:
    x, weight, result = (graph.value(name).shape for name in (*node.inputs[:2], node.outputs[0]))
    groups = int(node.attributes.get("group", 1))
    if groups < 1:
        raise UserError(
            f"operator {node.op} (node {node.name!r}) has {groups} groups; it must have at least 1"
        )
    return convolution(x, weight, result, groups, transposed=node.op == "ConvTranspose")


def _matrices(graph: Graph, node: Node) -> Product:
    first, second, out = (graph.value(name) for name in (*node.inputs[:2], node.outputs[0]))
    k = first.shape[0 if node.attributes.get("transA") else -1]
    n = out.shape[-1] if len(second.shape) > 1 else 1
    if prod(second.shape[:-2]) == 1:
        # A second operand that all samples share makes one product of all their rows.
        return Product(out.count // n, n, k)
    rows = first.shape[-2] if len(first.shape) > 1 else 1
    return Product(rows, n, k, out.count // (rows * n))


PRODUCTS: dict[str, Callable[[Graph, Node], Product]] = {
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Gemm": _matrices,
    "MatMul": _matrices,
}
