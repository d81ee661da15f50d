"""From an ATen operator call to the kernels it amounts to.

Three tables, and nothing falls between them: operators counted as matrix products, operators counted by the
bytes they move, and operators that cost nothing (views and allocations). An operator in none of them
raises, so that a new model cannot be priced by half.

A multiply-add is two floating-point operations. Convolutions are counted as the matrix products of im2col,
per group; their backward's two products separately, each only where autograd asked for it. torch's own
counter is not used here: it over-counts the backward of grouped convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

from torch import Tensor

from edgefl.core.cost import DENSE, DEPTHWISE, ELEMENTWISE, GRAD_INPUT, GRAD_WEIGHT, Kernel
from edgefl.core.errors import EdgeflError

# Views, allocations and questions about metadata: no data moves.
FREE = frozenset(
    """alias as_strided detach detach_ empty empty_like empty_strided expand lift_fresh new_empty
    new_empty_strided permute select slice split split_with_sizes squeeze t transpose unbind unsqueeze view
    _unsafe_view _reshape_alias diagonal is_same_size unfold chunk narrow""".split()
)

# Operators that read their operands and write their results once; their cost is those bytes.
MOVES = frozenset(
    """abs add add_ addcdiv addcdiv_ addcmul addcmul_ all amax any arange argmax avg_pool2d
    avg_pool2d_backward bitwise_and bitwise_not bitwise_or bitwise_xor cat clamp clamp_max clamp_min clamp_min_ clone
    constant_pad_nd copy_ cos cumsum div div_ eq erf exp eye fill fill_ flip full full_like gather ge gelu gt
    hardsigmoid hardsigmoid_ hardsigmoid_backward hardswish hardswish_ hardswish_backward
    hardtanh hardtanh_ hardtanh_backward index index_put index_select le leaky_relu lerp lerp_ linalg_vector_norm
    log log_softmax logical_and logical_not logical_or logsumexp lt masked_fill masked_fill_ max maximum max_pool2d_with_indices
    max_pool2d_with_indices_backward mean min minimum mse_loss mse_loss_backward mul mul_ native_batch_norm
    native_batch_norm_backward native_dropout native_group_norm native_group_norm_backward native_layer_norm
    native_layer_norm_backward ne neg new_full new_ones new_zeros nll_loss_backward nll_loss_forward
    norm normal_ one_hot ones ones_like pow prod reciprocal relu relu_ repeat resize_ rsqrt rsub scalar_tensor scatter scatter_
    scatter_add select_backward sigmoid sigmoid_ sigmoid_backward sign silu silu_ silu_backward sin
    slice_backward softmax sqrt sqrt_ stack std sub sub_ sum tanh tanh_backward threshold_backward to topk tril triu
    uniform_ var var_mean where zero_ zeros zeros_like adaptive_avg_pool2d adaptive_avg_pool2d_backward
    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _native_batch_norm_legit
    _native_batch_norm_legit_no_training _native_batch_norm_legit_functional batch_norm_backward _softmax _softmax_backward_data _log_softmax
    _log_softmax_backward_data _to_copy upsample_nearest2d upsample_nearest2d_backward native_batch_norm_legit
    channel_shuffle native_channel_shuffle""".split()
)


class UnknownOperatorError(EdgeflError):
    """An operator that neither table knows; its cost would be left out."""


class Roles:
    """What the tracer knows beyond one call: the stage, and which storages hold weights."""

    def __init__(self, stage: str, weights: frozenset[int], shapes: frozenset[tuple[int, ...]]) -> None:
        self.stage = stage
        self.weights = weights
        self.shapes = shapes

    def of_product(self, operands: Iterable[Tensor], result: Tensor) -> str:
        """Which pass a matrix product belongs to.

        In the backward pass a product with a weight gives the input's gradient; one without, of a
        weight's shape, gives that weight's.
        """
        if self.stage != GRAD_INPUT:
            return self.stage
        if any(storage_key(operand) in self.weights for operand in operands):
            return GRAD_INPUT
        shape = tuple(result.shape)
        return GRAD_WEIGHT if shape in self.shapes or shape[::-1] in self.shapes else GRAD_INPUT


def storage_key(tensor: Tensor) -> int:
    """The identity of a tensor's storage; views share it."""
    return int(tensor.untyped_storage()._cdata)


def size_bytes(tensor: Tensor) -> int:
    """The bytes of a tensor's elements."""
    return tensor.numel() * tensor.element_size()


