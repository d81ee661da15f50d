"""The learning side of a run: answers the world with training, merges and scores."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from edgefl.compute.evaluate import Personal, Scores, personal, score
from edgefl.compute.job import Engine, Outcome
from edgefl.compute.process import one_thread
from edgefl.core.errors import RunError
from edgefl.core.event import TrainingJob
from edgefl.core.user_code import defined_at, returned
from edgefl.data.batching import normalised
from edgefl.protocol import Arrival, Predictor, Row, Tree, read_tree, tree_map
from edgefl.protocol.sample_losses import summarised
from edgefl.protocol.staleness import reexpressed
from edgefl.protocol.values import tensors
from edgefl.runs.context import Context
from edgefl.runs.observing import Observer, Trained
from edgefl.store.checkpoints import Checkpoint, Saved, SavedFile
from edgefl.store.reader import Reader
from edgefl.world.needs import Evaluate, Merge

_STATE = "a server state (a dict)"


class Learner:
    """Trains, merges and scores.

    Attributes:
        observer: takes the measures; None where none are asked for.
        host_s: wall seconds spent on each.
    """

    def __init__(self, context: Context, engine: Engine) -> None:
        self.context = context
        self.engine = engine
        self.observer = Observer(context) if context.builder.learning.measures else None
        self.host_s = {"train": 0.0, "merge": 0.0, "evaluate": 0.0}
        if self.observer is not None:
            self.host_s["measure"] = 0.0

    def merge(self, need: Merge) -> dict[int, Mapping[str, float]]:
        """Trains a merge's jobs, merges their uploads and drops the versions that are no longer needed.

        Returns:
            The scalars of each trained job, by its number.

        Raises:
            RunError: training diverged.
        """
        context, outcomes = self.context, self._trained(need.merged, need)
        start = time.perf_counter()
        method = context.builder.learning.methods[0]
        merge = next(exchange.merge for exchange in method.exchanges if exchange.name == need.exchange)
        with torch.no_grad(), one_thread():
            arrivals = self._arrivals(need, [outcomes[job.id] for job in need.merged])
            server = context.versions[need.version - 1]
            merged = merge(server, arrivals) if arrivals else server
            context.versions[need.version] = tensors(merged, merge, _STATE, RunError)
            _check_kept(server, merged, merge)
        if self.observer is not None:
            self.observer.merged(need, [outcomes[job.id] for job in need.merged])
        for version in set(context.versions).difference(need.live_versions):
            del context.versions[version]
        self.host_s["merge"] += time.perf_counter() - start
        return _scalars(outcomes)

    def complete(self, need: Evaluate) -> dict[int, Mapping[str, float]]:
        """Trains late jobs for their clients' states; returns and raises as ``merge`` does."""
        return _scalars(self._trained((), need)) if need.completed else {}

    def _trained(self, merged: Sequence[TrainingJob], need: Merge | Evaluate) -> dict[int, Outcome]:
        """The outcomes of merged and late jobs, by number, with their states committed."""
        start, context = time.perf_counter(), self.context
        cache, due = context.outcomes, sorted((*merged, *need.completed), key=lambda job: job.id)
        late = {job.id for job in need.completed if context.builder.exchange(job).confirmed}
        for wave in _waves(cache.missing(due, need.ready if self.engine.ahead else (), late)):
            for outcome in self.engine.outcomes(wave):
                cache.put(context.unconfirmed(outcome) if outcome.job.id in late else outcome)
        outcomes = {job.id: cache.take(job) for job in due}
        _check_finite(outcomes.values())
        for number, outcome in outcomes.items():
            if self.observer is not None and self.observer.retrains:
                # It trains again from the state that the job started from, which is replaced now.
                outcomes[number] = outcome._replace(state=context.state(outcome.job.client))
            if outcome.state is not None:
                state = tree_map(torch.Tensor.cpu, outcome.state)
                context.states.put(outcome.job.client, outcome.job.id, state)
        self.host_s["train"] += time.perf_counter() - start
        return outcomes

    def _arrivals(self, need: Merge, outcomes: Sequence[Outcome]) -> list[Arrival]:
        """What ``merge`` sees of outcomes: uploads as decoded, and re-expressed if stale or scaled."""
        builder, versions, base = self.context.builder, self.context.versions, need.version - 1
        up = builder.learning.up
        # The server knows what it sent, and so what each client started from.
        received = [builder.received(job, versions[job.version]) for job in need.merged]
        references = received if up.codec.NEEDS_REFERENCE else [None] * len(received)
        uploads = up.carried_all([outcome.upload for outcome in outcomes], references)
        arrivals = []
        for job, upload, payload, weight, scale in zip(
            need.merged, uploads, received, need.weights, need.scales, strict=True
        ):
            staleness, current, worth = base - job.version, payload, upload
            if staleness or scale != 1:
                current = builder.received(job, versions[base])
                worth = reexpressed(upload, payload, current, correction=need.correction, scale=scale)
            arrivals.append(Arrival(worth, current, builder.ctx(job), staleness, weight))
        return arrivals

    def evaluate(self, version: int) -> tuple[Scores | None, Personal | None]:
        """Scores a version: the global and the personal models, as the scenario asks."""
        start, context = time.perf_counter(), self.context
        plan, learning = context.planned.plan, context.builder.learning
        models, federation = plan.scenario.evaluate.models, learning.federation
        server = context.versions[version]
        images = partial(normalised, federation, split="test")

        def scorer(predictor: Predictor, indices: Any) -> Scores:
            return score(predictor, images, federation.test_y, indices)

        global_scores = personal_scores = None
        global_model = learning.methods[0].global_model
        if "global" in models and global_model is not None:
            predictor = returned(global_model(server), Predictor, global_model, "a Predictor", RunError)
            global_scores = scorer(predictor, federation.test)
        if "personal" in models:
            personal_scores = personal(
                partial(context.personal_model, server),
                lambda client: client in context.states or context.initial_state(client) is None,
                np.flatnonzero(plan.clients.admitted).tolist(),
                federation.test_parts,
                scorer,
                shared=(server, *context.initial_states),
            )
        self.host_s["evaluate"] += time.perf_counter() - start
        return global_scores, personal_scores

    def measure(self, need: Evaluate, personal_scores: Personal | None) -> list[dict[str, Any]]:
        """The measures of a version that ``evaluate`` has scored, as rows of the table ``measures``.

        Raises:
            RunError: a measure gives something else than rows.
        """
        if self.observer is None:
            return []
        start = time.perf_counter()
        rows = self.observer.rows(need, personal_scores)
        self.host_s["measure"] += time.perf_counter() - start
        return rows

    def saved(self, states: Mapping[int, tuple[int, SavedFile]], own: Mapping[str, Any]) -> Saved:
        """What a run needs to go on.

        Outcomes that are not merged yet are part of it: an engine that stacks jobs may give other bits if it
        trained them again in other company.

        Args:
            states: by client, those that changed since the last checkpoint; they are in files.
            own: what the run itself needs, as plain data.
        """
        context, observer = self.context, self.observer
        servers, ahead = dict(context.versions), context.outcomes.kept
        outcomes = {number: outcome for number, (outcome, _) in ahead.items()}
        content: dict[str, Any] = {
            **own,
            "live": sorted(servers),
            "ahead": [(number, began) for number, (_, began) in ahead.items()],
        }
        if observer is not None:
            content["earlier"] = {name: version for name, (version, _) in observer.earlier.items()}
            if observer.last is not None:
                last = observer.last
                servers |= last.servers
                observed = {context.outcomes.number(): outcome for outcome in last.outcomes}
                outcomes |= observed
                facts = {"servers": sorted(last.servers), "before": last.before}
                content["observed"] = {"outcomes": list(observed), **facts}
        content["counted"] = context.outcomes.number()
        packed = {number: _packed(outcome) for number, outcome in outcomes.items()}
        return Saved(servers=servers, states=states, outcomes=packed, content=content)

    def restore(self, checkpoint: Checkpoint, reader: Reader, last: Mapping[int, int]) -> None:
        """Takes a new learner to a checkpoint; ``last`` has by client the job that wrote its state.

        Raises:
            UserError: a file is missing or damaged.
        """
        context, observer, folder = self.context, self.observer, reader.folder
        servers = {
            version: context.moved(_read(folder, file)) for version, file in checkpoint.versions.items()
        }
        outcomes = {
            number: _unpacked(context.moved(_read(folder, file)), content)
            for number, (file, content) in checkpoint.outcomes.items()
        }
        content = checkpoint.content
        context.versions = {version: servers[version] for version in content["live"]}
        context.states.restore(
            {client: (job, file.sha256) for client, (job, file) in checkpoint.states.items()}
        )
        ahead = {number: (outcomes[number], began) for number, began in content["ahead"]}
        context.outcomes.restore(ahead, last, content["counted"])
        if observer is None:
            return
        observer.earlier = {
            name: (version, _rows(reader, name, version)) for name, version in content["earlier"].items()
        }
        if (observed := content.get("observed")) is not None:
            observer.last = Trained(
                [outcomes[number] for number in observed["outcomes"]],
                {version: servers[version] for version in observed["servers"]},
                observed["before"],
            )


