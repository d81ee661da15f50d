"""Takes the measures of a run: keeps what they read of a merge, and makes rows of what they give."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
import torch

from edgefl.compute.evaluate import Personal
from edgefl.compute.job import Outcome
from edgefl.compute.loop import work
from edgefl.compute.process import one_thread
from edgefl.core.arrays import Ints
from edgefl.core.errors import RunError
from edgefl.core.user_code import defined_at, returned
from edgefl.data.batching import normalised
from edgefl.measures import Measure
from edgefl.planning.learning import GLOBAL, PARTICIPANTS, STEPS
from edgefl.protocol import BUFFERS, Batch, Observation, Participant, Predictor, Row, Tree
from edgefl.runs.context import Context
from edgefl.world.needs import Evaluate, Merge


@dataclass(frozen=True)
class Trained:
    """A merge of jobs that trained.

    Attributes:
        outcomes: theirs; where they are trained again, with the states that they started from.
        servers: the versions that they started from, and the one before the merge.
        before: the number of that one.
        predictors: their global models, by version, as far as they were asked for.
    """

    outcomes: Sequence[Outcome]
    servers: Mapping[int, Tree]
    before: int
    predictors: dict[int, Predictor] = field(default_factory=dict)


class Observer:
    """Takes a run's measures at its evaluations.

    Until the next evaluation it keeps the uploads of the last merge that trained, and the server versions
    from which they came.

    Attributes:
        retrains: whether a measure needs models inside a local training.
        last: that merge; None where there was none since the last evaluation.
        earlier: by measure, the version for which it was taken last, and its rows.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._measures = context.builder.learning.measures
        self.retrains = any(STEPS in one.NEEDS for one in self._measures)
        self.last: Trained | None = None
        self.earlier: dict[str, tuple[int, Sequence[Row]]] = {}

    def merged(self, need: Merge, outcomes: Sequence[Outcome]) -> None:
        """Keeps a merge, before the versions that it needs are dropped; not one for which nobody trained."""
        # Statistics of features, say, have no loss.
        trained = [outcome for outcome in outcomes if outcome.scalars]
        if trained:
            before = need.version - 1
            numbers = {before, *(outcome.job.version for outcome in trained)}
            servers = {number: self._context.versions[number] for number in numbers}
            self.last = Trained(trained, servers, before)

    def rows(self, need: Evaluate, personal: Personal | None) -> list[dict[str, Any]]:
        """The measures of a version, as rows of the table ``measures``.

        Args:
            personal: the version's scores of personal models, if they were scored.

        Raises:
            RunError: a measure gives something else than rows, or two for one place.
        """
        seen, self.last = self._observation(need, personal), None
        common = {"version": need.version, "round": need.round}
        found: list[dict[str, Any]] = []
        with torch.no_grad(), one_thread():
            for one in self._measures:
                if GLOBAL in one.NEEDS and seen.global_model is None:
                    continue
                if PARTICIPANTS in one.NEEDS and not seen.participants:
                    continue
                given = _given(one, seen)
                self.earlier[one.name] = need.version, given
                found += ({**common, "measure": one.name, **row._asdict()} for row in given)
        return found

    def _observation(self, need: Evaluate, personal: Personal | None) -> Observation:
        context, last = self._context, self.last
        builder, server = context.builder, context.versions[need.version]
        learning = builder.learning
        federation, method = learning.federation, learning.methods[0]
        scored = (
            {} if personal is None else dict(zip(personal.clients, personal.accuracy.tolist(), strict=True))
        )
        found = Observation(
            version=need.version,
            round=need.round,
            net=learning.nets[0],
            classes=federation.spec.classes,
            global_model=self._global(server) if method.global_model is not None else None,
            personal_model=partial(context.personal_model, server),
            clients=self._clients,
            labels=self._labels,
            images=self._images,
            tests=self._tests,
            class_counts=federation.class_counts,
            training=self._training,
            accuracies=scored,
            earlier={name: rows for name, (_, rows) in self.earlier.items()},
        )
        if last is None:
            return found
        return replace(
            found,
            participants_of=partial(self._participants, last),
            before=self._before(last, last.before) if method.global_model is not None else None,
            personal_before=partial(context.personal_model, last.servers[last.before]),
        )

    def _global(self, server: Tree) -> Predictor:
        function = self._context.builder.learning.methods[0].global_model
        if function is None:
            raise AssertionError("asked only where there is one")
        return returned(function(server), Predictor, function, "a Predictor", RunError)

    def _before(self, last: Trained, version: int) -> Predictor:
        """The global model of a version from before the merge, one object each."""
        if version not in last.predictors:
            last.predictors[version] = self._global(last.servers[version])
        return last.predictors[version]

    def _participants(self, last: Trained) -> tuple[Participant, ...]:
        return tuple(self._participant(outcome, last) for outcome in last.outcomes)

    def _participant(self, outcome: Outcome, last: Trained) -> Participant:
        context, job = self._context, outcome.job
        learning = context.builder.learning
        net, server = learning.nets[context.builder.model(job.client)], last.servers[job.version]
        sent = {part: outcome.upload[part] for part in net.parts() if part in outcome.upload}
        theirs = {**server, **sent}
        own = context.personal_model(theirs, job.client)
        if learning.methods[0].global_model is None:
            # What a client keeps may hold its own version of what it sends.
            received = {part: server[part] for part in sent if part in server}
            start, trained = replace(own, weights={**own.weights, **received}), own
        else:
            start, trained = self._before(last, job.version), self._global(theirs)
        weights = tuple(part for part, tree in sent.items() if tree and part != BUFFERS)
        after = partial(self._after, outcome, last.servers) if self.retrains else None
        return Participant(job.client, net, start, trained, own, weights, job.steps, after)

    def _after(self, outcome: Outcome, servers: Mapping[int, Tree], steps: int) -> Predictor:
        """What a job had trained after its first steps."""
        builder, job = self._context.builder, outcome.job
        learning, model = builder.learning, builder.model(job.client)
        states = {job.client: outcome.state}
        whole, short = (
            builder.group([each], servers, states).tasks[0] for each in (job, replace(job, steps=steps))
        )
        # Settings by the share of the work, such as a temperature, are those of the whole job.
        with torch.enable_grad():
            done = work(replace(short, ctx=replace(whole.ctx, steps=short.ctx.steps)))
        sent = {part: done.upload[part] for part in learning.nets[model].parts() if part in done.upload}
        theirs = {**servers[job.version], **sent}
        if learning.methods[0].global_model is not None:
            return self._global(theirs)
        state = outcome.state if done.state is None else done.state
        return learning.methods[model].personal_model(theirs, state)

    @cached_property
    def _clients(self) -> list[int]:
        admitted = np.flatnonzero(self._context.planned.plan.clients.admitted).tolist()
        return [client for client in admitted if len(self._tests[client])]

    @cached_property
    def _labels(self) -> Ints:
        federation = self._context.builder.learning.federation
        return federation.test_y.cpu().numpy()[federation.test]

    @cached_property
    def _tests(self) -> list[Ints]:
        federation = self._context.builder.learning.federation
        return [np.searchsorted(federation.test, part) for part in federation.test_parts]

    def _images(self, places: Ints) -> torch.Tensor:
        federation = self._context.builder.learning.federation
        return normalised(federation, federation.test[places], split="test")

    def _training(self, client: int, most: int | None) -> Batch:
        federation = self._context.builder.learning.federation
        chosen = federation.parts[client][:most]
        labels = federation.train_y[torch.from_numpy(chosen).to(federation.train_y.device)]
        return Batch(normalised(federation, chosen, split="train"), labels)


def _given(measure: Measure, seen: Observation) -> list[Row]:
    """A measure's rows that are numbers.

    Raises:
        RunError: it gives something else than rows, or two for one place.
    """
    function = measure.measure
    expected = "an iterable of edgefl.protocol.Row"
    given = returned(function(seen), Iterable, function, expected, RunError)
    places, found = set[Row](), []
    for row in _rows(given, measure):
        place = row._replace(value=0.0)
        if place in places:
            what = ", ".join(f"{key} {value!r}" for key, value in row._asdict().items() if key != "value")
            raise RunError(
                f"the measure {measure.name!r} gives two rows of the same {what}",
                where=str(defined_at(function) or f"measure {measure.name}"),
                hint="rows of a measure differ in figure, model, client or label",
            )
        places.add(place)
        if math.isfinite(row.value):
            found.append(row)
    return found


def _rows(given: Iterable[Row], measure: Measure) -> Iterator[Row]:
    for row in given:
        found = returned(row, Row, measure.measure, "an iterable of edgefl.protocol.Row", RunError)
        returned(
            found.value,
            (SupportsFloat, SupportsIndex),
            measure.measure,
            "rows whose value is a number",
            RunError,
        )
        yield found
