"""From modules to a ``Net``: pure functions of the weights, at a module's speed.

A skeleton of the module is on the meta device and holds no data. A call puts the caller's tensors in the
places of the skeleton's parameters, runs it and takes them out again, like ``torch.func.functional_call``,
but with the places looked up once: a small model's step takes a few hundred microseconds. One process uses a
net from one thread.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from edgefl.core.errors import UserError
from edgefl.core.user_code import defined_at
from edgefl.protocol.chance import drawing
from edgefl.protocol.layers import observed
from edgefl.protocol.meta_device import meta_device
from edgefl.protocol.nets import Net, Stage
from edgefl.protocol.trees import BUFFERS, Tree, tree_map


def functional_net(
    name: str,
    body: Callable[[], nn.Module],
    shape: tuple[int, int, int],
    classes: int,
    *,
    width: int,
    head_bias: bool,
    layers: tuple[str, ...] = (),
    stage: tuple[str, ...] = (),
) -> Net:
    """A net of a body and a linear head, initialised as the modules initialise themselves.

    The head's "weight" is (C, l), its "bias" (C,). Nothing is drawn when the net is called; for
    modules that draw there is ``edgefl.protocol.whole``.

    Args:
        name: for messages.
        body: makes the module x (B, *shape) -> features (B, l).
        shape: one sample's (channels, height, width).
        classes: C.
        width: l; given, because deriving it on the meta device takes two seconds of imports.
        head_bias: whether the head has a bias.
        layers: the names of the body's modules whose outputs are ``Net.layers``.
        stage: the name of the module before the last stage, and those of the body's children that make it,
            in order; empty where it has none that can be sliced.

    Raises:
        UserError: when the net is called: the body returns something else than features of this width.
    """

    def made() -> Halves:
        return Halves(body(), nn.Linear(width, classes, bias=head_bias))

    return net_of(name, made, shape, classes, layers=layers, stage=stage, at=body)


class Halves(NamedTuple):
    """A module in two: x (B, *shape) -> features (B, l), and these -> logits (B, C)."""

    body: nn.Module
    head: nn.Linear


# Opening a generator's context takes longer, at every step of a small model.
_QUIET = nullcontext()


def net_of(
    name: str,
    made: Callable[[], Halves],
    shape: tuple[int, int, int],
    classes: int,
    *,
    layers: tuple[str, ...] = (),
    stage: tuple[str, ...] = (),
    draws: bool = False,
    constants: Mapping[str, Tensor] | None = None,
    at: Callable[..., Any] | None = None,
) -> Net:
    """A net of what ``made`` makes; the other arguments are those of ``functional_net``.

    Args:
        made: makes both modules, on torch's default device.
        draws: whether the body draws random numbers in training.
        constants: the body's buffers that no training changes, by name; they are no part of the weights.
        at: what errors name the place of.
    """
    fixed = constants or {}
    with meta_device():
        body, head = made()
        skeleton, top = without_counters(body).eval(), _Skeleton("head", head)
        width = head.in_features
    trained = copy.deepcopy(skeleton).train()
    at_rest, training = _Skeleton("body", skeleton, fixed), _Skeleton("body", trained, fixed)

    def run(skeleton: _Skeleton, weights: Tree, buffers: Mapping[str, Tensor], x: Tensor) -> Tensor:
        with observed(skeleton.module, name):
            output = skeleton.call({**weights["body"], **buffers} if buffers else weights["body"], x)
        if output.shape[1:] != (width,):
            raise _of_another_shape(name, at, output, width)
        return output

    def features(weights: Tree, x: Tensor, train: bool) -> tuple[Tensor, Tree]:  # noqa: FBT001 - Net's signature
        buffers = weights[BUFFERS]
        if not train:
            return run(at_rest, weights, buffers, x), buffers
        # Batch norm writes its running statistics in place: here into copies of the input.
        new = {key: value.clone() for key, value in buffers.items()} if buffers else buffers
        with drawing(x) if draws else _QUIET:
            return run(training, weights, new, x), new

    def init(seed: int) -> Tree:
        with drawn_from(seed):
            return _initial(*made(), fixed)

    def module(weights: Tree) -> nn.Module:
        own = tree_map(lambda leaf: leaf.detach().clone(), weights)
        filled = nn.Sequential()
        filled.add_module("body", at_rest.filled({**own["body"], **own[BUFFERS]}))
        filled.add_module("head", top.filled(own["head"]))
        return filled.eval()

    return Net(
        name=name,
        init=init,
        features=features,
        head=top.call,
        shape=shape,
        classes=classes,
        feature_width=width,
        module=module,
        layers=layers,
        stage=_stage(trained, stage) if stage else None,
    )


def _stage(body: nn.Module, names: tuple[str, ...]) -> Stage:
    """The children of the body after the first of the names as its last stage."""
    before, *children = names
    modules = nn.Sequential()
    for name in children:
        modules.add_module(name, copy.deepcopy(body.get_submodule(name)))
    skeleton = _Skeleton("body", modules)

    def call(weights: Tree, x: Tensor, share: float) -> Tensor:
        body, buffers = weights["body"], weights[BUFFERS]
        # Batch norm writes its running statistics in place: into copies that nobody keeps.
        some = {
            name: _first(body[name], share) if name in body else _first(buffers[name], share).clone()
            for _, _, name in skeleton.places
        }
        return skeleton.call(some, x[:, : _part(x.shape[1], share)])

    return Stage(before, children[-1], call)


def _part(channels: int, share: float) -> int:
    return math.ceil(channels * share)


def _first(tensor: Tensor, share: float) -> Tensor:
    """The first channels of a layer's tensor: outputs, and inputs where it has any."""
    return tensor[tuple(slice(_part(side, share)) for side in tensor.shape[:2])]


