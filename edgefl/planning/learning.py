"""The torch side of a plan: data shared out, nets and methods built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.core.errors import ScenarioError
from edgefl.core.params import Component
from edgefl.core.scenario import Draft
from edgefl.core.yamls import Document
from edgefl.data import Augmenter, Federation, augmenter, federate, unseen
from edgefl.planning.components import completed, resolve
from edgefl.protocol import Method, Net, Site


@dataclass(frozen=True)
class Learning:
    """What engines need and the world does not.

    Attributes:
        federation: the data, shared out.
        nets: one for each model of the scenario.
        methods: the method built on each net.
        augment: the task's augmentation.
        settings: task, models and method with every parameter written out.
    """

    federation: Federation
    nets: tuple[Net, ...]
    methods: tuple[Method, ...]
    augment: Augmenter
    settings: dict[str, Any]


@dataclass(frozen=True)
class DataAccess:
    """How to get at a dataset's files.

    Attributes:
        folder: where they lie; None for the default place.
        download: whether they may be fetched.
        needed: whether pixels are needed; without, labels are assumed balanced where files are absent.
    """

    folder: Path | None = None
    download: bool = True
    needed: bool = True


def learn_from(draft: Draft, access: DataAccess) -> Learning:
    """Resolves everything of a scenario that torch needs.

    Raises:
        UserError: a name, a parameter or the data is wrong, or the models do not fit the method.
    """
    scenario, document = draft.scenario, draft.document
    task = scenario.task
    source, source_params = resolve("datasets", task.dataset, document, ["task", "dataset"])
    partition, partition_params = resolve("partitions", task.partition, document, ["task", "partition"])
    _, augment_params = resolve("augmentations", task.augment, document, ["task", "augment"])
    arrays = source.load(access.folder, download=access.download) if access.needed else None
    federation = federate(
        source.SPEC,
        arrays if arrays is not None else unseen(source.SPEC),
        lambda labels, rng: partition.split(partition_params, labels, source.SPEC.classes, task.clients, rng),
        seed=scenario.seed,
        personal_test=task.personal_test,
        holdout=scenario.evaluate.holdout if scenario.evaluate.on == "holdout" else 0.0,
    )
    nets, models = _nets(draft, federation)
    methods = tuple(build_method(draft, scenario.method, net, ["method"]) for net in nets)
    _check_fit(methods, nets, scenario.method.name, document)
    method_params = resolve("methods", scenario.method, document, ["method"])[1]
    settings = {
        "dataset": completed(task.dataset, source_params),
        "partition": completed(task.partition, partition_params),
        "augment": completed(task.augment, augment_params),
        "models": models,
        "method": completed(scenario.method, method_params),
    }
    return Learning(federation, nets, methods, augmenter(task.augment), settings)


def _nets(draft: Draft, federation: Federation) -> tuple[tuple[Net, ...], list[dict[str, Any]]]:
    nets, settings = [], []
    for index, model in enumerate(draft.scenario.models):
        path = ["model", index] if isinstance(draft.scenario.model, tuple) else ["model"]
        module, params = resolve("models", model, draft.document, path)
        nets.append(module.build(params, federation.spec.shape, federation.spec.classes))
        settings.append(completed(model, params))
    return tuple(nets), settings


def build_method(draft: Draft, component: Component, net: Net, path: list[str | int]) -> Method:
    """A method on a net, and below it the base that its parameters name."""
    module, params = resolve("methods", component, draft.document, path)
    base = getattr(params, "base", None)

    def build_base(inner: Net) -> Method:
        if base is None:
            raise AssertionError(f"{component.name} asks for a base but has no parameter of that name")
        return build_method(draft, base, inner, [*path, "base"])

    method: Method = module.build(params, Site(net, draft.scenario.local, build_base))
    return method


def _check_fit(methods: tuple[Method, ...], nets: tuple[Net, ...], name: str, document: Document) -> None:
    """All clients must receive payloads of the same shapes: the server has one state for them all."""
    first, *others = [
        {exchange.name: _shapes(exchange.down(method.server(net.on_meta()), 0)) for exchange in method.exchanges}
        for method, net in zip(methods, nets, strict=True)
    ]
    for net, other in zip(nets[1:], others, strict=True):
        if other != first:
            raise ScenarioError(
                f"{name} sends parts whose shapes differ between {nets[0].name} and {net.name}",
                where=str(document.place(["model"])),
                hint="take one model, or a method that sends what the models share, such as fedclassavg or local",
            )


def _shapes(payload: Any) -> Any:
    return {part: {key: tuple(leaf.shape) for key, leaf in tree.items()} for part, tree in payload.items()}
