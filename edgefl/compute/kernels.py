"""From an ATen operator call to the kernels that it starts.

Operators are counted as matrix products or by the bytes they move, or cost nothing (views and allocations);
those that ATen makes of others, as these. An operator in no table is an error, so that no model is priced in
part. An expanded operand is read once, as large as it is in memory.

A multiply-add is two floating-point operations. Convolutions are counted as the matrix products of im2col,
per group; the two products of their backward separately, each only if autograd computes it. torch's own
counter is not used here: it over-counts the backward of grouped convolutions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil, prod
from typing import Any

from torch import Tensor

from edgefl.core.cost import FORWARD, GRAD_INPUT, GRAD_WEIGHT, Kernel, Product, convolution, places
from edgefl.core.errors import UserError
from edgefl.protocol import leaves
from edgefl.protocol.chance import is_drawing

# Operators that draw random numbers, with or without a trailing "_"; only a net's training pass may. Their
# cost are the bytes that they write.
RANDOM = frozenset(
    """bernoulli cauchy exponential multinomial normal poisson rand rand_like randint
    randint_like randn randn_like random randperm uniform""".split()  # noqa: SIM905 - names as words
)

# Views, allocations and questions about metadata: no data moves.
FREE = frozenset(
    """alias as_strided as_strided_ chunk detach detach_ diagonal empty empty_like empty_strided expand
    is_same_size lift_fresh _linalg_check_errors _local_scalar_dense narrow new_empty new_empty_strided
    permute resize_ select slice split split_with_sizes squeeze squeeze_ t t_ transpose transpose_ unbind
    unfold unsqueeze unsqueeze_ view _reshape_alias _unsafe_view""".split()  # noqa: SIM905 - names as words
)

# Operators that read their operands and write their results once; their cost is those bytes.
MOVES = frozenset(
    """abs _adaptive_avg_pool2d adaptive_avg_pool2d _adaptive_avg_pool2d_backward add add_ addcdiv addcdiv_
    addcmul addcmul_ all amax amin any arange argmax avg_pool2d avg_pool2d_backward
    batch_norm_backward bitwise_and bitwise_not bitwise_or bitwise_xor cat channel_shuffle clamp clamp_max
    clamp_min clamp_min_ clone copy_ cos cumsum div div_ eq erf exp eye fill fill_ flip full full_like ge
    gelu gelu_backward grid_sampler_2d gt hardsigmoid hardsigmoid_ hardsigmoid_backward hardswish hardswish_
    hardswish_backward hardtanh hardtanh_ hardtanh_backward le leaky_relu leaky_relu_backward lerp lerp_
    linalg_vector_norm log _log_softmax log_softmax _log_softmax_backward_data logical_and logical_not
    logical_or lt masked_fill_ max max_pool2d_with_indices max_pool2d_with_indices_backward maximum min
    minimum mse_loss_backward mul mul_ native_batch_norm native_batch_norm_backward _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training native_channel_shuffle
    native_dropout native_group_norm native_group_norm_backward native_layer_norm native_layer_norm_backward
    ne neg new_full new_ones new_zeros nll_loss_backward nll_loss_forward nonzero norm normal_ one_hot ones
    ones_like pow prod reciprocal reciprocal_ relu relu_ remainder roll rsqrt rsub _safe_softmax
    scalar_tensor sigmoid sigmoid_ sigmoid_backward sign silu silu_ silu_backward sin _softmax softmax
    _softmax_backward_data sort sqrt sqrt_ stack std sub sub_ sum tanh tanh_backward threshold_backward
    _to_copy topk tril triu uniform_ upsample_nearest2d upsample_nearest2d_backward var var_mean where zero_
    zeros zeros_like""".split()  # noqa: SIM905 - names as words
)

# Those of them that do not read their first operand: it is written, or only gives the shape.
UNREAD = frozenset(
    """copy_ fill_ full_like new_full new_ones new_zeros normal_ ones_like uniform_ zero_
    zeros_like""".split()  # noqa: SIM905 - names as words
)

# Operators that read from their first operand only what they are given indices for, and those that only write
# so much of it.
GATHERS = frozenset({"gather", "index", "index_select"})
SCATTERS = frozenset({"index_copy_", "index_put_", "scatter_"})
# Those that add to what is there, which they read.
ADDS = frozenset({"index_add_", "scatter_add_"})

# Operators that ATen's CPU library makes of others, by torch's profiler: what each of those reads and writes,
# x being as large as the largest operand, z as the smallest, y as the first result, h as half of it and i as
# an index. One without sizes is an operator of another table, on the same arguments. What ATen does to
# numbers, to operands that are not contiguous, and to what a sum or a product starts from is part of the
# kernel.
COMPOSED = {
    "affine_grid_generator": "linspace:i mul:ii div:ii copy_:h " * 2 + "fill_:h bmm:xyhy",
    "constant_pad_nd": "fill_:y copy_:xx",
    "eye": "zero_:y eye",
    "index_copy": "copy_:yy index_copy_",
    "index_put": "clone:yy index_put_",
    "logsumexp": "amax:xy abs:yy eq:yy masked_fill_:yy sub:xyx exp_:xx sum:xy log_:yy add_:yyy",
    "masked_fill": "clone:yy masked_fill_:yy",
    "max_pool2d_with_indices_backward": "zero_:y max_pool2d_with_indices_backward",
    "mean": "sum:xy div_:yy",
    "mse_loss": "mse_loss:xxx sum:xy div_:yy",
    "mse_loss_backward": "zero_:y mse_loss_backward",
    "native_batch_norm_backward": "zero_:z native_batch_norm_backward",
    "nll_loss_backward": "zero_:y nll_loss_backward",
    "repeat": "copy_:xy arange:i add:ii cat:ii",
    "scatter": "copy_:yy scatter_",
    "scatter_add": "copy_:yy scatter_add_",
    "select_backward": "zero_:y copy_:xx",
    "slice_backward": "zero_:y copy_:xx",
}


class UnknownOperatorError(UserError):
    """An operator that no table has, so that its cost is unknown."""


@dataclass
class Roles:
    """The tracer's knowledge beyond one call: the stage, and the parts that storages and shapes belong to."""

    stage: str = FORWARD
    weights: Mapping[int, str] = field(default_factory=dict)
    # Of several parts that have weights of a shape, the last.
    shapes: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    # The storages that weights were multiplied with.
    inputs: set[int] = field(default_factory=set)

    def of_product(self, operands: Sequence[Tensor], result: Tensor) -> tuple[str, str]:
        """Which pass a matrix product belongs to, and which part's weights it has.

        In the backward pass, a product with a weight is the input's gradient; a product with the input, of a
        weight's shape, is that weight's. The shape alone is not enough: comparing as many samples as there
        are classes has gradients of the classifier's shape.
        """
        part, keys = self.part(operands), set(map(storage_key, operands))
        if part:
            self.inputs |= keys
        if part or self.stage != GRAD_INPUT or not keys & self.inputs:
            return self.stage, part
        shape = tuple(result.shape)
        part = self.shapes.get(shape) or self.shapes.get(shape[::-1], "")
        return (GRAD_WEIGHT if part else GRAD_INPUT), part

    def part(self, operands: Sequence[Tensor]) -> str:
        """The part that one of the operands is a weight of; empty if none is."""
        return next((self.weights[key] for key in map(storage_key, operands) if key in self.weights), "")


