"""Watches operators as they run: the kernels that they start, and the memory that is alive."""

import math
import weakref
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from edgefl.compute.kernels import Roles, UnknownOperatorError, kernels_of, storage_key, tensors
from edgefl.core.cost import FORWARD, FROZEN, GRAD_INPUT, UPDATE, Kernel
from edgefl.core.user_code import raised_at
from edgefl.protocol import Carry, leaves
from edgefl.protocol.modules import layer_of
from edgefl.protocol.training import is_carry
from edgefl.protocol.whole import Dispatched

PARAMETERS = "parameters"
GRADIENTS = "gradients"
OPTIMIZER = "optimizer"
COPIES = "kept copies"
INPUT = "input"
ACTIVATIONS = "activations"
TRANSIENT = "transient"

# The layer of what no module of a net does.
OUTSIDE = "outside the layers"
# Other entries of a carry are copies of something, such as an anchor.
_CARRY_PARTS = {"weights": PARAMETERS, "slots": OPTIMIZER, "scalars": TRANSIENT}


@dataclass
class _Life:
    """One storage: its size, the first and last operator during which it was alive, its layer and part."""

    size: int
    born: int
    stage: str
    layer: str
    died: float = math.inf
    part: str = ""


class Tracer(Dispatched):  # type: ignore[no-untyped-call]
    """Records all operators' kernels and storages' lifetimes; with ``nonzero``, meta tensors have no 0.

    A layer is the innermost module of a net that is being called. In a backward pass, it is the one whose
    call made the autograd node that runs: nodes are numbered in the order in which they are made.
    """

    def __init__(self, *, nonzero: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._nonzero = nonzero
        # Of the step that began last: its kernels, and the layer of each.
        self.kernels: list[Kernel] = []
        self.layers: list[str] = []
        # The classes of the layers that were called, by name, in the order of their first calls.
        self.kinds: dict[str, str] = {}
        # (layer, number of the first autograd node of its call), innermost last
        self._calls = [(OUTSIDE, 0)]
        self._nodes: dict[int, str] = {}
        self._lives: list[_Life] = []
        self._alive: dict[int, _Life] = {}
        self._now = 0
        self._roles = Roles()
        # (when a backward pass began, when it ended)
        self._backwards: list[list[int]] = []
        # Autograd's numbers of the backward passes that have started a kernel.
        self._passes: set[int] = set()

    def __enter__(self) -> Self:
        entered = register_module_forward_pre_hook(self._entered)
        self._hooks = entered, register_module_forward_hook(self._left, always_call=True)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for hook in self._hooks:
            hook.remove()
        if isinstance(error, UnknownOperatorError):
            error.where = str(raised_at(error) or "the model or the method")
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]

    def _entered(self, module: nn.Module, *_: Any) -> None:
        layer = layer_of(module)
        if layer:
            self.kinds.setdefault(layer, type(module).__name__)
        self._calls.append((layer or self._calls[-1][0], _next_node()))

    def _left(self, *_: Any) -> None:
        layer, first = self._calls.pop()
        for number in range(first, _next_node()):
            self._nodes.setdefault(number, layer)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._nonzero and func is torch.ops.aten.nonzero.default and args[0].is_meta:
            args = (torch.ones(args[0].shape),)
        result = func(*args, **(kwargs or {}))
        self._now += 1
        node: Any = torch._C._current_autograd_node()  # noqa: SLF001 - there is no public way
        self._turn(backward=node is not None)
        layer = self._calls[-1][0]
        if node is not None:
            layer = self._nodes.get(node._sequence_nr(), OUTSIDE)  # noqa: SLF001 - as above
        arguments = [*args, *(kwargs or {}).values()]
        kernels = kernels_of(func.overloadpacket.__name__, arguments, result, self._roles)
        backward = torch._C._current_graph_task_id()  # noqa: SLF001 - there is no public way
        if kernels and backward >= 0 and backward not in self._passes:
            # The first kernel of a backward pass says so.
            self._passes.add(backward)
            kernels[0] = kernels[0]._replace(backward=1)
        self.kernels += kernels
        self.layers += [layer] * len(kernels)
        for tensor in tensors(result):
            self.watch(tensor, "", layer)
        return result

    def _turn(self, *, backward: bool) -> None:
        """Forward until autograd runs, grad-input while it runs, update from then to the next step."""
        if backward:
            if self._roles.stage != GRAD_INPUT:
                self._backwards.append([self._now, self._now])
            self._roles.stage = GRAD_INPUT
            self._backwards[-1][1] = self._now
        elif self._roles.stage == GRAD_INPUT:
            self._roles.stage = UPDATE

    def watch(self, tensor: Tensor, part: str, layer: str = OUTSIDE) -> None:
        """Follows a storage from now on; ``part`` is its part where that is known, ``layer`` made it."""
        key = storage_key(tensor)
        life = self._alive.get(key)
        if life is None:
            storage = tensor.untyped_storage()
            life = _Life(storage.nbytes(), self._now, self._roles.stage, layer)
            self._alive[key] = life
            self._lives.append(life)
            # At the interpreter's exit, no entry is needed.
            weakref.finalize(storage, self._gone, key).atexit = False
        life.part = part or life.part

    def _gone(self, key: int) -> None:
        self._alive.pop(key).died = self._now

    def begin_step(self, carry: Carry) -> list[Kernel]:
        """A new step: the stage is forward again; returns the list that its kernels will be in."""
        self.label(carry)
        # Storages that are gone do not overlap with those of this step.
        self._now += 1
        frozen, weights = dict[int, str](), dict[int, str]()
        shapes = dict[tuple[int, ...], str]()
        for each in (carry, *filter(is_carry, carry.values())):
            copies = [inner for key, inner in each.items() if key not in _CARRY_PARTS and not is_carry(inner)]
            frozen |= dict.fromkeys(map(storage_key, tensors(copies)), FROZEN)
            for part, inner in each.get("weights", {}).items():
                for weight in leaves(inner):
                    weights[storage_key(weight)] = shapes[tuple(weight.shape)] = part
        self._roles = Roles(FORWARD, frozen | weights, shapes)
        self.kernels, self.layers = [], []
        return self.kernels

    def label(self, carry: Carry) -> None:
        """Names the parts of the storages that a carry holds."""
        for key, inner in carry.items():
            if is_carry(inner):
                self.label(inner)
                continue
            for tensor in tensors(inner):
                self.watch(tensor, _CARRY_PARTS.get(key, COPIES))

    def peak(self) -> dict[str, int]:
        """The memory at its peak, by part; parts that hold nothing are left out."""
        changes = Counter[float]()
        for life in self._lives:
            changes[life.born] += life.size
            # Alive until its last operator has ended: operands and results of an operator coexist.
            changes[life.died + 1] -= life.size
        moments = sorted(changes)
        alive = list(accumulate(changes[moment] for moment in moments))
        worst = moments[alive.index(max(alive))] if alive else 0
        held = dict.fromkeys((PARAMETERS, GRADIENTS, OPTIMIZER, COPIES, INPUT, ACTIVATIONS, TRANSIENT), 0)
        for life in self._lives:
            if life.born <= worst <= life.died:
                held[self._part(life)] += life.size
        return {part: size for part, size in held.items() if size}

    def _part(self, life: _Life) -> str:
        if life.part:
            return life.part
        for began, ended in self._backwards:
            if life.born < began <= life.died and life.stage == FORWARD:
                return ACTIVATIONS
            if began <= life.born <= ended < life.died:
                return GRADIENTS
        return TRANSIENT

    def kept(self, part: str) -> Counter[str]:
        """A backward pass's bytes by layer of ``ACTIVATIONS`` or ``GRADIENTS``; of several, the most."""
        most = Counter[str]()
        for began, ended in self._backwards:
            found = Counter[str]()
            for life in self._lives:
                first = life.born < began if part == ACTIVATIONS else began <= life.born <= ended
                if first and self._part(life) == part and life.died >= began:
                    found[life.layer] += life.size
            most = max(most, found, key=Counter.total)
        return most


def _next_node() -> int:
    """The number of the next autograd node that this thread makes."""
    return int(torch._C._autograd._get_sequence_nr())  # noqa: SLF001 - there is no public way
