"""Scenarios as validated records; ``edgefl.core.drafts`` reads them from files."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializeAsAny,
    Tag,
    field_validator,
    model_validator,
)

from edgefl.core.arrays import Ints
from edgefl.core.components import DEFAULT, AnyAugmentation, AnyMethod, NameOf, OfKind, OneOrMany
from edgefl.core.draws import derive
from edgefl.core.errors import short
from edgefl.core.fleet import Fleet
from edgefl.core.link import Rate
from edgefl.core.optimizers import Optimizer
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.params import Component, Count, Strict, unless
from edgefl.core.samplers import Sampler
from edgefl.core.steps import Passes
from edgefl.core.units import Bytes, Joules, Seconds
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document

# `docs/scenarios.md` states it; a client takes some 70 bytes.
MOST_CLIENTS = 10**8

# A client's number, or those of many.
Numbers = TypeVar("Numbers", int, Ints)


def _distribution(value: Any) -> Any:
    """A number as the distribution of this one value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if not (1 <= value < math.inf and value == int(value)):
        raise ValueError(f"'samples' must be a whole number of at least 1, or a distribution; got {value}")
    return {"name": "fixed", "value": float(value)}


class Public(Strict):
    """Images without labels that the server and every client have, for methods that work on public data.

    Attributes:
        samples: how many; drawn once a run, uniformly and without repeats.
        dataset: a component: whose training images they are. By default the task's own, of which they are
            taken before the partition, so that no client trains on them; another needs images of the same
            shape.
    """

    samples: Count
    dataset: Annotated[Any, OfKind("datasets")] | None = None


class TaskSpec(Strict):
    """The data, and how clients share it.

    Attributes:
        dataset: a component.
        partition: a component: how training data is split among clients.
        clients: how many.
        augment: a component, or a list of them, applied in order: the augmentation of training batches; a
            method's phase may use another.
        personal_test: a client with n training images of a class is tested on floor(``personal_test`` n) test
            images of it.
        pooled: training and test images are merged before they are split, and this share of each client's
            own, drawn at random, tests it; the global model is tested on all clients'. Null: not merged.
        share: the share of each class's training images that is dealt at all, for smaller runs; null for all.
        samples: each client's number of training samples in place of a split, or a sampler whose draws are
            rounded to at least 1. For the clock alone; nothing can be trained.
        public: images without labels that the server and every client have, for methods that need them.
    """

    dataset: Annotated[Any, OfKind("datasets")]
    partition: Annotated[Any, OfKind("partitions"), DEFAULT] = "iid"
    clients: Annotated[int, Field(gt=0, le=MOST_CLIENTS)]
    augment: OneOrMany[AnyAugmentation] = "none"
    personal_test: Annotated[float, Field(gt=0, le=1)] = 0.3
    pooled: Annotated[float, Field(gt=0, lt=1)] | None = None
    share: Annotated[float, Field(gt=0, lt=1)] | None = None
    samples: Annotated[
        SerializeAsAny[Sampler] | None,
        OfKind("samplers"),
        BeforeValidator(_distribution, json_schema_input_type=Count | Sampler | None),
    ] = None
    public: Public | None = None

    @model_validator(mode="after")
    def _has_images(self) -> "TaskSpec":
        if self.samples is not None and self.public is not None:
            raise ValueError("'public' needs images, and 'samples' leaves none; remove one of the two")
        return self

    @property
    def withheld(self) -> int:
        """How many of the dataset's training images are no client's, because they are public."""
        public = self.public
        return public.samples if public and public.dataset in (None, self.dataset) else 0


class Fit(Strict):
    """A length of local training that depends on the client: as much as fits into a time.

    Attributes:
        fit: the predicted time of a job without jitter: download, training at the client's speed, upload.
        most: the most epochs or steps.
        least: the fewest, also where they take longer.
    """

    fit: Annotated[Seconds, Field(gt=0)]
    most: Count
    least: Count = 1

    @model_validator(mode="after")
    def _in_order(self) -> "Fit":
        if self.least > self.most:
            raise ValueError(f"'least' is {self.least}, and 'most' only {self.most}")
        return self


