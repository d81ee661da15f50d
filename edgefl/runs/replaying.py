"""Replays runs: the same learning, costed on other fleets, servers and codecs, without data or training."""

import math
import shutil
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias, cast

from rich.console import Group, RenderableType

from edgefl.analysis.summary import Summary, summaries
from edgefl.core.documents import document
from edgefl.core.drafts import setting_words, slug
from edgefl.core.errors import RunError, UserError
from edgefl.core.overrides import Override
from edgefl.core.user_code import user_code
from edgefl.core.yamls import dump
from edgefl.planning.assumed import in_short
from edgefl.planning.replanning import REPLAYED, Replanned, learned_wire, replanned
from edgefl.runs.describing import describe
from edgefl.runs.group import run_notes
from edgefl.runs.learner import Learner
from edgefl.runs.recording import OtherRunError, RecordEndsError, Recording
from edgefl.runs.results import Result, RunResult
from edgefl.runs.run import RunInProgress
from edgefl.show.compare import (
    Comparison,
    NotReplayed,
    Replayed,
    Replays,
    ReplaySource,
    comparison,
    replays_table,
)
from edgefl.show.table import Line
from edgefl.store.folders import claimed, discard
from edgefl.store.reader import Reader, read
from edgefl.store.writer import Store
from edgefl.trackers import Callbacks
from edgefl.world.needs import Evaluate, Feedback

NULL = "null"
# Facts that are those of the run that trained.
_KEPT = ("trainer", "provenance", "class_counts")

Fleets: TypeAlias = str | Mapping[str, Any]


