"""One run in progress: passes the world's needs to the learner, and results to the store."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgefl.analysis.summary import measured_together
from edgefl.compute.evaluate import Personal, Scores
from edgefl.core.errors import RunError
from edgefl.core.event import ServerEvent
from edgefl.core.plan import Plan
from edgefl.planning.plan import Planned
from edgefl.protocol import write_tree
from edgefl.runs.learner import Learner, mean_scalars
from edgefl.runs.past import Past
from edgefl.runs.so_far import SoFar
from edgefl.store.checkpoints import Checkpoint, CheckpointPlace
from edgefl.store.writer import Store
from edgefl.trackers import Callbacks
from edgefl.world.blind import is_blind
from edgefl.world.driver import converse, simulate
from edgefl.world.job import stacked
from edgefl.world.needs import Evaluate, Feedback, Merge, Need

# Without training, so many ended jobs are written and committed at a time.
_ROWS = 1000


@dataclass
class RunInProgress:
    """One run in progress.

    Attributes:
        learner: trains and scores; None on the null engine.
        minutes: of wall time between checkpoints; evaluations are checkpoints, too.
        past: what was done before, until the run is where it was; the store is not changed meanwhile.
        afresh: whether the run begins again, and what happened before is to be forgotten.
        longer: the plan with larger limits that the run gets in place of its own.
    """

    plan: Plan
    store: Store
    learner: Learner | None
    callbacks: Callbacks
    minutes: float = 5.0
    past: Past | None = None
    afresh: bool = False
    longer: Planned | None = None
    so_far: SoFar = field(init=False)
    _server_events: list[ServerEvent] = field(default_factory=list)
    _merges: list[dict[str, Any]] = field(default_factory=list)
    _jobs: list[np.ndarray] = field(default_factory=list)
    _tails: list[np.ndarray] = field(default_factory=list)
    _best: float = -1.0
    _needs: int = 0
    _last: CheckpointPlace | None = None

    def __post_init__(self) -> None:
        self.so_far = SoFar(self.plan, self.callbacks)
        self._saved_s = time.monotonic()

    @property
    def untouched(self) -> bool:
        """Whether the store is as it was before the run was resumed."""
        return self.past is not None or self.afresh

    def abandon(self) -> None:
        """Closes the store as it was."""
        if self.past is not None:
            self.past.reader.close()
        self.store.abandon()

    def to_end(self) -> None:
        """Runs the world to its end.

        Raises:
            RunError: training diverged.
            UserError: the world does not go the way that it went before.
        """
        if self.afresh:
            self.afresh = False
            self._go_on(None)
        self.so_far.tell("ready", self.so_far.place)
        # Training's scalars are added to the rows of jobs that are there.
        at_least = _ROWS if self.learner is None else 1
        world = simulate(
            self.plan,
            self._server_events.append,
            self._jobs.append,
            settled=self._tails.append,
            at_least=at_least,
            ledger=self.so_far.ledger,
        )
        ended = converse(world, self._answer)
        if self.past is not None:
            raise self.past.differs()
        self.flush()
        self.store.set_meta({"rounds": ended.rounds, "stopped": ended.by, "virtual_s": ended.t_s})
        if self.learner is not None and self.learner.observer is not None:
            self.store.set_meta({"measures_host_s": self.learner.host_s["measure"]})
        self.store.commit()
        self.so_far.tell("over", self.so_far.place._replace(t_s=ended.t_s))

    def _answer(self, need: Need) -> Feedback:
        self._needs += 1
        if self.past is not None:
            return self._again(need, self.past)
        return self._merge(need) if isinstance(need, Merge) else self._evaluate(need)

    def _again(self, need: Need, past: Past) -> Feedback:
        """The answer of the past; at its end, all is as it was then."""
        answer = past.answer(need, self._server_events, self._jobs)
        self._server_events.clear()
        self._jobs.clear()
        checkpoint = past.checkpoint
        if self._needs < checkpoint.place.needs:
            return answer
        past.check()
        if self.learner is not None:
            self.learner.restore(checkpoint, past.reader, past.answers.last)
        self._last = self.so_far.place = checkpoint.place
        self._best, self.so_far.figures = checkpoint.content["best"], checkpoint.content["figures"]
        past.reader.close()
        self.past = None
        self._go_on(checkpoint, past.jobs, past.turn)
        return answer

    def _go_on(self, checkpoint: Checkpoint | None, jobs: Sequence[int] = (), turn: int = 0) -> None:
        """Takes the store to where the run goes on; see ``Store.rewind``."""
        self.store.rewind(checkpoint, jobs, turn)
        if self.longer is not None:
            facts = {"run_id": self.longer.run_id, "blind": is_blind(self.longer.plan)}
            self.store.replace_plan(self.longer.resolved, facts)
        self._saved_s = time.monotonic()

    def _place(self, need: Need) -> CheckpointPlace:
        evaluated = isinstance(need, Evaluate)
        return CheckpointPlace(self._needs, need.version, evaluated, need.regular, need.round, need.t_s)

    def _save(
        self, place: CheckpointPlace, learner: Learner, figures: Mapping[str, float], *, best: bool = False
    ) -> None:
        """Saves a checkpoint; ``figures`` are new ones, for ``so_far``."""
        own = {"best": self._best, "figures": {**self.so_far.figures, **figures}}
        with learner.context.states.saving() as states:
            self.store.checkpoint(place, learner.saved(states, own), write_tree, best=best)
        self._saved_s = time.monotonic()

    def flush(self) -> None:
        """Moves the server's events, the ended jobs and the settled tails to the store."""
        self.store.add_events(self._server_events)
        self.store.add("merges", *self._merges)
        if self._jobs:
            names = [prices.exchange for prices in self.plan.prices]
            self.store.add_jobs(stacked(self._jobs), names)
        for tails in self._tails:
            self.store.add_tails(tails)
        self._server_events.clear()
        self._merges.clear()
        self._jobs.clear()
        self._tails.clear()

    def _merge(self, need: Merge) -> Feedback:
        start = time.perf_counter()
        scalars = {} if self.learner is None else self.learner.merge(need)
        means = mean_scalars(need, scalars)
        row = {
            "version": need.version,
            "exchange": need.exchange,
            "round": need.round,
            "t_s": need.t_s,
            "jobs": len(need.weights),
            "slowest_client": need.slowest,
            "loss": means.get("loss"),
            **({} if need.cost is None else {f"server_{k}": v for k, v in need.cost._asdict().items()}),
            "host_s": time.perf_counter() - start,
        }
        self._merges.append(row)
        if self._jobs or self.learner is not None:
            self.flush()
            self.store.add_scalars(scalars)
            self.store.commit()
        self._last = self._place(need)
        figures = {"training_loss": means["loss"]} if "loss" in means else {}
        if self.learner is not None and time.monotonic() - self._saved_s >= 60 * self.minutes:
            self._save(self._last, self.learner, figures)
        self.so_far.tell("merged", self._last, figures)
        return Feedback(jobs=scalars)

    def _evaluate(self, need: Evaluate) -> Feedback:
        if self.learner is None:
            return Feedback()
        if not need.regular and self._last is not None and not self._last.evaluated:
            # A longer run does not pass here, but where the last merge was.
            self._save(self._last, self.learner, {})
        start = time.perf_counter()
        scalars = self.learner.complete(need)
        global_scores, personal_scores = self.learner.evaluate(need.version)
        self._check_finite(need, global_scores, personal_scores)
        common = {
            "version": need.version,
            "round": need.round,
            "t_s": need.t_s,
            "down_bytes": need.totals.down_bytes,
            "up_bytes": need.totals.up_bytes,
            **need.totals.energy._asdict(),
            "host_s": time.perf_counter() - start,
        }
        accuracies, losses = self._add_scores(common, global_scores, personal_scores)
        measures = self.learner.measure(need, personal_scores)
        self.store.add("measures", *measures)
        best = accuracies.get("global" if global_scores else "personal", -1.0)
        self.flush()
        self.store.add_scalars(scalars)
        self._last = self._place(need)
        figures = {f"accuracy.{model}.value": accuracy for model, accuracy in accuracies.items()}
        figures |= {f"loss.{model}": loss for model, loss in losses.items()}
        figures |= {
            f"measures.{name}.figures.{key}": value
            for name, taken in measured_together(measures).items()
            for key, value in taken.items()
        }
        is_best, self._best = best > self._best, max(self._best, best)
        self._save(self._last, self.learner, figures, best=is_best)
        self.so_far.tell("evaluated", self._last, figures)
        return Feedback(jobs=scalars, scores=accuracies)

    def _check_finite(self, need: Evaluate, *scores: Scores | Personal | None) -> None:
        losses = [float(each.loss.mean()) for each in scores if each is not None and len(each.loss)]
        broken = [loss for loss in losses if not math.isfinite(loss)]
        if broken:
            raise RunError(
                f"training diverged: the loss on test data is {broken[0]} after merge {need.version}",
                hint="lower local.optimizer.lr, or --set local.optimizer.clip_norm=1",
            )

    def _add_scores(
        self, common: Mapping[str, Any], global_scores: Scores | None, personal_scores: Personal | None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Adds an evaluation's rows, which share ``common``; returns accuracies and losses by model."""
        accuracies, losses = {}, {}
        if global_scores is not None:
            accuracies["global"] = global_scores.accuracy
            losses["global"] = float(global_scores.loss.mean())
            row = {"accuracy": accuracies["global"], "loss": losses["global"]}
            self.store.add("evaluations", {**common, "model": "global", **row})
        if personal_scores is not None and personal_scores.clients:
            accuracies["personal"] = float(personal_scores.accuracy.mean())
            losses["personal"] = float(personal_scores.loss.mean())
            row = {
                "accuracy": accuracies["personal"],
                "loss": losses["personal"],
                "spread": float(personal_scores.accuracy.std()),
                "clients": len(personal_scores.clients),
                "untrained": personal_scores.untrained,
            }
            self.store.add("evaluations", {**common, "model": "personal", **row})
            columns = personal_scores.accuracy.tolist(), personal_scores.samples.tolist()
            scores = zip(personal_scores.clients, *columns, strict=True)
            self.store.insert("client_evaluations", ((common["version"], *score) for score in scores))
        return accuracies, losses