class LocalTraining(Strict):
    """A client's training in one round: its length, and how it steps.

    Attributes:
        epochs: passes over the client's data, or ``{fit: TIME, most: NUMBER, least: NUMBER}``; 1 if neither
            ``epochs`` nor ``steps`` is given.
        steps: optimizer steps in place of epochs, in either form.
        batch_size: samples a batch, or ``fit``: the largest that fits every device of the fleet that can
            train.
        optimizer: by its name, with its parameters.
        first_weights: of what clients keep to themselves: ``alike``, so that all clients with one model
            begin with the same weights, or of each client's ``own``; null for alike.
    """

    epochs: Count | Fit | None = None
    steps: Count | Fit | None = None
    batch_size: Count | Literal["fit"] = 32
    optimizer: Annotated[SerializeAsAny[Optimizer], OfKind("optimizers", "sgd")] = Sgd(lr=0.01)
    first_weights: Literal["alike", "own"] | None = None

    @field_validator("optimizer", mode="before")
    @classmethod
    def _default_by_its_name(cls, value: Any) -> Any:
        default = cls.model_fields["optimizer"].default
        return default if isinstance(value, str) and value.casefold() == default.name else value

    @model_validator(mode="after")
    def _one_length(self) -> "LocalTraining":
        if self.epochs is not None and self.steps is not None:
            raise ValueError("give either epochs or steps, not both")
        return self

    def first_seed(self, root: int, client: int) -> int:
        """The seed of the weights that a client begins with, from the run's."""
        return derive(root, "init", client=client if self.first_weights == "own" else -1)

    @property
    def size(self) -> int:
        """The batch size as a number, which planning has made of "fit"."""
        return int(self.batch_size)

    @property
    def fit(self) -> Fit | None:
        """The length where it depends on the client."""
        length = self.epochs if self.steps is None else self.steps
        return length if isinstance(length, Fit) else None

    @property
    def passes(self) -> Passes:
        """The length in the protocol's terms, the longest of all clients; one epoch by default."""
        length = self.steps or self.epochs or 1
        return self.lasting(length.most if isinstance(length, Fit) else length)

    def lasting(self, length: int) -> Passes:
        """So many epochs or steps, whichever the length is in."""
        return Passes(epochs=length) if self.steps is None else Passes(steps=length)


class Until(Strict):
    """When the rounds are over: at the first limit that is met.

    Attributes:
        rounds: rounds that have ended; under an asynchronous policy, merges.
        time: virtual time, as in ``10 min``; jobs in flight are cut then.
        bytes: traffic of all clients in both directions, as in ``24 MB``; the round goes on to its end.
        energy: of all clients whose energy is known, as in ``5 kJ``; the round goes on to its end.
        accuracy: at an evaluation, of the global model, or of the personal ones if they alone are evaluated;
            needs another limit beside it.
    """

    rounds: Count | None = None
    time: Annotated[Seconds, Field(gt=0)] | None = None
    bytes: Annotated[Bytes, Field(gt=0)] | None = None
    energy: Annotated[Joules, Field(gt=0)] | None = None
    accuracy: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _ends(self) -> "Until":
        if all(getattr(self, key) is None for key in ("rounds", "time", "bytes", "energy")):
            also = "" if self.accuracy is None else " too: an accuracy may never be reached"
            raise ValueError(f"give rounds, time, bytes or energy{also}")
        return self


class Server(Strict):
    """The server's settings.

    Attributes:
        policy: a component: when clients are asked, and when their uploads are merged.
        selector: a component: which clients are asked.
        participants: clients a round, or at work at a time; null for all.
        uplink: the rate at which all clients together can send to the server, as in ``1 Gbit/s``; null for no
            limit.
        downlink: the same for what the server sends.
        until: when the rounds are over, by default after 10; ``rounds: N`` is short for ``until: {rounds:
            N}``.
        device: a device's name: what the server computes in merges takes its time, memory and energy; null
            for a server whose work is free.
    """

    SHORT_FORMS: ClassVar[Mapping[str, str]] = {"rounds": "until.rounds"}

    policy: Annotated[Any, OfKind("policies"), DEFAULT] = "sync"
    selector: Annotated[Any, OfKind("selectors"), DEFAULT] = "random"
    participants: Count | None = None
    uplink: Rate | None = None
    downlink: Rate | None = None
    until: Until = Until(rounds=10)
    device: Annotated[str, NameOf("devices")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "rounds" not in value:
            return value
        until = value.get("until") or {}
        if isinstance(until, Mapping):
            if "rounds" in until:
                raise ValueError("give rounds, or until with its own rounds, not both")
            until = {**until, "rounds": value["rounds"]}
        return {**{key: each for key, each in value.items() if key != "rounds"}, "until": until}


class Evaluation(Strict):
    """What is evaluated, and when.

    Attributes:
        every: rounds between evaluations; the last round, and exchanges after it, are always evaluated.
        models: the global model, the clients' own, or both.
        target: an accuracy in (0, 1]; time, bytes and energy to reach it are reported.
        on: ``test``, or ``holdout`` for tuning: a share of each class's training images in place of the test
            set.
        holdout: that share.
        measures: a list of components: what else is measured of each version that is evaluated.
    """

    every: Count = 1
    models: tuple[Literal["global", "personal"], ...] = ("global", "personal")
    target: Annotated[float, Field(gt=0, le=1)] | None = None
    on: Literal["test", "holdout"] = "test"
    holdout: Annotated[float, Field(gt=0, lt=1)] = 0.2
    measures: Annotated[
        tuple[Annotated[Any, OfKind("measures")], ...],
        BeforeValidator(lambda given: () if given is None else given),
        unless(()),
    ] = ()

    @field_validator("measures")
    @classmethod
    def _each_once(cls, value: tuple[Component, ...]) -> tuple[Component, ...]:
        names = [one.name for one in value]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"the measure {twice!r} is listed twice; list each measure once")
        return value


