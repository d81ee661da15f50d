"""A function of tensors as the list of its operators: recorded once, replayed without autograd or vmap.

A small model's step spends most of its time on what surrounds its operators: Python, ``vmap``, autograd's
graph. None of that depends on the data, so the operators that a first call came to can be called again on
other tensors of the same shapes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

# What gives its input back where the shape does not change, once nobody asks autograd.
_SAME = {aten.detach.default, aten.alias.default}
_SAME_SHAPE = {
    aten.view.default,
    aten._unsafe_view.default,  # noqa: SLF001 - the operator's name
    aten.expand.default,
    aten.reshape.default,
}
# What reads of its input the shape alone.
_FILLED = {
    aten.ones_like.default,
    aten.zeros_like.default,
    aten.full_like.default,
    aten.new_zeros.default,
    aten.new_ones.default,
    aten.new_full.default,
}
_REFUSED = (torch.Tag.data_dependent_output, torch.Tag.nondeterministic_seeded)
_SHAPE, _VALUE = "shape", "value"


class UnrecordableError(Exception):
    """What the function does depends on the data, or on chance."""


class Tape:
    """A recorded function; see ``record``."""

    def __init__(self, module: fx.GraphModule) -> None:
        self._forward: Callable[..., list[Tensor]] = module.forward

    def __call__(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """What the function returns for inputs of the recorded shapes."""
        with torch.no_grad():
            return self._forward(*inputs)


def record(function: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor]) -> Tape:
    """Calls a function, and keeps its operators.

    Args:
        function: tensors -> tensors; whatever else it reads counts as constant.
        inputs: are not written to, now or later.

    Raises:
        UnrecordableError: it reads a number out of a tensor, or draws one.
    """
    recorder = _Recorder()
    for tensor in inputs:
        recorder.given(tensor)
    with recorder:
        outputs = function(*inputs)
    recorder.graph.output([recorder.node(tensor) for tensor in outputs])
    written = _written(recorder.graph)
    recorder.fold(written)
    _without_detours(recorder.graph, written)
    recorder.graph.eliminate_dead_code()
    return Tape(fx.GraphModule(recorder.root, recorder.graph))


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class hook has no types
    """Builds a graph of the operators that run inside."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = fx.Graph()
        self.root = nn.Module()
        self._nodes: dict[int, fx.Node] = {}
        self._kept: list[Tensor] = []  # so that no other tensor takes the number of one that is gone

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Importing torch's compiler, which will never see this, takes a second.
        return False

    def given(self, tensor: Tensor) -> fx.Node:
        """A new input."""
        return self._bind(tensor, self.graph.placeholder(f"given{len(self._kept)}"))

    def node(self, tensor: Tensor) -> fx.Node:
        """The node of a tensor; a new constant's where no operator made it."""
        if id(tensor) not in self._nodes:
            self._bind(tensor, self._constant(tensor))
        return self._nodes[id(tensor)]

    def _constant(self, tensor: Tensor) -> fx.Node:
        name = f"constant{len(self._kept)}"
        self._kept.append(tensor)
        self.root.register_buffer(name, tensor.detach())
        return self.graph.get_attr(name)

    def fold(self, written: set[fx.Node]) -> None:
        """Replaces what no input's data goes into by what it came to."""
        fixed: set[fx.Node] = set()
        for node in self.graph.nodes:
            if node.op == "get_attr":
                fixed.add(node)
            elif node.op == "call_function" and _VALUE in node.meta and node not in written:
                read = node.all_input_nodes
                if node.target in _FILLED or (read and fixed.issuperset(read)):
                    fixed.add(node)
        for node in list(self.graph.nodes):
            if node in fixed and node.op != "get_attr" and not fixed.issuperset(node.users):
                with self.graph.inserting_before(node):
                    node.replace_all_uses_with(self._constant(node.meta[_VALUE]))

    def _bind(self, tensor: Tensor, node: fx.Node) -> fx.Node:
        node.meta[_SHAPE] = (tensor.size(), tensor.stride(), tensor.dtype)
        node.meta[_VALUE] = tensor
        self._nodes[id(tensor)] = node
        self._kept.append(tensor)
        return node

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        if any(tag in func.tags for tag in _REFUSED):
            raise UnrecordableError(f"{func} depends on data or chance")
        found = func(*args, **(kwargs or {}))
        node = self.graph.call_function(func, self._named(args), self._named(kwargs or {}))
        if isinstance(found, Tensor):
            if id(found) not in self._nodes:
                self._bind(found, node)
        else:
            for place, one in enumerate(found if isinstance(found, (tuple, list)) else ()):
                if isinstance(one, Tensor):
                    self._bind(one, self.graph.call_function(operator.getitem, (node, place)))
        return found

    def _named(self, given: Any) -> Any:
        if isinstance(given, Tensor):
            return self.node(given)
        if isinstance(given, (list, tuple)):
            return type(given)(self._named(one) for one in given)
        if isinstance(given, dict):
            return {key: self._named(one) for key, one in given.items()}
        return given


def _written(graph: fx.Graph) -> set[fx.Node]:
    """What some operator writes to in place."""
    writers = [node for node in graph.nodes if node.op == "call_function" and _writes(node)]
    return {argument for node in writers for argument in (node, *node.all_input_nodes)}


def _writes(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and bool(schema.is_mutable)


def _without_detours(graph: fx.Graph, written: set[fx.Node]) -> None:
    """Takes out what matters only to autograd or vmap: views of one shape, factors of 1, turns and back."""
    for node in graph.nodes:
        source = node.args[0] if node.op == "call_function" and node.args else None
        if not isinstance(source, fx.Node) or node in written or source in written:
            continue
        same = _like(node, source)
        once = node.target is aten.mul.Scalar and node.args[1] == 1
        if node.target in _SAME or (same and (once or node.target in _SAME_SHAPE)):
            node.replace_all_uses_with(source)
        elif _turned(node) and _turned(source) and source.args[0] not in written:
            node.replace_all_uses_with(source.args[0])


def _turned(node: fx.Node) -> bool:
    return node.target is aten.transpose.int and node.args[1:] == (1, 2)


def _like(node: fx.Node, other: Any) -> bool:
    return isinstance(other, fx.Node) and node.meta.get(_SHAPE) == other.meta.get(_SHAPE)