class _Temporary:
    """A temporary directory, which is removed with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="edgefl-replay-"))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True, repr=False)
class ReplayResult(RunResult):
    """A replay; where it was not saved, it can be read as long as this object is there.

    Attributes:
        source: where its learning comes from.
        fleet: what it was replayed on: the run's own fleet where no other was named.
    """

    source: ReplaySource
    fleet: str
    notes: Sequence[str] = ()
    _temporary: _Temporary | None = field(default=None, compare=False)


@dataclass(frozen=True, repr=False)
class Replay(Result):
    """Replays of runs.

    Attributes:
        runs: by fleet and by run.
        saved: whether they have a directory of their own.
        refused: the runs that cannot be replayed, by fleet.
        target: an accuracy in (0, 1]; None for each run's own.
    """

    runs: tuple[ReplayResult, ...]
    saved: bool
    refused: Sequence[NotReplayed] = ()
    target: float | None = None
    _sources: Sequence[Path] = ()
    _given: Sequence[Override] = ()

    @property
    def notes(self) -> list[str]:  # type: ignore[override]
        """What they assume, and what else to know of them, as ``run`` says it."""
        return in_short(note for run in self.runs for note in run.notes)

    @property
    def lines(self) -> list[str]:  # type: ignore[override]
        """The event hash of a single one, and where they are saved."""
        hashes = (
            [f"event hash {run.summary().event_hash}" for run in self.runs] if len(self.runs) == 1 else []
        )
        return [*hashes, *([f"saved in {self.folder}"] if self.saved else [])]

    @property
    def document(self) -> Any:
        """Plain data: what ``edgefl replay --json`` prints."""
        found: list[Summary] = self.summary(self.target)
        if not self.saved:
            found = [replace(run, run_dir="") for run in found]
        runs = self._replayed(found)
        return document(
            Replays(str(self.folder) if self.saved else None, Comparison(found), runs, self.refused)
        )

    def __rich__(self) -> RenderableType:
        """One replay beside its run, or a row for each of several."""
        if not self.runs:
            return Line(repr(self))
        if len(self.runs) > 1:
            words = [setting_words(one.key, one.value.data) for one in self._given]
            return replays_table(self._replayed(self.summary(self.target)), words)
        found = summaries([*self._sources, self.runs[0].folder], self.target)
        was, now = found if len(self._sources) == 1 else (None, found[-1])
        # On its own fleet it is the same run.
        beside = was is not None and was.event_hash != now.event_hash
        return Group(comparison(found if beside else [now], reasons=False), Line())

    def _replayed(self, found: Sequence[Summary]) -> list[Replayed]:
        return [Replayed(run.fleet, run.source, one) for run, one in zip(self.runs, found, strict=True)]


def each_fleet(fleets: Sequence[Override], given: Sequence[Override]) -> Sequence[Override | None]:
    """The fleets to replay on in turn; None is each run's own, or what is set.

    Raises:
        UserError: a setting names yet another fleet.
    """
    again = next((one for one in given if one.keys == ["fleet"]), None)
    if fleets and again is not None:
        hint = "name all fleets in the same way"
        raise UserError("another fleet is given already", where=again.value.place(), hint=hint)
    return list(fleets) or [None]


class Replayer:
    """Replays one run after another; where that is broken off, nothing is left.

    Args:
        out: the directory to save them in, which is claimed on entry; None for one that goes with them.
        alone: whether one run is saved, in the directory itself.
    """

    def __init__(self, out: Path | None = None, *, alone: bool = False) -> None:
        self.done: list[ReplayResult] = []
        self._temporary = None
        if out is None:
            self._temporary = _Temporary()
            out = self._temporary.path
        self._folder, self._alone, self._claim = out, alone, ExitStack()

    def __enter__(self) -> Self:
        """Claims the directory.

        Raises:
            UserError: it is not empty, in use, or cannot be written.
        """
        if self._temporary is None:
            self._claim.enter_context(claimed(self._folder, "replay"))
        return self

    def __exit__(self, broken: type[BaseException] | None, *_: object) -> None:
        for one in self.done if broken else ():
            discard(one.folder)
        self._claim.close()

    @user_code()
    def add(self, folder: Path, fleet: Override | None, overrides: Sequence[Override]) -> ReplayResult:
        """Replays a run on a fleet, or on its own, with other settings, also of that fleet.

        Raises:
            UserError: as ``replay``.
        """
        given = [*([] if fleet is None else [fleet]), *overrides]
        with read(folder) as reader:
            source = _source(reader)
            named = [fleet_name(one.value.data) for one in given if one.keys == ["fleet"]]
            where = named[-1] if named else fleet_name(reader.document.data["scenario"]["fleet"])
            name = _name(source.name, where if named else "", given)
            target = self._folder
            if not self._alone:
                target /= f"{len(self.done) + 1:02d}-{slug(name)}"
            try:
                status, reason, notes = _replay(reader, replanned(reader, given, name), source, target)
            except UserError as error:
                raise _placed(error, folder, given) from error.__cause__
        made = ReplayResult(name, target, status, reason, source, where, notes, self._temporary)
        self.done.append(made)
        return made

    def result(self) -> Replay:
        """The replays so far."""
        return Replay(self._folder, tuple(self.done), saved=self._temporary is None and bool(self.done))


def fleet_name(fleet: Fleets) -> str:
    """A fleet in a word: a profile's name, or what a fleet of one's own says of itself."""
    named = fleet.get("title") or fleet.get("like") if isinstance(fleet, Mapping) else fleet
    return str(named or "its own fleet")


def _name(run: str, fleet: str, given: Sequence[Override]) -> str:
    """The name of a replay: the run's, with the fleet, if one was named, and what else was set."""
    others = [setting_words(one.key, one.value.data) for one in given if one.keys != ["fleet"]]
    return ", ".join([f"{run} on {fleet}" if fleet else run, *others])


def _source(reader: Reader) -> ReplaySource:
    """Where the learning of a run comes from: of a replay, from the run that it replays."""
    meta, replayed = reader.meta, reader.meta.get(REPLAYED)
    if replayed:
        return ReplaySource(*(replayed[key] for key in ReplaySource._fields))
    return ReplaySource(str(reader.folder.resolve()), meta["name"], meta["run_id"], reader.event_hash())