class Wire(Strict):
    """The codecs in each direction.

    Attributes:
        up: a component: the codec of uploads.
        down: a component: the codec of downloads.
    """

    up: Annotated[Any, OfKind("codecs"), DEFAULT] = "raw"
    down: Annotated[Any, OfKind("codecs"), DEFAULT] = "raw"


def _null_is_a_name(value: Any) -> Any:
    """An engine as its name; YAML parses the null engine's as None."""
    if isinstance(value, Mapping) and "name" in value:
        return {**value, "name": value["name"] or "null"}
    return "null" if value is None else value


AGAINST = "against"


def told(run: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A published run's settings, by which ours are found, and its figures."""
    known = {*Scenario.model_fields, AGAINST}
    settings = {key: value for key, value in run.items() if key.partition(".")[0] in known}
    return settings, {key: value for key, value in run.items() if key not in settings}


def _published(run: dict[str, Any]) -> dict[str, Any]:
    settings, figures = told(run)
    if not figures:
        raise ValueError("a published run needs a figure, such as accuracy: 0.402")
    if not hasattr(settings.get(AGAINST, {}), "items"):
        raise ValueError("'against' must map settings to values, such as {method: fedavg}")
    for key, value in figures.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{key!r} is no setting, and as a figure must be a number; got {value!r}")
        if key.startswith("accuracy") and AGAINST not in settings and not 0 <= value <= 1:
            raise ValueError(f"{key!r} must be a share of 1, such as 0.402; got {value}")
    return run


class Published(Strict):
    """What a paper reports; ``edgefl compare``, ``edgefl profile`` and the page print ours beside it.

    Attributes:
        paper: which paper, and where in it.
        note: what should be known of the two.
        runs: mappings, one for each published run: the settings in which it differs from the others, by
            dotted key, and its figures, by their keys in a run of ``edgefl compare --json``. ``accuracy`` is
            short for that of the main model. ``against`` maps settings to another run's values: figures are
            then shares of that run's.
    """

    paper: Annotated[str, Field(min_length=1)]
    note: str = ""
    runs: Annotated[tuple[Annotated[dict[str, Any], AfterValidator(_published)], ...], Field(min_length=1)]


class LearningSpec(Strict):
    """What is trained, how and on which data; nothing of devices, links or time.

    Attributes:
        seed: the root of all random numbers.
        task: the dataset and how it is split.
        model: a component, or a list of them: client i has the (i mod length)-th.
        method: a component.
        local: local training.
        evaluate: what is evaluated, and when.
        wire: how payloads are coded.
    """

    seed: int = 0
    task: TaskSpec
    model: OneOrMany[Annotated[Any, OfKind("models")]]
    method: AnyMethod
    local: LocalTraining = LocalTraining()
    evaluate: Evaluation = Evaluation()
    wire: Wire = Field(default_factory=Wire)

    @property
    def models(self) -> tuple[Any, ...]:
        return self.model if isinstance(self.model, tuple) else (self.model,)

    def model_of(self, client: Numbers) -> Numbers:
        """The index of a client's model in ``models``: client i has the (i mod length)-th."""
        return client % len(self.models)

    def resolved(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def of_resolved(cls, data: Mapping[str, Any], file: str) -> "tuple[LearningSpec, Document]":
        """The learning part of a resolved scenario, and the document that messages refer to."""
        given = as_given(data)
        own = {key: given[key] for key in cls.model_fields if key in given}
        document = Document(file, own, context=RESOLVED)
        return validate(cls, document.data, document), document


_PRICE = re.compile(r"(?P<amount>\d+(\.\d+)?) ?(?P<currency>[^\W\d_]{1,3}|[$€£¥])/(?P<unit>\w+)")
# What is paid for: the unit of its price, and how many of the base unit that is.
_PAID = {"energy": ("kWh", 3.6e6), "traffic": ("GB", 1e9), "server": ("h", 3600.0)}


class Tariffs(Strict):
    """What a run's energy, traffic and server cost, in one currency.

    Attributes:
        energy: of clients' jobs, as in ``0.30 EUR/kWh``; null for nothing, as of the others.
        traffic: of all bytes, as in ``0.05 EUR/GB``.
        server: as long as the run lasts, as in ``0.40 EUR/h``.
    """

    energy: str | None = None
    traffic: str | None = None
    server: str | None = None

    @model_validator(mode="after")
    def _are_prices(self) -> Self:
        currencies = sorted({currency for _, currency in self._read().values()})
        if not currencies:
            raise ValueError("give a price: energy, traffic or server")
        if len(currencies) > 1:
            raise ValueError(f"give all prices in one currency, not in {', '.join(currencies)}")
        return self

    def _read(self) -> dict[str, tuple[float, str]]:
        """The prices that are given, per joule, byte and second, each with its currency."""
        found = {}
        for name, (unit, size) in _PAID.items():
            text = getattr(self, name)
            if text is not None:
                match = _PRICE.fullmatch(text)
                if match is None or match["unit"] != unit:
                    raise ValueError(f"{short(text)!r} is not a price of {name}; write it as 0.30 EUR/{unit}")
                found[name] = float(match["amount"]) / size, match["currency"]
        return found

    @property
    def currency(self) -> str:
        return next(currency for _, currency in self._read().values())

    def rates(self) -> dict[str, float]:
        return {name: price for name, (price, _) in self._read().items()}


class Checkpointing(Strict):
    """When a run is saved, besides at each evaluation, so that it can be resumed; not part of its identity.

    Attributes:
        minutes: of wall time between checkpoints; 0 saves after every merge. Each evaluation is one, too.
    """

    minutes: Annotated[float, Field(ge=0)] = 5.0


class Scenario(LearningSpec):
    """One run's settings, flat as in its file; see ``edgefl.core.drafts.load`` for files.

    Attributes:
        fleet: a profile's name, or a fleet.
        server: rounds and participants.
        engine: what trains the clients.
        checkpoint: when a run is saved, to be resumed.
        costs: the prices of energy, traffic and the server; null for none.
        name: a label; by default the file's name.
        scale: the one of the file's ``scales`` whose settings replace its own; empty for none.
        notes: free text.
        published: what a paper reports of such runs.
    """

    fleet: Annotated[
        Annotated[str, NameOf("profiles"), Tag("<name>")] | Annotated[Fleet, Tag("<fleet>")],
        Discriminator(lambda value: "<fleet>" if isinstance(value, Mapping | Fleet) else "<name>"),
    ]
    server: Server = Field(default_factory=Server)
    engine: Annotated[Any, OfKind("engines", "auto"), DEFAULT, BeforeValidator(_null_is_a_name)] = "auto"
    checkpoint: Checkpointing = Checkpointing()
    costs: Tariffs | None = None
    name: str = "scenario"
    scale: str = ""
    notes: str = ""
    published: Published | None = None

    @property
    def learning(self) -> LearningSpec:
        """The learning part alone: all that engines and their workers need."""
        return LearningSpec(**{key: getattr(self, key) for key in LearningSpec.model_fields})

    def resolved(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data: no engine, checkpoints, name or notes."""
        without = {"engine", "checkpoint", "name", "scale", "notes", "published"}
        return self.model_dump(mode="json", exclude=without, exclude_none=True)


# What planning adds to a resolved task whose labels it made up.
LABELS = "labels"


def as_given(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """A resolved scenario's settings, without what planning added to them."""
    task = {key: value for key, value in resolved["task"].items() if key != LABELS}
    return {**resolved, "task": task}
