"""From a whole module, images to logits, to a ``Net``: its head is found, and what precedes it is the body.

The module is called on images without data to learn its head, its layers, and whether it draws random numbers
in training. What no net can be is refused with the layer's name.
"""

import copy
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.lazy import LazyModuleMixin
from torch.utils._python_dispatch import TorchDispatchMode

from edgefl.core.errors import UserError, in_one_line, nearest
from edgefl.core.user_code import explained
from edgefl.protocol.meta_device import meta_device
from edgefl.protocol.modules import Halves, drawn_from, net_of, without_counters
from edgefl.protocol.nets import Net

_SAMPLES = 2
# Without the sigmoids, which are gates.
_ACTIVATIONS = tuple(
    getattr(nn, name)
    for name in """ReLU ReLU6 LeakyReLU PReLU ELU SELU CELU GELU SiLU Mish Hardswish Hardtanh Softplus
    Tanh""".split()  # noqa: SIM905 - names as words
)


def net_of_module(
    name: str,
    make: Callable[[], nn.Module],
    shape: tuple[int, int, int],
    classes: int,
    *,
    head: str | None = None,
    layers: Sequence[str] = (),
) -> Net:
    """A net that computes what a module does.

    Args:
        name: for messages.
        make: makes the module on the CPU, by torch's generator.
        shape: one sample's (channels, height, width).
        classes: C.
        head: the name of the linear layer whose output are the logits; None finds it.
        layers: the names of those whose outputs are ``Net.layers``; by default activations that are modules,
            of one called several times the block around it; else layers with weights.

    Raises:
        UserError: it cannot be a net.
    """
    refuse, others = partial(_refusal, name), _others()
    with drawn_from(0), torch.device("cpu"):
        module = without_counters(make())
    _check_layers(module, refuse)
    bare = _on_meta(module)
    seen = _called(bare.eval(), shape, refuse)
    top = _head(bare, seen, classes, head, refuse)
    draws = _draws(bare, shape, top, refuse)
    if others != _others():
        raise refuse("it draws by NumPy or Python, which no seed of the run reaches", "draw by torch")

    def made() -> Halves:
        body = copy.deepcopy(bare) if torch.get_default_device().type == "meta" else make()
        own = cast("nn.Linear", body.get_submodule(top))
        body.set_submodule(top, _Through(own))
        return Halves(body, own)

    return net_of(
        name,
        made,
        shape,
        classes,
        layers=tuple(layers) if layers else _layers(bare, seen, top),
        draws=draws,
        constants=_constants(module),
        at=type(module).forward,
    )