def tensors(values: Any) -> list[Tensor]:
    """The tensors among nested arguments."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, list | tuple):
        return [tensor for value in values for tensor in tensors(value)]
    return []


def kernels_of(name: str, arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    """The kernels of one operator call.

    Args:
        name: the operator's name without overload, such as "addmm".
        arguments: its positional arguments.
        result: what it returned.
        roles: the stage of training and the weights.

    Raises:
        UnknownOperatorError: no table holds the operator.
    """
    if name in FREE:
        return []
    product = PRODUCTS.get(name)
    if product is not None:
        return product(arguments, result, roles)
    if name.startswith("_foreach_") and name.removeprefix("_foreach_").rstrip("_") in MOVES:
        return _each(name, arguments, result, roles)
    if name in MOVES:
        moved = {storage_key(tensor): size_bytes(tensor) for tensor in tensors(list(arguments))}
        read = sum(moved.values())
        written = sum(size_bytes(tensor) for tensor in tensors(result))
        return [_moving(name, roles.stage, read + written)] if read + written else []
    raise UnknownOperatorError(
        f"the operator aten.{name} has no cost yet",
        where="edgefl/compute/kernels.py",
        hint="use another operator in the model or method, or add this one to a table there",
    )


def _moving(name: str, stage: str, moved: int) -> Kernel:
    return Kernel(name, ELEMENTWISE, stage, 0, 0, 0, 1, 0, moved)


def _each(name: str, arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    """A list operator is one kernel for each place in its lists."""
    lists = [argument for argument in arguments if isinstance(argument, list | tuple) and tensors(argument)]
    written = result if isinstance(result, list | tuple) and result else lists[0] if lists else []
    loose = sum(size_bytes(argument) for argument in arguments if isinstance(argument, Tensor))
    return [
        _moving(name, roles.stage, sum(map(size_bytes, row)) + size_bytes(out) + loose)
        for row, out in zip(zip(*lists, strict=True), written, strict=True)
    ]


def _product(name: str, role: str, m: int, n: int, k: int, moved: int, groups: int = 1, kind: str = DENSE) -> Kernel:
    return Kernel(name, kind, role, m, n, k, groups, 2 * m * n * k * groups, moved)


def _mm(arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    first, second = arguments[-2], arguments[-1]
    (m, k), n = first.shape, second.shape[1]
    moved = sum(map(size_bytes, tensors(list(arguments)))) + size_bytes(result)
    return [_product("mm", roles.of_product((first, second), result), m, n, k, moved)]


def _bmm(arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    first, second = arguments[-2], arguments[-1]
    (b, m, k), n = first.shape, second.shape[2]
    moved = sum(map(size_bytes, tensors(list(arguments)))) + size_bytes(result)
    return [_product("bmm", roles.of_product((first, second), result), m, n, k, moved, groups=b)]


def _addmm(arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    bias, first, second = arguments[:3]
    (m, k), n = first.shape, second.shape[1]
    moved = sum(map(size_bytes, (bias, first, second, result)))
    return [_product("addmm", roles.of_product((first, second), result), m, n, k, moved)]


def _convolution(arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    x, weight, bias = arguments[:3]
    groups = arguments[8]
    m, n, k = _im2col(result, weight)
    moved = sum(map(size_bytes, tensors([x, weight, bias, result])))
    return [_product("convolution", roles.stage, m, n // groups, k, moved, groups, _conv_kind(weight, groups))]


def _convolution_backward(arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:  # noqa: ARG001
    grad, x, weight = arguments[:3]
    groups, (wants_input, wants_weight, wants_bias) = arguments[9], arguments[10]
    kind = _conv_kind(weight, groups)
    outputs, inputs, area = weight.shape[0], weight.shape[1], prod(weight.shape[2:])
    # Strided convolutions by phase decomposition: as many multiply-adds as the forward pass.
    positions = grad.shape[0] * prod(grad.shape[2:])
    kernels = []
    if wants_input:
        moved = size_bytes(grad) + size_bytes(weight) + size_bytes(x)
        places = x.shape[0] * prod(x.shape[2:])
        flops = 2 * positions * outputs * inputs * area
        kernels.append(
            Kernel("convolution", kind, GRAD_INPUT, places, inputs, outputs // groups * area, groups, flops, moved)
        )
    if wants_weight:
        moved = size_bytes(grad) + size_bytes(x) + size_bytes(weight)
        kernels.append(
            _product("convolution", GRAD_WEIGHT, outputs // groups, inputs * area, positions, moved, groups, kind)
        )
    if wants_bias:
        kernels.append(_moving("sum", GRAD_INPUT, size_bytes(grad) + outputs * grad.element_size()))
    return kernels


def _im2col(result: Tensor, weight: Tensor) -> tuple[int, int, int]:
    return result.shape[0] * prod(result.shape[2:]), weight.shape[0], prod(weight.shape[1:])


def _conv_kind(weight: Tensor, groups: int) -> str:
    """Depthwise: every group has one input channel, and there are several groups."""
    return DEPTHWISE if groups > 1 and weight.shape[1] == 1 else DENSE


PRODUCTS: dict[str, Callable[[Sequence[Any], Any, Roles], list[Kernel]]] = {
    "mm": _mm,
    "bmm": _bmm,
    "addmm": _addmm,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}
