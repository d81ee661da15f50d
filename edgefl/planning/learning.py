"""The torch side of a plan: federated data, nets, methods, codecs and measures."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from inspect import getfile
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from edgefl.compute import meta
from edgefl.compute.loading import batch_kernels
from edgefl.core import draws
from edgefl.core.arrays import Ints
from edgefl.core.cost import Kernel, Trace
from edgefl.core.errors import DataError, ScenarioError, UserError
from edgefl.core.fleet import Fleet
from edgefl.core.params import Component
from edgefl.core.samplers import Sampler
from edgefl.core.scenario import LearningSpec, LocalTraining, Wire
from edgefl.core.user_code import defined_at, is_users, returned
from edgefl.core.yamls import Document
from edgefl.data import Arrays, Labels, Source, Spec
from edgefl.data.augmentations import Augmentation
from edgefl.data.batching import Augment
from edgefl.data.federation import Federation, drawn_public, federate, public_images, sized
from edgefl.data.partitions import Partition
from edgefl.data.sources import Dataset
from edgefl.measures import Measure
from edgefl.methods import MethodParams
from edgefl.models import ModelParams
from edgefl.protocol import Method, Net, Phase, Site, shapes
from edgefl.protocol.codec import Channel
from edgefl.protocol.codecs import Codec
from edgefl.protocol.meta_device import meta_device, without_compiler
from edgefl.protocol.values import tensors


@dataclass(frozen=True)
class Learning:
    """What engines need and the world does not.

    Attributes:
        spec: the settings, with every component's parameters written out.
        nets: one for each model of the scenario.
        methods: the method built on each net.
        down, up: the codecs of payloads and of uploads.
        measures: what is measured of each version that is evaluated.
    """

    spec: LearningSpec
    federation: Federation
    nets: tuple[Net, ...]
    methods: tuple[Method, ...]
    down: Channel
    up: Channel
    measures: tuple[Measure, ...] = ()

    def augment(self, phase: Phase) -> Augment | None:
        """The augmentation of a phase's batches: its own, or the task's; None for none."""
        composed: Composed = self.spec.task.augment if phase.augment is None else phase.augment
        each: Any = [composed] if isinstance(composed, Component) else composed
        steps: list[Augmentation] = [one for one in each if one.name != "none"]
        return partial(_augmented, steps) if steps else None

    def made_of(self, phase: Phase, sizes: Iterable[int]) -> dict[int, list[Kernel]]:
        """The kernels that make a phase's batches, by their sizes."""
        data = self.federation.spec
        return batch_kernels(phase, self.augment(phase), data.shape, sizes, np.dtype(data.dtype).itemsize)


Composed: TypeAlias = Component | tuple[Component, ...]
Need: TypeAlias = Literal["pixels", "labels", "embedded", "nothing"]


@dataclass(eq=False)
class DataAccess:
    """Access to datasets' files, and caches shared by the runs of a sweep.

    Attributes:
        folder: the data folder; None for the default.
        download: whether missing files may be downloaded.
        need: "pixels" for training; "labels" if available, else assumed as balanced as possible; "embedded"
            for the labels of sources with ``EMBEDDED = True``, whose data come with a package and so are
            available everywhere; "nothing" to assume them. Labels that are known without reading images are
            never assumed.
        traces: device-independent costs, by everything that they depend on: runs that differ only in seed,
            fleet or learning rate are traced once.
        fleets: profiles that were read, by name.
        nets: models that were built, by their parameters and the shape of the data.
    """

    folder: Path | None = None
    _: KW_ONLY
    download: bool = True
    need: Need = "pixels"
    traces: dict[str, tuple[Trace, ...]] = field(default_factory=dict, init=False)
    fleets: dict[str, Fleet] = field(default_factory=dict, init=False)
    nets: dict[str, Net] = field(default_factory=dict, init=False)
    _sources: dict[str, Source] = field(default_factory=dict, init=False)
    _contents: "dict[str, Content]" = field(default_factory=dict, init=False)

    def source(self, component: Dataset) -> Source:
        """A dataset, described but not read.

        Raises:
            UserError: its module or what its parameters name is no dataset.
        """
        key = component.model_dump_json()
        if key not in self._sources:
            found = returned(component.build(), Source, component.build, "an edgefl.data.Source")
            self._sources[key] = replace(found, where=found.where or getfile(type(component)))
        return self._sources[key]

    def content(self, component: Dataset) -> "Content":
        """A dataset's content as far as it is needed and available.

        Raises:
            DataError: the files are missing or unreadable, and are needed.
        """
        key, source, training = component.model_dump_json(), self.source(component), self.need == "pixels"
        if key in self._contents:
            return self._contents[key]
        found = Content(source.facts(), None, None if training else source.labels)
        wanted = self.need in {"pixels", "labels"} or (self.need == "embedded" and source.embedded)
        if wanted and found.labels is None:
            try:
                spec, arrays = source.read(self.folder, download=training and self.download)
                found = Content(spec, arrays, None)
            except DataError:
                if training or self.folder is not None:
                    raise
        self._contents[key] = found
        return found


