"""The torch side of a plan: data shared out, nets and methods built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

from edgefl.core.components import resolve
from edgefl.core.cost import Trace
from edgefl.core.errors import DataError, EdgeflError, ScenarioError, UserError
from edgefl.core.params import Component
from edgefl.core.scenario import LearningSpec, Wire
from edgefl.core.training import Local
from edgefl.core.yamls import Document
from edgefl.data import Arrays, Augmentation, Federation, channels_last, federate
from edgefl.planning.wire import codec
from edgefl.protocol import Method, Net, Phase, Site, shapes
from edgefl.protocol.codec import Codec


@dataclass(frozen=True)
class Learning:
    """What engines need and the world does not.

    Attributes:
        spec: the settings, with every component's parameters written out.
        federation: the data, shared out.
        nets: one for each model of the scenario.
        methods: the method built on each net.
        client_models: for each client, the index of its net and method.
        augmentations: what changes training batches; see ``augment``.
        down: how payloads travel to clients.
        up: how uploads travel to the server.
    """

    spec: LearningSpec
    federation: Federation
    nets: tuple[Net, ...]
    methods: tuple[Method, ...]
    client_models: list[int]
    augmentations: Mapping[str, Augmentation | None]
    down: Codec
    up: Codec

    def augment(self, phase: Phase) -> Augmentation | None:
        """The augmentation of a phase's batches; None is none."""
        return self.augmentations[_key(phase.augment)]


Need: TypeAlias = Literal["pixels", "labels", "embedded", "nothing"]


class DataAccess:
    """How to get at datasets' files, and what the runs of one sweep share.

    Attributes:
        traces: what work costs before any device, by everything that it depends on: runs that differ in
            seed, fleet or learning rate alone are traced once.
    """

    def __init__(self, folder: Path | None = None, *, download: bool = True, need: Need = "pixels") -> None:
        """Says where files are.

        Args:
            folder: where they lie; None for the default place.
            download: whether they may be fetched.
            need: "pixels" for training; "labels" where they are at hand, else assumed as balanced as can be;
                "embedded" for the labels of a source that says ``EMBEDDED = True``, as its data come with a
                package and so are at hand everywhere; "nothing" to assume them always.
        """
        self.folder = folder
        self.download = download
        self.need = need
        self._read: dict[str, Arrays | None] = {}
        self.traces: dict[str, tuple[Trace, ...]] = {}

    def arrays(self, name: str, source: ModuleType) -> Arrays | None:
        """A dataset's content; None where it is not needed or, for labels alone, not at hand."""
        if self.need == "nothing" or (self.need == "embedded" and not getattr(source, "EMBEDDED", False)):
            return None
        if name not in self._read:
            found = self._load(source)
            self._read[name] = found and channels_last(found)
        return self._read[name]

    def _load(self, source: ModuleType) -> Arrays | None:
        if self.need == "pixels":
            found: Arrays = source.load(self.folder, download=self.download)
            return found
        try:
            at_hand: Arrays = source.load(self.folder, download=False)
        except DataError:
            if self.folder is not None:
                raise
            return None
        return at_hand


def data_of(spec: LearningSpec, document: Document, access: DataAccess) -> Federation:
    """The data of a learning, shared out.

    Raises:
        UserError: a name, a parameter or the data is wrong.
    """
    task = spec.task
    source, _ = resolve("datasets", task.dataset, document, ["task", "dataset"])
    partition, partition_params = resolve("partitions", task.partition, document, ["task", "partition"])
    return federate(
        source.SPEC,
        access.arrays(task.dataset.name, source),
        partial(partition.split, partition_params),
        task.clients,
        spec.seed,
        personal_test=task.personal_test,
        holdout=spec.evaluate.holdout if spec.evaluate.on == "holdout" else 0.0,
    )


def learn_from(spec: LearningSpec, document: Document, federation: Federation) -> Learning:
    """Nets, methods and codecs on a federation.

    Raises:
        UserError: a name or a parameter is wrong, or the models do not fit the method.
    """
    nets = _nets(spec, document, federation)
    methods = tuple(build_method(spec.method, document, ["method"], net, spec.local) for net in nets)
    _check_fit(methods, nets, spec.method.name, document)
    return Learning(
        spec=_completed(spec, document),
        federation=federation,
        nets=nets,
        methods=methods,
        client_models=spec.client_models,
        augmentations=_augmentations(methods, spec.task.augment, document),
        down=codec(spec.wire, "down", document),
        up=codec(spec.wire, "up", document),
    )