def _of_another_shape(name: str, at: Callable[..., Any] | None, output: Tensor, width: int) -> UserError:
    """The body's output is not features of the width that the head takes."""
    samples, *rest = output.shape
    flat = math.prod(rest)
    fixes = ["end the body with nn.Flatten()"] if rest != [flat] else []
    fixes += [f"call functional_net with width={flat}"] if flat != width else []
    return UserError(
        f"the body of {name!r} returns {tuple(output.shape)} for {samples} samples; its head takes "
        f"{(samples, width)}",
        where=str((at and defined_at(at)) or ""),
        hint=" and ".join(fixes),
    )


def _initial(body: nn.Module, head: nn.Module, constants: Mapping[str, Tensor]) -> Tree:
    """The tensors of two new modules, by part."""
    buffers = without_counters(body).named_buffers()
    return {
        "body": {name: value.detach() for name, value in body.named_parameters()},
        "head": {name: value.detach() for name, value in head.named_parameters()},
        BUFFERS: {name: value for name, value in buffers if name not in constants},
    }


_LAYERS: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


def layer_of(module: nn.Module) -> str:
    """A module's dotted name within its net, such as "body.conv1"; empty if it is not a net's."""
    return _LAYERS.get(module, "")


class _Skeleton:
    """A module on the meta device and the places of its tensors; ``part`` is the part of the net it is."""

    def __init__(self, part: str, module: nn.Module, constants: Mapping[str, Tensor] | None = None) -> None:
        self.module = module
        self._fixed = {torch.device("cpu"): constants or {}}
        for name, inner in module.named_modules():
            _LAYERS[inner] = f"{part}.{name}" if name else part
        # An attribute in the instance's own dict hides the parameter of that name, and bypasses
        # nn.Module's slow ``__getattr__``.
        self.places = [(vars(inner), key, name) for inner, key, name in _places(module)]

    def call(self, tensors: Mapping[str, Tensor], x: Tensor) -> Tensor:
        """The module on ``x`` with the tensors of these names; afterwards it holds none of them.

        Raises:
            KeyError: a tensor of the module is missing.
        """
        fixed = self._on(x.device)
        if fixed:
            tensors = {**tensors, **fixed}
        try:
            for attributes, key, name in self.places:
                attributes[key] = tensors[name]
            result: Tensor = self.module(x)
            return result
        finally:
            for attributes, key, _ in self.places:
                attributes.pop(key, None)

    def _on(self, device: torch.device) -> Mapping[str, Tensor]:
        """The constants on a device."""
        if device not in self._fixed:
            values = self._fixed[torch.device("cpu")]
            self._fixed[device] = {name: value.to(device) for name, value in values.items()}
        return self._fixed[device]

    def filled(self, tensors: Mapping[str, Tensor]) -> nn.Module:
        """A copy of the module that holds these tensors, the parameters with gradients enabled."""
        module, constants = copy.deepcopy(self.module), self._on(torch.device("cpu"))
        for inner, key, name in _places(module):
            value = constants[name].clone() if name in constants else tensors[name]
            setattr(inner, key, nn.Parameter(value) if key in vars(inner)["_parameters"] else value)
        return module


def _places(module: nn.Module) -> list[tuple[nn.Module, str, str]]:
    """The module's parameters, and then its buffers, in the order of its state.

    Each as the module that holds it, its key there, and its name in the state: the first of a tensor that has
    several.
    """
    names: dict[int, str] = {}
    return [
        (inner, key, names.setdefault(id(tensor), f"{prefix}.{key}" if prefix else key))
        for kind in ("_parameters", "_buffers")
        for prefix, inner in module.named_modules()
        for key, tensor in vars(inner)[kind].items()
        if tensor is not None
    ]


def without_counters(module: nn.Module) -> nn.Module:
    """The module, its batch norms without ``num_batches_tracked``.

    The counter serves only a norm whose momentum is None. It is an integer, which a mean over clients would
    not keep one, so it is neither sent nor averaged.
    """
    for inner in module.modules():
        if isinstance(inner, _BatchNorm):
            inner.num_batches_tracked = None
    return module


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Modules made inside draw from ``seed`` alone and do not change torch's generator.

    They are made on the CPU, whatever the default device, so that an accelerator never changes the initial
    weights; or on the meta device if that is the default, for shapes without data.
    """
    device = "meta" if torch.get_default_device().type == "meta" else "cpu"
    with torch.random.fork_rng(devices=[]), torch.device(device):
        torch.default_generator.manual_seed(seed)
        yield