class Content(NamedTuple):
    """A dataset, and its images or their labels alone, as far as they were needed and available."""

    spec: Spec
    arrays: Arrays | None
    labels: Labels | None


def data_of(spec: LearningSpec, document: Document, access: DataAccess) -> Federation:
    """The data, split among clients; a ``UserError`` if a name, a parameter or the data is wrong."""
    task, evaluate = spec.task, spec.evaluate
    source = access.source(task.dataset)
    if task.samples is not None:
        return sized(source.facts(), _drawn(task.samples, task.clients, spec.seed, document))
    partition: Partition = task.partition
    content = access.content(task.dataset)
    holdout = evaluate.holdout if evaluate.on == "holdout" else 0.0
    by_users = partition.BY_USERS
    if by_users and source.users is None:
        raise ScenarioError(
            f"{source.spec.name} does not say whose its samples are, which {partition.name} needs",
            where=document.place(["task", "partition"]),
            hint="femnist, uci-har and parquet with user: COLUMN do; or choose another partition",
        )
    federation = federate(
        content.spec,
        content.arrays,
        partition.split,
        task.clients,
        spec.seed,
        labels=content.labels,
        personal_test=task.personal_test,
        holdout=holdout,
        public=task.withheld,
        share=task.share or 1.0,
        pooled=task.pooled or 0.0,
        users=source.users if by_users else None,
    )
    if task.public is None or task.public.dataset is None or task.withheld:
        return federation
    # Public images of another dataset.
    path = ["task", "public", "dataset"]
    content, own = access.content(task.public.dataset), federation.spec
    if content.spec.shape != own.shape:
        its, theirs = ("x".join(map(str, each.shape)) for each in (content.spec, own))
        raise ScenarioError(
            f"the images of {content.spec.name} are {its}, and those of {own.name} {theirs}",
            where=document.place(path),
            hint="choose a dataset of the same shape, or none, to draw from the task's own",
        )
    x = None if content.arrays is None else torch.from_numpy(content.arrays.train_x)
    size = content.spec.train_size if x is None else len(x)
    chosen = drawn_public(size, task.public.samples, spec.seed)
    return replace(
        federation, public_x=public_images(content.spec, x, chosen), public_content=content.spec.content
    )


# What a client can have at most; more is a slip, such as a distribution without a mean.
_MOST_SAMPLES = 10**7


def _drawn(sampler: Sampler, clients: int, seed: int, document: Document) -> Ints:
    """Each client's number of samples."""
    with np.errstate(over="ignore"):
        drawn = sampler.draw(draws.uniforms(draws.derive(seed, "samples"), np.arange(clients)))
    if drawn.max() > _MOST_SAMPLES:
        raise ScenarioError(
            f"client {drawn.argmax()} would have {drawn.max():.3g} samples; the most is {_MOST_SAMPLES}",
            where=document.place(["task", "samples"]),
            hint="choose a smaller number, or a distribution with a lighter tail",
        )
    return np.maximum(np.rint(drawn), 1).astype(np.int64)


def learn_from(
    spec: LearningSpec, document: Document, federation: Federation, known: dict[str, Net] | None = None
) -> Learning:
    """Nets, methods and codecs on a federation; ``known`` as ``DataAccess.nets``.

    Raises:
        UserError: a name or a parameter is wrong, or the models do not fit the method.
    """
    nets = nets_of(spec, document, federation, {} if known is None else known)
    methods = methods_of(spec, document, nets, federation)
    check_fit(methods, nets, spec.method.name, document)
    return Learning(
        spec=spec,
        federation=federation,
        nets=nets,
        methods=methods,
        down=channel(spec.wire, "down", document),
        up=channel(spec.wire, "up", document),
        measures=spec.evaluate.measures,
    )


def _augmented(steps: Sequence[Augmentation], x: Tensor, generator: torch.Generator) -> Tensor:
    """Augmented by each in order; all draw from one stream."""
    for one in steps:
        x = returned(one.augment(x, generator), Tensor, one.augment, "a tensor")
    return x


def methods_of(
    spec: LearningSpec, document: Document, nets: Sequence[Net], federation: Federation
) -> tuple[Method, ...]:
    """The method on each net; a ``UserError`` if a name or a parameter is wrong, or it cannot be built."""
    local = spec.local
    if isinstance(local.batch_size, str):
        # Methods are built before a batch is fitted to their memory, and again for the batch that was.
        local = local.model_copy(update={"batch_size": 1})
    with without_compiler():
        return tuple(_method(spec.method, document, ["method"], net, local, federation) for net in nets)