def _placed(error: UserError, folder: Path, given: Sequence[Override]) -> UserError:
    """The error with the run that it is of; where another run would be learned, with how to learn it."""
    error.where = error.where or str(folder)
    if isinstance(error, OtherRunError) and not error.hint:
        settings = " ".join(f"--set '{one.key}={dump(one.value.data, in_line=True)}'" for one in given)
        error.hint = f"train it there: edgefl run SCENARIO {settings}"
    return error


def _replay(
    reader: Reader, found: Replanned, source: ReplaySource, target: Path
) -> tuple[str, str, list[str]]:
    """Replays a run into a new directory, of which nothing is left where that fails.

    Returns:
        The status, why it is not done, and what to know of it.

    Raises:
        UserError: another run would be learned.
    """
    start, meta = time.perf_counter(), reader.meta
    trained = meta["engine"] != NULL
    if trained and not reader.query("SELECT 1 FROM merges LIMIT 1"):
        what = f"{meta['name']} has no merge that could be replayed"
        raise UserError(what, hint="run the scenario again")
    with Store.planned(target) as store:
        describe(found.planned, store, meta["engine"])
    store = Store.open(target)
    try:
        facts = {**source._asdict(), "wire": learned_wire(reader).model_dump(mode="json")}
        store.set_meta({REPLAYED: facts} | {key: meta[key] for key in _KEPT if key in meta})
        recording = Recording(reader, found) if trained else None
        learner = cast("Learner | None", recording)
        run = AsRecorded(found.planned.plan, store, learner, Callbacks(), minutes=math.inf)
        status, reason = run.ended()
        store.close(status, reason=reason, host_wall_s=time.perf_counter() - start)
    except BaseException:
        store.abandon()
        discard(target)
        raise
    notes = run_notes(found.planned, trains=trained)
    return status, reason, [*found.planned.plan.assumed, *notes, *run.notes(reason)]


class AsRecorded(RunInProgress):
    """A run whose learner is the recording of another one."""

    @property
    def recording(self) -> Recording:
        """What was recorded, of a run that trained."""
        return cast("Recording", self.learner)

    def ended(self) -> tuple[str, str]:
        """Runs to the end; returns the status, and why the run is not done."""
        try:
            self.plan.check_admitted()
            self.to_end()
        except RecordEndsError:
            self.flush()
            return "interrupted", self._ends_at()
        except RunError as error:
            if self.learner is not None:
                raise OtherRunError(error.what, error.hint) from error
            self.flush()
            return "failed", str(error)
        return "done", ""

    def _ends_at(self) -> str:
        reader, version = self.recording.reader, self.recording.version
        return f"{reader.meta['name']} is recorded up to merge {version}, and was not done"

    def _evaluate(self, need: Evaluate) -> Feedback:
        if self.learner is None:
            return Feedback()
        scalars = self.recording.complete(need)
        evaluations, clients, measures = self.recording.scored(need.version)
        spent = {"down_bytes": need.totals.down_bytes, "up_bytes": need.totals.up_bytes}
        common = {
            "round": need.round,
            "t_s": need.t_s,
            **spent,
            **need.totals.energy._asdict(),
            "host_s": 0.0,
        }
        self.store.add("evaluations", *({**row, **common} for row in evaluations))
        self.store.add("client_evaluations", *clients)
        self.store.add("measures", *measures)
        self.flush()
        self.store.add_scalars(scalars)
        return Feedback(jobs=scalars, scores={row["model"]: row["accuracy"] for row in evaluations})

    def notes(self, reason: str) -> list[str]:
        name, unscored = self.plan.scenario.name, self.recording.unscored if self.learner else []
        many = "evaluations have no accuracies" if len(unscored) > 1 else "evaluation has no accuracy"
        versions = f"version{'s' * (len(unscored) > 1)} {', '.join(map(str, unscored))}"
        return [
            *([f"{name}: {reason}: these are its figures until then"] if reason else []),
            *([f"{name}: {len(unscored)} {many}: the run did not evaluate {versions}"] if unscored else []),
        ]
