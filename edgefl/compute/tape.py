"""A function of tensors as the list of its operators: recorded once, replayed without autograd or vmap.

A small model's step spends most of its time around its operators: in Python, ``vmap``, autograd's graph. None
of that depends on the data, so the operators of a first call can be called again on other tensors of the same
shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.overrides import TorchFunctionMode

from edgefl.protocol import tree_map
from edgefl.protocol.whole import Dispatched

aten = torch.ops.aten

_REFUSED = (
    torch.Tag.data_dependent_output,
    torch.Tag.dynamic_output_shape,
    torch.Tag.nondeterministic_seeded,
)
# Operators that write their fourth and fifth argument, the running statistics, but do not declare it.
_NORMS = {aten.native_batch_norm.default, aten.cudnn_batch_norm.default}
# The key of a node's tensor in its metadata.
_VALUE = "value"
# Methods that read numbers without an operator.
_READERS = {Tensor.tolist, Tensor.numpy, Tensor.__array__}


class UnrecordableError(Exception):
    """The function depends on its data's values or draws random numbers."""


class Tape:
    """A recorded function; see ``record``."""

    def __init__(self, module: fx.GraphModule) -> None:
        self._forward: Callable[..., list[Tensor]] = module.forward

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The function's result for inputs of the recorded shapes; to be called without autograd."""
        return self._forward(*inputs)


def record(function: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor]) -> Tape:
    """Calls a function and records its operators.

    Args:
        function: tensors -> tensors; everything else it reads is a constant.
        inputs: never written to.

    Raises:
        UnrecordableError: it reads a number out of a tensor, draws one, or writes to an input or constant.
    """
    recorder = _Recorder()
    # Distinct objects: two inputs that are one tensor now may differ in a replay.
    given = [tensor.detach() for tensor in inputs]
    for tensor in given:
        recorder.given(tensor)
    with _Readers(), recorder:
        outputs = function(*given)
    graph = recorder.graph
    graph.output([recorder.node(tensor) for tensor in outputs])
    if any(node.op != "call_function" for node in _written(graph)):
        raise UnrecordableError("it writes to an input or a constant")
    graph.eliminate_dead_code()
    for node in graph.nodes:
        # The first call's results would live as long as the tape.
        node.meta.clear()
    return Tape(fx.GraphModule(recorder.root, graph))


class _Readers(TorchFunctionMode):
    """Refuses methods that read numbers without an operator."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        if func in _READERS:
            raise UnrecordableError(f"{func.__name__} depends on data")
        return func(*args, **(kwargs or {}))


class _Recorder(Dispatched):  # type: ignore[no-untyped-call]
    """Builds a graph of the operators that run inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = fx.Graph()
        self.root = nn.Module()
        self._nodes: dict[int, fx.Node] = {}
        self._kept: list[Tensor] = []  # so that no tensor's id is reused

    def given(self, tensor: Tensor) -> fx.Node:
        """A new input."""
        return self._bind(tensor, self.graph.placeholder(f"given{len(self._kept)}"))

    def node(self, tensor: Tensor) -> fx.Node:
        """The node of a tensor; a new constant if no operator made it."""
        if id(tensor) not in self._nodes:
            name = f"constant{len(self._kept)}"
            self.root.register_buffer(name, tensor.detach())
            self._bind(tensor, self.graph.get_attr(name))
        return self._nodes[id(tensor)]

    def _bind(self, tensor: Tensor, node: fx.Node) -> fx.Node:
        node.meta[_VALUE] = tensor
        self._nodes[id(tensor)] = node
        self._kept.append(tensor)
        return node

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        if _refused(func, args):
            raise UnrecordableError(f"{func} depends on data or chance")
        node = self.graph.call_function(func, self._named(args), self._named(kwargs or {}))
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor):
            if id(found) not in self._nodes:
                self._bind(found, node)
        else:
            for place, one in enumerate(found if isinstance(found, (tuple, list)) else ()):
                if isinstance(one, Tensor):
                    self._bind(one, self.graph.call_function(operator.getitem, (node, place)))
        return found

    def _named(self, arguments: Any) -> Any:
        """The arguments with nodes for tensors."""
        return tree_map(lambda leaf: self.node(leaf) if isinstance(leaf, Tensor) else leaf, arguments)


def _refused(func: Any, args: Sequence[Any]) -> bool:
    """Whether an operator depends on data or chance."""
    if func is aten.index.Tensor:
        # The shape of the result depends on a mask's data, not on that of numbers.
        return any(one is not None and one.dtype in {torch.bool, torch.uint8} for one in args[1])
    return any(tag in func.tags for tag in _REFUSED)


def _written(graph: fx.Graph) -> set[fx.Node]:
    """What lies in memory that some operator writes to in place, views included."""
    memory = {_memory(node) for writer in graph.nodes for node in _targets(writer)}
    return {node for node in graph.nodes if _VALUE in node.meta and _memory(node) in memory}


def _memory(node: fx.Node) -> int:
    return int(node.meta[_VALUE].untyped_storage().data_ptr())


def _targets(node: fx.Node) -> list[fx.Node]:
    """What an operator writes to."""
    if node.target in _NORMS:
        statistics, training = node.args[3:5], node.args[5]
        return [one for one in statistics if training and isinstance(one, fx.Node)]
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    found: list[fx.Node] = []
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
            found += [
                one for one in (value if isinstance(value, list) else [value]) if isinstance(one, fx.Node)
            ]
    return found