def storage_key(tensor: Tensor) -> int:
    """The identity of a tensor's storage; views share it."""
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 - meta storages have no address


def size_bytes(tensor: Tensor) -> int:
    """The bytes of a tensor's elements in memory, where those that ``expand`` repeats are once."""
    sides = zip(tensor.shape, tensor.stride(), strict=True)
    return prod(size for size, stride in sides if stride or not size) * tensor.element_size()


def tensors(values: Any) -> list[Tensor]:
    """The tensors among nested arguments, or in a tree."""
    return [leaf for leaf in leaves(values) if isinstance(leaf, Tensor)]


def kernels_of(name: str, arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    """The kernels of one operator call; its name is without overload, such as "addmm"."""
    if name in FREE:
        return []
    if name in PRODUCTS:
        return PRODUCTS[name](arguments, result, roles)
    if name in COMPOSED:
        return _composed(name, arguments, result, roles)
    if _place_of(name) in MOVES:
        return _each(name, arguments, result, roles)
    if name in GATHERS | SCATTERS | ADDS | MOVES:
        return _moving(name, arguments, result, roles.stage)
    if name.rstrip("_") in RANDOM and is_drawing():
        return [Kernel.moving(name, sum(map(size_bytes, tensors(result))), roles.stage)]
    if name.rstrip("_") in RANDOM:
        raise UnknownOperatorError(
            f"the operator aten.{name} draws random numbers outside of a module's training pass",
            hint="leave it out: a client's work must give the same result in every engine; give a model that "
            "draws, as by dropout, as {name: module, path: my.py}; to augment data, set task.augment",
        )
    raise UnknownOperatorError(
        f"the cost of the operator aten.{name} is unknown",
        hint="use another operator, or add this one to a table in edgefl/compute/kernels.py",
    )


def _moving(name: str, arguments: Sequence[Any], result: Any, stage: str) -> list[Kernel]:
    """One kernel that reads operands and writes results; of what it indexes, what indices tell."""
    if name in MOVES:
        operands = {storage_key(one): size_bytes(one) for one in tensors(arguments[name in UNREAD :])}
        moved = sum(operands.values()) + sum(map(size_bytes, tensors(result)))
    else:
        given = tensors(arguments[1:])
        numbers = result.numel() if name in GATHERS else max(one.numel() for one in given)
        touched = (1 if name in SCATTERS else 2) * numbers * result.element_size()
        moved = touched + sum(map(size_bytes, given)) if numbers else 0
    return [Kernel.moving(name, moved, stage)] if moved else []


def _place_of(name: str) -> str:
    """The operator that a list operator applies to each item, such as "add" for "_foreach_add_"; else ""."""
    each = name.removeprefix("_foreach_")
    if each == name:
        return ""
    return each if each in MOVES else each.rstrip("_")


def _each(name: str, arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    """A list operator starts one kernel for each item of its lists."""
    lists = [argument for argument in arguments if isinstance(argument, list | tuple) and tensors(argument)]
    written = result if isinstance(result, list | tuple) and result else lists[0] if lists else []
    read = lists[_place_of(name) in UNREAD :]
    loose = sum(size_bytes(argument) for argument in arguments if isinstance(argument, Tensor))
    moved = [sum(map(size_bytes, [out, *(one[place] for one in read)])) for place, out in enumerate(written)]
    return [Kernel.moving(name, each + loose, roles.stage) for each in moved]


def _composed(name: str, arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    """The kernels of an operator that calls others one after another; see ``COMPOSED``."""
    steps, given = COMPOSED[name].split(), list(map(size_bytes, tensors(arguments)))
    if name == "mse_loss":
        # By default their mean; 0 is each loss, 2 their sum.
        steps = steps[: {0: 1, 2: 2}.get(next(iter(arguments[2:]), 1))]
    y = size_bytes(tensors(result)[0])
    sizes = {"x": max(given, default=0), "z": min(given, default=0), "y": y, "h": y // 2, "i": 8}
    kernels = []
    for op, _, moved in (step.partition(":") for step in steps):
        if moved:
            kernels.append(Kernel.moving(op, sum(sizes[one] for one in moved), roles.stage))
        else:
            kernels += _moving(op, arguments, result, roles.stage)
    return [kernel for kernel in kernels if kernel.bytes]


def _matrices(name: str, arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    """A product of two matrices, or of batches of them; a bias, if any, comes before them."""
    operands = tensors(arguments)
    first, second = operands[-2:]
    (*batch, m, k), n = first.shape, second.shape[-1]
    moved = sum(map(size_bytes, [*operands, result]))
    role = roles.of_product((first, second), result)
    return [Kernel.multiplying(name.rstrip("_"), Product(m, n, k, prod(batch)), moved, *role)]


def _factored(name: str, arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    """A matrix (m x n) factored, or solved for r sides, as a product of n x k and k x n; see ``FACTORED``."""
    # Its factor comes second.
    matrix, *sides = tensors(arguments)[:: -1 if name == "cholesky_solve" else 1]
    *batch, m, n = matrix.shape
    # A vector is one right side, and sides on the left are rows.
    rights = tensors(result)[0].numel() // (prod(batch) * n) if sides and matrix.numel() else 0
    sizes = max(m, n), min(m, n), rights
    # n^2 / 3 times so many are the 2 n^2 k operations of the product.
    k = ceil(sum(each * size for each, size in zip(FACTORED[name], sizes, strict=True)) / 6)
    product = Product(min(m, n), min(m, n), k, prod(batch))
    moved = sum(map(size_bytes, tensors([matrix, sides, result])))
    return [Kernel.multiplying(name.removeprefix("_linalg_"), product, moved, roles.stage)]


def _convolution(arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:
    x, weight, bias = arguments[:3]
    product = convolution(x.shape, weight.shape, result.shape, arguments[8], transposed=arguments[6])
    moved = sum(map(size_bytes, tensors([x, weight, bias, result])))
    kernel = Kernel.multiplying("convolution", product, moved, roles.stage, roles.part([weight]))
    return [kernel._replace(filtering=_filtering(arguments[1:9]))]


def _convolution_backward(arguments: Sequence[Any], result: Any, roles: Roles) -> list[Kernel]:  # noqa: ARG001 - the signature of all products
    grad, x, weight = arguments[:3]
    transposed, groups, (wants_input, wants_weight, wants_bias) = arguments[7], *arguments[9:11]
    forward = convolution(x.shape, weight.shape, grad.shape, groups, transposed=transposed)
    outer, channels, inner = weight.shape[0] // groups, weight.shape[1], prod(weight.shape[1:])
    moved, part = sum(map(size_bytes, (grad, x, weight))), roles.part([weight])
    kernels = []
    if wants_input:
        n, k = (outer, inner) if transposed else (channels, outer * prod(weight.shape[2:]))
        phases = 0 if transposed else _phases(weight, arguments[4], arguments[6])
        sides = places(x.shape), n, k, groups
        # The forward pass's operations, also of a strided convolution, by phase decomposition.
        work = *sides, forward.flops, moved, phases
        kernels.append(Kernel("convolution", forward.kind, GRAD_INPUT, part, *work))
    if wants_weight:
        product = Product(outer, inner, forward.m, groups, forward.kind)
        kernels.append(Kernel.multiplying("convolution", product, moved, GRAD_WEIGHT, part))
    kernels = [kernel._replace(filtering=_filtering(arguments[2:10])) for kernel in kernels]
    if wants_bias:
        written = grad.shape[1] * grad.element_size()
        kernels.append(Kernel.moving("sum", size_bytes(grad) + written, GRAD_INPUT))
    return kernels


def _filtering(arguments: Sequence[Any]) -> int:
    """See ``Kernel.filtering``; takes a convolution's arguments from its weight on."""
    weight, _, stride, _, dilation, transposed, _, groups = arguments
    plain = groups == 1 and not transposed and max(*stride, *dilation) == 1
    return int(plain and tuple(weight.shape[2:]) == (3, 3))


def _phases(weight: Tensor, stride: Sequence[int], dilation: Sequence[int]) -> int:
    """How many of a stride's phases meet any of the weight's taps; 0 without a stride."""
    if max(stride) == 1:
        return 0
    sides = zip(weight.shape[2:], stride, dilation, strict=True)
    return prod(len({tap * apart % step for tap in range(size)}) for size, step, apart in sides)


# Operations of factoring a matrix (m x n, m >= n) or solving for r right sides: n^2 / 3 times so many of m, n
# and r, by Golub and Van Loan 2013, Sections 8.3.3 (eigenvectors of a symmetric matrix: 9 n^3), 8.6 (thin
# singular vectors: 14 m n^2 + 8 n^3; a pseudo-inverse multiplies them: 2 m n^2), 3.1 (a triangle: n^2 r), 3.2
# (LU: 2/3 n^3, then two triangles; an inverse: 2 n^3) and 4.2 (Cholesky: n^3 / 3).
FACTORED = {
    "_linalg_eigh": (0, 27, 0),
    "_linalg_svd": (42, 24, 0),
    "linalg_pinv": (48, 24, 0),
    "linalg_solve_triangular": (0, 0, 3),
    "_linalg_solve_ex": (0, 2, 6),
    "linalg_inv_ex": (0, 6, 0),
    "linalg_cholesky_ex": (0, 1, 0),
    "cholesky_solve": (0, 0, 6),
}
PRODUCTS: dict[str, Callable[[Sequence[Any], Any, Roles], list[Kernel]]] = {
    **{name: partial(_matrices, name) for name in ("mm", "bmm", "addmm", "addmm_", "baddbmm_")},
    **{name: partial(_factored, name) for name in FACTORED},
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
}