def _completed(spec: LearningSpec, document: Document) -> LearningSpec:
    """The record with every component's parameters written out."""

    def full(kind: str, component: Component, *path: str | int) -> Component:
        return component.completed(resolve(kind, component, document, path)[1])

    task = {
        "dataset": full("datasets", spec.task.dataset, "task", "dataset"),
        "partition": full("partitions", spec.task.partition, "task", "partition"),
        "augment": full("augmentations", spec.task.augment, "task", "augment"),
    }
    models = tuple(
        full("models", model, *_model_path(spec, index)) for index, model in enumerate(spec.models)
    )
    wire = {way: full("codecs", getattr(spec.wire, way), "wire", way) for way in ("up", "down")}
    return spec.model_copy(
        update={
            "task": spec.task.model_copy(update=task),
            "model": models if isinstance(spec.model, tuple) else models[0],
            "method": full("methods", spec.method, "method"),
            "wire": Wire(**wire),
        }
    )


def _augmentations(
    methods: tuple[Method, ...], task: Component, document: Document
) -> Mapping[str, Augmentation | None]:
    """The augmentation of every phase that trains, by ``_key``: the task's, or one of the phase's own."""
    wanted: dict[str, tuple[Component, tuple[str, str]]] = {_key(None): (task, ("task", "augment"))}
    for method in methods:
        for exchange in method.exchanges:
            for phase in exchange.work.phases:
                if phase.augment is not None:
                    wanted[_key(phase.augment)] = (phase.augment, ("method", "augment"))
    found: dict[str, Augmentation | None] = {}
    for key, (component, path) in wanted.items():
        module, params = resolve("augmentations", component, document, path)
        found[key] = None if component.name == "none" else partial(module.augment, params)
    return found


def _key(component: Component | None) -> str:
    return component.model_dump_json() if component else ""


def _model_path(spec: LearningSpec, index: int) -> list[str | int]:
    return ["model", index] if isinstance(spec.model, tuple) else ["model"]


def _nets(spec: LearningSpec, document: Document, federation: Federation) -> tuple[Net, ...]:
    nets = []
    for index, model in enumerate(spec.models):
        module, params = resolve("models", model, document, _model_path(spec, index))
        net = _builder(module, model.name, "model")(params, federation.spec.shape, federation.spec.classes)
        if not isinstance(net, Net):
            raise _no_result(module, "model", net)
        nets.append(net)
    return tuple(nets)


def _builder(module: ModuleType, name: str, kind: str) -> Callable[..., Any]:
    """A module's ``build``.

    Raises:
        UserError: it has none.
    """
    found: Callable[..., Any] | None = getattr(module, "build", None)
    if found is None:
        raise UserError(f"the {kind} {name!r} has no function build", where=str(module.__file__))
    return found


def _no_result(module: ModuleType, kind: str, found: object) -> UserError:
    wanted = "edgefl.protocol.Method" if kind == "method" else "edgefl.protocol.Net"
    what = f"its build returned {type(found).__name__}, no {wanted}"
    return UserError(
        f"this {kind} cannot be used: {what}",
        where=str(module.__file__),
        hint="return what was built; docs/extending.md has an example",
    )


def build_method(
    component: Component, document: Document, path: Sequence[str | int], net: Net, local: Local
) -> Method:
    """A method on a net, and below it the base that its parameters name.

    Args:
        component: the method.
        document: where it is named.
        path: its place there.
        net: the net.
        local: the clients' training settings.

    Raises:
        UserError: a name or a parameter is wrong, or the method cannot be built.
    """
    module, params = resolve("methods", component, document, path)
    base = getattr(params, "base", None)

    def build_base(inner: Net) -> Method:
        if base is None:
            raise AssertionError(f"{component.name} asks for a base but has no parameter of that name")
        return build_method(base, document, [*path, "base"], inner, local)

    where = str(document.place(path))
    build = _builder(module, component.name, "method")
    try:
        method = build(params, Site(net, local, build_base))
    except EdgeflError:
        raise
    except Exception as error:
        what = f"{component.name} cannot be built: {type(error).__name__}: {error}"
        raise UserError(what, where=str(module.__file__), hint=f"the scenario names it at {where}") from error
    if not isinstance(method, Method):
        raise _no_result(module, "method", method)
    names = [exchange.name for exchange in method.exchanges]
    if len(set(names)) < len(names):
        raise ScenarioError(
            f"{component.name} has two exchanges of one name: {', '.join(names)}",
            where=where,
            hint="a method cannot stand on itself; take another base",
        )
    return method


def _check_fit(methods: tuple[Method, ...], nets: tuple[Net, ...], name: str, document: Document) -> None:
    """All clients must receive payloads of the same shapes: the server has one state for them all."""
    first, *others = [
        {
            exchange.name: shapes(exchange.down(method.server(net.on_meta()), 0))
            for exchange in method.exchanges
        }
        for method, net in zip(methods, nets, strict=True)
    ]
    for place, (net, other) in enumerate(zip(nets[1:], others, strict=True), start=2):
        if other != first:
            raise ScenarioError(
                f"{name} sends parts whose shapes differ between model 1 ({nets[0].name}) "
                f"and model {place} ({net.name})",
                where=str(document.place(["model"])),
                hint="take one model, or a method that sends what they share, such as fedclassavg or local",
            )
