"""The torch side of a plan: federated data, nets, methods and codecs."""

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
        federation: the data, split among clients.
        nets: one for each model of the scenario.
        methods: the method built on each net.
        client_models: for each client, the index of its net and method.
        augmentations: the augmentations of training batches; see ``augment``.
        down: the codec of payloads to clients.
        up: the codec of uploads to the server.
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
        """The augmentation of a phase's batches; None for none."""
        return self.augmentations[_key(phase.augment)]


Need: TypeAlias = Literal["pixels", "labels", "embedded", "nothing"]


class DataAccess:
    """Access to datasets' files, and caches shared by the runs of a sweep.

    Attributes:
        traces: device-independent costs, by everything that they depend on: runs that differ only in seed,
            fleet or learning rate are traced once.
    """

    def __init__(self, folder: Path | None = None, *, download: bool = True, need: Need = "pixels") -> None:
        """Configures the access.

        Args:
            folder: the data folder; None for the default.
            download: whether missing files may be downloaded.
            need: "pixels" for training; "labels" if available, else assumed as balanced as possible;
                "embedded" for the labels of sources with ``EMBEDDED = True``, whose data come with a package
                and so are available everywhere; "nothing" to always assume them.
        """
        self.folder = folder
        self.download = download
        self.need = need
        self._read: dict[str, Arrays | None] = {}
        self.traces: dict[str, tuple[Trace, ...]] = {}

    def arrays(self, name: str, source: ModuleType) -> Arrays | None:
        """A dataset's content; None if it is not needed or, for labels alone, not available."""
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
            local: Arrays = source.load(self.folder, download=False)
        except DataError:
            if self.folder is not None:
                raise
            return None
        return local


def data_of(spec: LearningSpec, document: Document, access: DataAccess) -> Federation:
    """The data, split among clients.

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
    """The augmentations of all phases, by ``_key``: the task's, and those that phases choose themselves."""
    chosen: dict[str, tuple[Component, tuple[str, str]]] = {_key(None): (task, ("task", "augment"))}
    for method in methods:
        for exchange in method.exchanges:
            for phase in exchange.work.phases:
                if phase.augment is not None:
                    chosen[_key(phase.augment)] = (phase.augment, ("method", "augment"))
    found: dict[str, Augmentation | None] = {}
    for key, (component, path) in chosen.items():
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
        raise UserError(f"the {kind} {name!r} has no function 'build'", where=str(module.__file__))
    return found


def _no_result(module: ModuleType, kind: str, found: object) -> UserError:
    expected = "edgefl.protocol.Method" if kind == "method" else "edgefl.protocol.Net"
    what = f"its build returned {type(found).__name__}, not {expected}"
    return UserError(
        f"this {kind} cannot be used: {what}",
        where=str(module.__file__),
        hint="return the object built; see docs/extending.md for an example",
    )


def build_method(
    component: Component, document: Document, path: Sequence[str | int], net: Net, local: Local
) -> Method:
    """A method on a net, with the base that its parameters name.

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
            f"{component.name} has two exchanges of the same name: {', '.join(names)}",
            where=where,
            hint="a method cannot be its own base; choose another",
        )
    return method


def _check_fit(methods: tuple[Method, ...], nets: tuple[Net, ...], name: str, document: Document) -> None:
    """Refuses models whose clients would receive payloads of different shapes: the server has one state."""
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
                hint="choose one model, or a method that sends shared parts only, such as fedclassavg",
            )