def _method(
    component: MethodParams,
    document: Document,
    path: Sequence[str | int],
    net: Net,
    local: LocalTraining,
    federation: Federation,
) -> Method:
    """A method on a net, with the base that its parameters name; ``path`` is its place in the document."""
    base: Any = dict(component).get("base")

    def build_base(inner: Net) -> Method:
        if not isinstance(base, MethodParams):
            raise UserError(
                f"{component.name} calls site.base, and its Params have no base of AnyMethod",
                where=str(defined_at(component.build) or getfile(type(component))),
                hint='add base: AnyMethod = "fedavg"',
            )
        return _method(base, document, [*path, "base"], inner, local, federation)

    try:
        built = component.build(Site(net, local, build_base, federation.clients, federation.public_x))
        method = returned(built, Method, component.build, "an edgefl.protocol.Method")
        # Parts of states that two methods would share show here, before anything else is done.
        method.initial(net.on_meta())
        method.client(net.on_meta())
    except UserError as error:
        error.where = error.where or document.place(path)
        raise
    names = [exchange.name for exchange in method.exchanges]
    if len(set(names)) < len(names):
        raise ScenarioError(
            f"{component.name} has two exchanges of the same name: {', '.join(names)}",
            where=document.place(path),
            hint="a method cannot be its own base; choose another",
        )
    return method


def channel(wire: Wire, way: Literal["down", "up"], document: Document) -> Channel:
    """A direction's codec; a ``UserError`` if a name or a parameter is wrong, or it cannot be used there."""
    path = ["wire", way]
    component: Codec = getattr(wire, way)
    where = document.place(path)
    if way == "down" and component.NEEDS_REFERENCE:
        raise ScenarioError(
            f"{component.name!r} cannot carry what clients receive: it codes the difference from a payload "
            "that both ends already have, and on the way down there is none",
            where=where,
            hint="use it for wire.up, where both ends have the payload that the client received",
        )
    if not component.codes():
        raise UserError(
            f"the codec {component.name!r} has neither 'carried' nor 'encode' and 'decode'",
            where=getfile(type(component)),
        )
    return Channel(component, where)


_FOR_DIFFERENT = "choose one model, or ktpfl; fedclassavg, fedproto and lg-fedavg need features of one width"


def nets_of(
    spec: LearningSpec, document: Document, federation: Federation, known: dict[str, Net]
) -> tuple[Net, ...]:
    """The scenario's models, for the data's shape and classes; ``known`` has those that were built before.

    Raises:
        UserError: a name or a parameter is wrong, or a model cannot be built.
    """
    nets, data = [], (federation.spec.shape, federation.spec.classes)
    for index, model in enumerate(spec.models):
        path: list[str | int] = ["model", index] if isinstance(spec.model, tuple) else ["model"]
        key = repr((model, *data))
        if key not in known:
            known[key] = _net(model, data=data, where=document.place(path))
        nets.append(known[key])
    return tuple(nets)


def _net(model: ModelParams, *, data: tuple[Any, int], where: str) -> Net:
    """A model for data of a shape and a number of classes."""
    own = is_users(getfile(type(model)))
    try:
        built = model.build(*data)
    except RuntimeError as error:
        if own:
            raise
        # Sizes that no tensor can have.
        raise ScenarioError(f"the model {model.name!r} cannot be built: {error}", where=where) from error
    net = returned(built, Net, model.build, "an edgefl.protocol.Net")
    if own:
        # Calls its functions on two samples without data, lest one return what it should not.
        with meta_device():
            weights = tensors(net.init(0), net.init, "weights by part (a dict of dicts of tensors)")
            x, labels = torch.empty(2, *net.shape), torch.empty(2, dtype=torch.int64)
            features, _ = net.passed(weights, x, training=True)
            logits = net.classified(weights, features)
            returned(net.loss(logits, labels), Tensor, net.loss, "a loss (a tensor)")
    return net


def check_fit(methods: Sequence[Method], nets: Sequence[Net], name: str, document: Document) -> None:
    """Refuses models between which what clients receive or send has different shapes.

    The server has one state for all of them.
    """
    if len(set(nets)) == 1:
        return
    first, *others = [
        [meta.payloads(method, exchange, net) for exchange in method.exchanges]
        for method, net in zip(methods, nets, strict=True)
    ]
    for place, (net, other) in enumerate(zip(nets[1:], others, strict=True), start=2):
        for ours, theirs in zip(first, other, strict=True):
            for way, *pair in zip(("receive", "send"), ours, theirs, strict=True):
                one, two = map(shapes, pair)
                part = next((part for part in {**one, **two} if one.get(part) != two.get(part)), None)
                if part is not None:
                    raise ScenarioError(
                        f"with {name}, clients {way} {part!r}, whose shapes differ between model 1 "
                        f"({nets[0].name}) and model {place} ({net.name})",
                        where=document.place(["model"]),
                        hint=_FOR_DIFFERENT,
                    )


GLOBAL, PARTICIPANTS, STEPS = "global model", "participants", "local steps"


def check_measures(measures: Sequence[Measure], net: Net, document: Document) -> None:
    """Makes the measures' own checks, which may read files of this machine; of several models, on the first.

    Raises:
        UserError: a parameter does not fit the run.
    """
    for place, one in enumerate(measures):
        try:
            one.check(net)
        except UserError as error:
            where = document.place(["evaluate", "measures", place])
            raise ScenarioError(f"{one.name}: {error.what}", where=where, hint=error.hint) from error
