"""Simplifies a recorded graph, and replaces operators by ones that are faster on a CPU.

Rewrites depend on the graph and its tensors' shapes alone. Some of them round differently than the recorded
operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

from edgefl.compute.stacked import turns

aten = torch.ops.aten

# Without autograd, these return their input; the second set if the shape does not change.
_SAME = {aten.detach.default, aten.alias.default}
_SAME_SHAPE = {
    aten.view.default,
    aten._unsafe_view.default,  # noqa: SLF001 - the operator's name
    aten.expand.default,
    aten.reshape.default,
}
# The most numbers in a CPU's vector register.
_VECTOR = 16
_SHAPE, VALUE = "shape", "value"
"""Keys of a node's metadata: its tensor, and that tensor's shape, strides and type."""


def known(node: fx.Node, tensor: Tensor) -> fx.Node:
    """The node, with its value as metadata."""
    node.meta[_SHAPE] = (tensor.size(), tensor.stride(), tensor.dtype)
    node.meta[VALUE] = tensor
    return node


def rewrite(graph: fx.Graph, written: set[fx.Node], *, on_cpu: bool) -> None:
    """Rewrites a graph; its results stay the same except for rounding.

    Args:
        graph: its nodes have been through ``known``.
        written: the nodes whose memory some operator writes to in place; they are left alone.
        on_cpu: whether it runs on a CPU.
    """
    _without_detours(graph, written)
    graph.eliminate_dead_code()
    if on_cpu:
        for node in list(graph.nodes):
            if not {node, *node.all_input_nodes} & written:
                _along_rows(graph, node, written)
                _with_bias(graph, node, written)
                _few_numbers(graph, node)
        _without_detours(graph, written)
        graph.eliminate_dead_code()
    _by_torchs_own_names(graph, written)


def _along_rows(graph: fx.Graph, node: fx.Node, written: set[fx.Node]) -> None:
    """Computes a transposed product as the product of the transposes where its rows in memory are short.

    A layer's gradient is the transpose of a product, which for ten classes has rows of ten numbers. The
    product of the transposes has the layout of ``stacked.turned`` weights, in a quarter of the time.
    """
    product: Any = node.args[0] if _turned(node) else None
    if not _is(product, aten.bmm.default) or written.intersection(product.args):
        return
    _, high, wide = product.meta[VALUE].shape
    if not turns(wide, high):
        with graph.inserting_before(node):
            sides = [_bound(graph, aten.transpose.int, (side, 1, 2)) for side in reversed(product.args)]
            node.replace_all_uses_with(_bound(graph, aten.bmm.default, tuple(sides)))


def _with_bias(graph: fx.Graph, node: fx.Node, written: set[fx.Node]) -> None:
    """Adds a layer's bias within its product."""
    if not _is(node, aten.add.Tensor) or node.kwargs:
        return
    bias: Any
    product: Any
    bias, product = node.args
    if not _is(product, aten.bmm.default) or len(product.users) > 1 or written.intersection(product.args):
        return
    value, result = bias.meta[VALUE] if isinstance(bias, fx.Node) else None, node.meta[VALUE]
    # A bias has one row per client; a tensor with as many rows as the product is not a bias.
    if value is not None and value.dtype == result.dtype and value.shape == (len(result), 1, result.size(2)):
        with graph.inserting_before(node):
            node.replace_all_uses_with(_bound(graph, aten.baddbmm.default, (bias, *product.args)))


def _few_numbers(graph: fx.Graph, node: fx.Node) -> None:
    """Spells out log-softmax over few numbers, whose kernel is not vectorised."""
    forward = _is(node, aten._log_softmax.default)  # noqa: SLF001 - the operator's name
    if not forward and not _is(node, aten._log_softmax_backward_data.default):  # noqa: SLF001 - the same
        return
    first: Any
    first, dim = node.args[0], node.args[1 if forward else 2]
    if first.meta[VALUE].size(dim) >= _VECTOR or first.meta[VALUE].dtype != node.meta[VALUE].dtype:
        return
    with graph.inserting_before(node):
        if forward:
            total = _bound(graph, aten.logsumexp.default, (first, [dim], True))
            found = _bound(graph, aten.sub.Tensor, (first, total))
        else:
            share = _bound(graph, aten.exp.default, (node.args[1],))
            total = _bound(graph, aten.sum.dim_IntList, (first, [dim], True))
            found = _bound(graph, aten.addcmul.default, (first, share, total), value=-1)
    node.replace_all_uses_with(found)


def _is(node: Any, target: Callable[..., Any]) -> bool:
    return isinstance(node, fx.Node) and node.target is target


def _bound(graph: fx.Graph, target: Callable[..., Tensor], args: tuple[Any, ...], **settings: Any) -> fx.Node:
    """A new call, with its value as metadata."""
    value = target(*fx.map_arg(args, lambda one: one.meta[VALUE]), **settings)
    return known(graph.call_function(target, args, settings), value)


def _without_detours(graph: fx.Graph, written: set[fx.Node]) -> None:
    """Removes what only autograd or vmap needs: views of the same shape, factors of 1, double transposes."""
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


def _by_torchs_own_names(graph: fx.Graph, written: set[fx.Node]) -> None:
    """Calls operators as ``torch.bmm`` rather than ``torch.ops.aten.bmm``, whose overhead is twice as high.

    A name is used if a call of it returns the recorded result.
    """
    for node in graph.nodes:
        if node.op != "call_function" or node in written or VALUE not in node.meta:
            continue
        name = getattr(node.target, "overloadpacket", node.target).__name__
        function = getattr(torch._C._VariableFunctions, name, None)  # noqa: SLF001 - what torch's namespace is made of
        method = getattr(Tensor, name, None)
        if function is not None and _gives_the_same(function, node):
            node.target = function
        elif method is not None and _gives_the_same(method, node):
            node.op, node.target = "call_method", name


def _gives_the_same(function: Callable[..., Any], node: fx.Node) -> bool:
    def value(argument: fx.Node) -> Any:
        return argument.meta.get(VALUE)

    recorded: Any = node.target
    args, kwargs = fx.map_arg(node.args, value), fx.map_arg(node.kwargs, value)
    try:
        with torch.no_grad():
            found, expected = function(*args, **kwargs), recorded(*args, **kwargs)
    except (TypeError, RuntimeError, ValueError):
        return False
    like = isinstance(found, Tensor) and found.stride() == expected.stride() and found.dtype == expected.dtype
    return like and torch.equal(found, expected)


def _turned(node: fx.Node) -> bool:
    return _is(node, aten.transpose.int) and node.args[1:] == (1, 2)


def _like(node: fx.Node, other: Any) -> bool:
    return isinstance(other, fx.Node) and node.meta.get(_SHAPE) == other.meta.get(_SHAPE)
