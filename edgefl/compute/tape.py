"""A function of tensors as the list of its operators: recorded once, replayed without autograd or vmap.

A small model's step spends most of its time around its operators: in Python, ``vmap``, autograd's graph. None
of that depends on the data, so the operators of a first call can be called again on other tensors of the same
shapes.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tag, Tensor, fx, nn
from torch.overrides import TorchFunctionMode

from edgefl.compute.kernels import storage_key, tensors
from edgefl.protocol import tree_map
from edgefl.protocol.whole import Dispatched

aten = torch.ops.aten

_REFUSED = (Tag.data_dependent_output, Tag.dynamic_output_shape, Tag.nondeterministic_seeded)
# Operators that write their fourth and fifth argument, the running statistics, but do not declare it.
_NORMS = {aten.native_batch_norm.default, aten.cudnn_batch_norm.default}
# Methods that read numbers without an operator.
_READERS = {Tensor.tolist, Tensor.numpy, Tensor.__array__}

Tape: TypeAlias = Callable[..., list[Tensor]]
"""A recorded function, for inputs of the recorded shapes; to be called without autograd."""


class UnrecordableError(Exception):
    pass


def record(function: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor]) -> Tape:
    """Calls a function of tensors and records its operators; everything else that it reads is a constant.

    An ``UnrecordableError`` if it reads a number out of a tensor or draws one, or writes to what it is given.
    """
    recorder = _Recorder()
    # Distinct objects: two inputs that are one tensor now may differ in a replay.
    given = [tensor.detach() for tensor in inputs]
    for place, tensor in enumerate(given):
        recorder.foreign(tensor, recorder.graph.placeholder(f"given{place}"))
    with _Readers(), recorder:
        outputs = function(*given)
    recorder.graph.output([recorder.node(tensor) for tensor in outputs])
    recorder.graph.eliminate_dead_code()
    tape: Tape = fx.GraphModule(recorder.root, recorder.graph).forward
    return tape


class _Readers(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _READERS:
            raise UnrecordableError(f"{func.__name__} depends on data")
        return func(*args, **(kwargs or {}))


class _Recorder(Dispatched):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = fx.Graph()
        self.root = nn.Module()
        # By tensors' ids, which are not reused, because the tensors are kept.
        self._nodes: dict[int, tuple[Tensor, fx.Node]] = {}
        self._foreign: set[int] = set()

    def foreign(self, tensor: Tensor, node: fx.Node) -> None:
        """A tensor that no operator made: an input or a constant, whose storage is not to be written to."""
        self._foreign.add(storage_key(tensor))
        self._nodes[id(tensor)] = tensor, node

    def node(self, tensor: Tensor) -> fx.Node:
        """The node of a tensor; a new constant if no operator made it."""
        if id(tensor) not in self._nodes:
            name = f"constant{len(self._nodes)}"
            self.root.register_buffer(name, tensor.detach())
            self.foreign(tensor, self.graph.get_attr(name))
        return self._nodes[id(tensor)][1]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _refused(func, args):
            raise UnrecordableError(f"{func} depends on data or chance")
        named = tree_map(lambda leaf: self.node(leaf) if isinstance(leaf, Tensor) else leaf, [args, kwargs])
        if not self._foreign.isdisjoint(map(storage_key, _written(func, args, kwargs))):
            raise UnrecordableError(f"{func} writes to an input or a constant")
        node = self.graph.call_function(func, *named)
        found = func(*args, **kwargs)
        if isinstance(found, Tensor):
            if id(found) not in self._nodes:
                self._nodes[id(found)] = found, node
        else:
            for place, one in enumerate(found if isinstance(found, (tuple, list)) else ()):
                if isinstance(one, Tensor):
                    item = self.graph.call_function(operator.getitem, (node, place))
                    self._nodes[id(one)] = one, item
        return found


def _refused(func: Any, args: Sequence[Any]) -> bool:
    if func is aten.index.Tensor:
        # The shape of the result depends on a mask's data, not on that of numbers.
        return any(one is not None and one.dtype in {torch.bool, torch.uint8} for one in args[1])
    return any(tag in func.tags for tag in _REFUSED)


def _written(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Tensor]:
    if func in _NORMS and args[5]:
        yield from tensors(args[3:5])
    for place, argument in enumerate(func._schema.arguments):  # noqa: SLF001 - there is no public way
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from tensors([args[place] if place < len(args) else kwargs.get(argument.name)])