def mean_scalars(need: Merge, scalars: Mapping[int, Mapping[str, float]]) -> dict[str, float]:
    """The scalars of the merged jobs that took steps, averaged by their clients' weights."""
    if not scalars:
        return {}
    pairs = zip(need.merged, need.weights, strict=True)
    trained = [(scalars[job.id], weight) for job, weight in pairs if scalars.get(job.id)]
    weights = [weight for _, weight in trained]
    return {
        name: float(np.average([values[name] for values, _ in trained], weights=weights))
        for name in (trained[0][0] if trained else {})
    }


def _scalars(outcomes: Mapping[int, Outcome]) -> dict[int, Mapping[str, float]]:
    return {job: summarised(outcome.scalars) for job, outcome in outcomes.items()}


def _waves(jobs: Iterable[TrainingJob]) -> Iterator[list[TrainingJob]]:
    """The jobs in groups with at most one job a client, each client's in order."""
    left = sorted(jobs, key=lambda job: job.id)
    while left:
        first: dict[int, TrainingJob] = {}
        for job in left:
            first.setdefault(job.client, job)
        yield list(first.values())
        left = [job for job in left if first[job.client] is not job]


def _check_kept(server: Tree, merged: Tree, merge: Callable[..., Tree]) -> None:
    lost = [key for key in server if key not in merged]
    if lost:
        raise RunError(
            f"merge returned a server state without {lost[0]!r}",
            where=str(defined_at(merge) or ""),
            hint="return the keys that merge does not change, too: {**server, ...}",
        )