class _Through(nn.Identity):
    """In place of the head; a module's ``forward`` may ask for the head's widths."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = head.in_features, head.out_features


def _refusal(name: str, what: str, hint: str = "", where: str = "model") -> UserError:
    return UserError(f"{name} cannot be trained: {what}", where=where, hint=hint)


_Refuse: TypeAlias = Callable[..., UserError]


def _named(module: nn.Module, path: str) -> str:
    return f"{path!r} ({type(module.get_submodule(path)).__name__})" if path else "it"


def _check_layers(module: nn.Module, refuse: _Refuse) -> None:
    """Refuses layers that are known not to work."""
    for path, layer in module.named_modules():
        at = _named(module, path)
        if isinstance(layer, nn.RNNBase | nn.RNNCellBase):
            raise refuse(f"{at} is recurrent, and the costs of recurrent layers are unknown")
        if isinstance(layer, LazyModuleMixin):
            raise refuse(f"{at} does not know its size yet", "give the layer's sizes")
        if isinstance(layer, _BatchNorm) and layer.momentum is None and layer.track_running_stats:
            raise refuse(f"{at} averages over all batches, whose count is not kept", "give it a momentum")
        for key, value in vars(layer).items():
            if isinstance(value, Tensor):
                what = f"{at} has the tensor {key!r}, which is neither a parameter nor a buffer"
                raise refuse(what, f"use self.register_buffer({key!r}, ..., persistent=False)")
    for name, value in module.named_parameters():
        if not value.requires_grad:
            hint = "methods choose the parts that are trained: leave requires_grad as it is"
            raise refuse(f"its {name!r} is frozen, and all weights would be trained", hint)


def _on_meta(module: nn.Module) -> nn.Module:
    """A copy without data, in which the same parameters are shared."""
    bare, known = copy.deepcopy(module).to("meta"), dict[int, nn.Parameter]()
    for name, value in module.named_parameters(remove_duplicate=False):
        own = known.setdefault(id(value), bare.get_parameter(name))
        layer, _, key = name.rpartition(".")
        setattr(bare.get_submodule(layer), key, own)
    return bare


def _constants(module: nn.Module) -> dict[str, Tensor]:
    """The buffers that are no running statistics: those that a state leaves out, and whole numbers."""
    return {
        f"{path}.{key}" if path else key: value
        for path, layer in module.named_modules()
        for key, value in layer.named_buffers(recurse=False)
        if key in layer._non_persistent_buffers_set or not value.is_floating_point()  # noqa: SLF001 - no other way
    }


class _Calls(NamedTuple):
    """One evaluation: each module's name and output in the order of the calls' ends, and the result."""

    outputs: list[tuple[str, Any]]
    result: Any


def _called(module: nn.Module, shape: Sequence[int], refuse: _Refuse) -> _Calls:
    outputs: list[tuple[str, Any]] = []

    def keep(name: str) -> Any:
        return lambda layer, given, output: outputs.append((name, output))  # noqa: ARG005 - a hook's signature

    hooks = [layer.register_forward_hook(keep(name)) for name, layer in module.named_modules() if name]
    try:
        with _Draws(refused=True):
            result = _passed(module, shape, refuse)
    finally:
        for hook in hooks:
            hook.remove()
    return _Calls(outputs, result)


class _DrawnError(Exception):
    """A random number is drawn."""


class Dispatched(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class hook has no types
    """Sees every operator that runs inside; importing torch's compiler, which takes a second, is no need."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class _Draws(Dispatched):  # type: ignore[no-untyped-call]
    """Sees whether random numbers are drawn."""

    def __init__(self, *, refused: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.refused = refused
        self.any = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            if self.refused:
                raise _DrawnError
            self.any = True
        return func(*args, **(kwargs or {}))


def _passed(module: nn.Module, shape: Sequence[int], refuse: _Refuse) -> Any:
    """What the module returns for images without data; a ``UserError`` where its code fails."""
    sides = "x".join(map(str, shape))
    try:
        with meta_device(), torch.no_grad():
            return module(torch.empty(_SAMPLES, *shape))
    except _DrawnError as error:
        at = explained(error)
        what, hint = "it draws random numbers in evaluation", "pass training=self.training to F.dropout"
        raise refuse(what, hint, at.where if at else "model") from error
    except Exception as error:  # a user's code may raise anything
        told = explained(error) or refuse(in_one_line(error))
        told.what = f"{told.what} (it was called on images of {sides})"
        raise told from error


def _head(bare: nn.Module, seen: _Calls, classes: int, given: str | None, refuse: _Refuse) -> str:
    """The name of the head.

    Raises:
        UserError: the module does not return the output of a linear layer, or not one logit for each class.
    """
    result = seen.result
    if not isinstance(result, Tensor):
        parts = f" of {len(result)}" if isinstance(result, tuple | list | dict) else ""
        what = f"it returns a {type(result).__name__}{parts} instead of logits"
        raise refuse(what, "return the classifier's output alone (torchvision's: aux_logits: false)")
    leaves = [name for name, _ in seen.outputs if not [*bare.get_submodule(name).children()]]
    linear = {name for name in leaves if isinstance(bare.get_submodule(name), nn.Linear)}
    if given is not None and given not in linear:
        raise refuse(f"its head {given!r} is no linear layer", nearest(given, sorted(linear)), "model.head")
    calls = [(name, output) for name, output in seen.outputs if name in linear]
    found = [name for name, output in calls if output is result]
    if not found or given not in {None, found[-1]}:
        last = given or (calls[-1][0] if calls else "")
        if not last:
            end = f"ends in {_named(bare, leaves[-1])}" if leaves else "has no layers"
            raise refuse(f"it {end}", "let an nn.Linear return the logits")
        after = leaves[len(leaves) - leaves[::-1].index(last) :]
        does = f"{_named(bare, after[0])} follows it" if after else "something is computed from its output"
        what = f"its result is not the output of its last linear layer, {last!r}: {does}"
        raise refuse(what, "return that layer's output: the loss takes logits, without softmax")
    (head,) = found[-1:]
    if sum(name == head for name, _ in calls) > 1:
        raise refuse(f"its head {head!r} is called several times")
    if result.shape != (_SAMPLES, classes):
        size = "x".join(map(str, result.shape[1:]))
        hint = f"make it with {classes} outputs; an argument num_classes is given the data's number"
        raise refuse(
            f"its head {head!r} returns {size} numbers an image, and the data have {classes} classes", hint
        )
    own = {id(value) for value in bare.get_submodule(head).parameters()}
    if sum(id(value) in own for _, value in bare.named_parameters(remove_duplicate=False)) > len(own):
        raise refuse(f"its head {head!r} shares its weights with another layer")
    return head


def _others() -> tuple[Any, ...]:
    """The states of the generators that are not torch's."""
    state: Any = np.random.get_state()  # noqa: NPY002 - the one that a user may use
    return random.getstate(), state[1].tobytes(), state[2]


def _draws(bare: nn.Module, shape: Sequence[int], head: str, refuse: _Refuse) -> bool:
    """Whether the module draws random numbers in training.

    Raises:
        UserError: it returns something else then, or replaces what no net can.
    """
    module = copy.deepcopy(bare).train()
    before, fixed = dict(module.named_buffers()), _constants(module)
    versions = {name: value._version for name, value in fixed.items()}  # noqa: SLF001 - as torch counts writes
    outputs: list[Any] = []
    module.get_submodule(head).register_forward_hook(lambda layer, given, output: outputs.append(output))  # noqa: ARG005
    with _Draws(refused=False) as draws:
        result = _passed(module, shape, refuse)
    if not isinstance(result, Tensor):
        raise refuse(
            f"in training it returns a {type(result).__name__} instead of logits",
            "switch its other outputs off (torchvision's: aux_logits: false)",
        )
    if not any(result is output for output in outputs):
        raise refuse(
            f"in training its result is not the output of its head {head!r}", "return that layer's output"
        )
    for name, value in module.named_buffers():
        if value is not before.get(name):
            raise refuse(
                f"its forward replaces the buffer {name!r}", f"write in place: self.{name}.copy_(...)"
            )
        if name in fixed and value._version != versions[name]:  # noqa: SLF001 - as above
            raise refuse(f"its forward changes {name!r}, which is no running statistic", "remove it")
    return bool(draws.any)


def _layers(bare: nn.Module, seen: _Calls, head: str) -> tuple[str, ...]:
    """The names of the layers whose activations tell what it has learned; see ``net_of_module``."""
    often = Counter(name for name, _ in seen.outputs)
    whole = {name: output for name, output in seen.outputs if isinstance(output, Tensor)}

    def kept(name: str) -> str:
        """The layer, or the block around it that is called once; empty if there is none."""
        while name and often[name] != 1:
            name = name.rpartition(".")[0]
        return name if name in whole and whole[name].shape[:1] == (_SAMPLES,) else ""

    inner = [(name, bare.get_submodule(name)) for name, _ in seen.outputs]
    active = [kept(name) for name, layer in inner if isinstance(layer, _ACTIVATIONS)]
    weighted = [
        kept(name) for name, layer in inner if isinstance(layer, nn.Linear | nn.Conv2d) and name != head
    ]
    return tuple(dict.fromkeys(filter(None, active or weighted)))