def _check_finite(outcomes: Iterable[Outcome]) -> None:
    for outcome in outcomes:
        scalars = outcome.scalars
        broken = next(
            (f"{name} is {value}" for name, value in scalars.items() if not math.isfinite(value)), ""
        )
        # A step's loss precedes its update: the last update shows only in what is sent and kept.
        if not broken and not outcome.finite:
            broken = "weights are not finite"
        if broken:
            job = outcome.job
            raise RunError(
                f"training diverged: client {job.client}'s {broken} in round {job.round}",
                where=f"exchange {job.exchange}",
                hint="lower local.optimizer.lr, or --set local.optimizer.clip_norm=1",
            )


def _read(folder: Path, file: SavedFile) -> Tree:
    return read_tree(folder / file.file, file.sha256)


def _packed(outcome: Outcome) -> tuple[Tree, dict[str, Any]]:
    """An outcome as a tree and as plain data."""
    tree = {"upload": outcome.upload} | ({} if outcome.state is None else {"state": outcome.state})
    plain = {"job": asdict(outcome.job), "scalars": dict(outcome.scalars), "finite": outcome.finite}
    return tree, plain


def _unpacked(tree: Tree, plain: Mapping[str, Any]) -> Outcome:
    return Outcome(
        TrainingJob(**plain["job"]), tree["upload"], tree.get("state"), plain["scalars"], plain["finite"]
    )


def _rows(reader: Reader, measure: str, version: int) -> list[Row]:
    """The rows of a measure, as it gave them."""
    names = ", ".join(Row._fields)
    sql = f"SELECT {names} FROM measures WHERE measure = ? AND version = ? ORDER BY rowid"  # noqa: S608 - our own names
    return [Row(**row) for row in reader.query(sql, measure, version)]
