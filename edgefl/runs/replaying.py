"""Replays runs: the same learning, costed on other fleets, servers and codecs, without data or training."""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, cast

from edgefl.core.drafts import slug
from edgefl.core.errors import RunError, UserError
from edgefl.core.overrides import Override
from edgefl.core.user_code import user_code
from edgefl.core.yamls import in_line
from edgefl.planning.replanning import Replanned, learned_wire, replanned
from edgefl.protocol import write_tree
from edgefl.runs.callbacks import Callbacks
from edgefl.runs.describing import describe
from edgefl.runs.group import Overrides, as_overrides
from edgefl.runs.learner import Learner
from edgefl.runs.recording import RecordEndsError, Recording
from edgefl.runs.results import Result, RunResult
from edgefl.runs.run import Run
from edgefl.store import Reader, Store, claimed, event_hash, read, runs_in
from edgefl.world.needs import Evaluate, Feedback

NULL = "null"
# In the meta table of a replay: where its learning comes from.
REPLAYED = "replayed"
# Facts that are those of the run that trained.
_KEPT = ("trainer", "class_counts")

Fleets: TypeAlias = str | Mapping[str, Any]
Runs: TypeAlias = str | Path | RunResult | Result


class Source(NamedTuple):
    """Where the learning of a replay comes from, and what it was replayed on.

    Attributes:
        run_dir: the directory of the run that trained.
        name, run_id, event_hash: as that run has them.
        fleet: the fleet of the replay; the run's own where none was named.
    """

    run_dir: str
    name: str
    run_id: str
    event_hash: str | None
    fleet: str


@dataclass(frozen=True, repr=False)
class Replay(Result):
    """Replays of runs; without a directory of their own, they can be read as long as this object is there.

    Attributes:
        sources: of each run, where its learning comes from.
        notes: what to know of each, by its place.
    """

    sources: tuple[Source, ...] = ()
    notes: tuple[tuple[str, ...], ...] = ()
    _kept: Any = field(default=None, compare=False)


def replay(
    run: Runs | Sequence[Runs],
    *,
    fleet: Fleets | Sequence[Fleets] | None = None,
    overrides: Overrides = (),
    out: str | Path | None = None,
) -> Replay:
    """Costs what runs have learned on other fleets, with other settings of the server or other codecs.

    Nothing is trained and no data are read: accuracies are those of the runs, at the times, bytes and
    energies that they have on the other fleet. It is what a new run there gives, in every row but those of
    files and of wall time.

    Args:
        run: a run's directory or a group's, what ``run`` or ``open`` returned, or several of these.
        fleet: a profile's name, or a fleet's settings; or several, on each of which every run is replayed.
            None is each run's own fleet, as it was.
        overrides: settings of ``fleet``, ``server`` and ``wire``, as of ``run``.
        out: the directory to create; None keeps the runs in a temporary one.

    Raises:
        UserError: an argument is wrong, a run cannot be read, or another run would be learned there; the
            message names the first merge that would differ. Nothing is written then.
    """
    given = as_overrides(overrides)
    folders = [folder for each in _several(run) for folder in _folders(each)]
    fleets = [None] if fleet is None else _several(fleet)
    with Replays() as replays:
        for folder in folders:
            for each in fleets:
                replays.add(folder, each, given)
        return replays.saved(None if out is None else Path(out))


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _folders(run: Runs) -> list[Path]:
    if isinstance(run, Result):
        return [each.folder for each in run.runs]
    return [run.folder] if isinstance(run, RunResult) else runs_in(Path(run))


class _Done(NamedTuple):
    """A replay that was made."""

    result: RunResult
    source: Source
    notes: tuple[str, ...]


class Replays:
    """Replays one run after another into a temporary directory, from which they can be saved."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="edgefl-replay-")
        self._done: list[_Done] = []
        self._given_away = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._given_away:
            self._temporary.cleanup()

    @user_code()
    def add(self, folder: Path, fleet: Fleets | None, overrides: Sequence[Override]) -> None:
        """Replays a run.

        Raises:
            UserError: as ``replay``.
        """
        first = [] if fleet is None else [Override.of("fleet", fleet, f"fleet {_fleet_name(fleet)}")]
        given = [*first, *overrides]
        target = Path(self._temporary.name) / f"{len(self._done):04d}"
        with read(folder) as reader:
            source = _source(reader, given)
            name = source.name if not given else f"{source.name} on {source.fleet}"
            try:
                notes = _replay(reader, replanned(reader, given, name), source, target)
            except UserError as error:
                if target.exists():
                    shutil.rmtree(target)
                raise _placed(error, folder, given) from error.__cause__
        with read(target) as made:
            result = RunResult(name, target, made.meta["status"], made.meta.get("reason", ""))
        self._done.append(_Done(result, source, tuple(notes)))

    def saved(self, out: Path | None) -> Replay:
        """The replays so far, in a directory of their own or in the temporary one, which they then keep.

        Raises:
            UserError: there are none, or the directory is not empty or cannot be written.
        """
        results = [each.result for each in self._done]
        if out is None:
            self._given_away = True
            return self._replay(Path(self._temporary.name), results, self._temporary)
        with claimed(out, "replay") as group:
            moved = []
            for number, one in enumerate(results, start=1):
                target = group if len(results) == 1 else group / f"{number:02d}-{slug(one.name)}"
                _copy(one.folder, target)
                moved.append(RunResult(one.name, target, one.status, one.reason))
        return self._replay(out, moved, None)

    def _replay(self, folder: Path, results: Sequence[RunResult], kept: Any) -> Replay:
        return Replay(
            folder,
            tuple(results),
            sources=tuple(each.source for each in self._done),
            notes=tuple(each.notes for each in self._done),
            _kept=kept,
        )


def _copy(folder: Path, target: Path) -> None:
    """Copies a run.

    Raises:
        UserError: it cannot be written.
    """
    try:
        shutil.copytree(folder, target, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise UserError(f"cannot write {target}: {error}", where="--out") from error


def _fleet_name(fleet: Fleets) -> str:
    return (
        fleet if isinstance(fleet, str) else str(fleet.get("title") or fleet.get("like") or "its own fleet")
    )


def _source(reader: Reader, given: Sequence[Override]) -> Source:
    """Where the learning of a run comes from; of a replay, from the run that it replays."""
    replayed = reader.meta.get(REPLAYED)
    fleets = [override.node.plain for override in given if override.keys == ["fleet"]]
    own = reader.resolved()["scenario"]["fleet"]
    fleet = _fleet_name(fleets[-1] if fleets else own)
    if replayed:
        return Source(**{**replayed, "fleet": fleet})
    name, run_id = reader.meta["name"], reader.meta["run_id"]
    return Source(str(reader.folder.resolve()), name, run_id, event_hash(reader), fleet)


def _placed(error: UserError, folder: Path, given: Sequence[Override]) -> UserError:
    """The error with the run that it is of, and with what else can be done, unless it says these itself."""
    error.where = error.where or str(folder)
    if not error.hint:
        settings = " ".join(f"--set '{one.key}={in_line(one.node.plain)}'" for one in given)
        error.hint = f"train it there: edgefl run SCENARIO {settings}"
    return error


def _replay(reader: Reader, found: Replanned, source: Source, target: Path) -> list[str]:
    """Replays a run into a new directory; returns what to know of it.

    Raises:
        UserError: another run would be learned.
    """
    start, meta = time.perf_counter(), reader.meta
    trained = meta["engine"] != NULL
    if trained and not reader.query("SELECT 1 FROM merges LIMIT 1"):
        raise UserError(
            f"{meta['name']} has no merge yet", hint="wait until it has, or run the scenario again"
        )
    store = Store.create(target, write_tree)
    try:
        describe(found.planned, store, meta["engine"])
        facts = {**source._asdict(), "wire": learned_wire(reader).model_dump(mode="json")}
        store.set_meta({REPLAYED: facts} | {key: meta[key] for key in _KEPT if key in meta})
        recording = Recording(reader, found) if trained else None
        learner = cast("Learner | None", recording)
        run = Replayed(found.planned.plan, store, learner, Callbacks(), minutes=math.inf)
        status, reason = run.ended()
        store.close(status, reason=reason, host_wall_s=time.perf_counter() - start)
    except BaseException:
        store.abandon()
        raise
    return run.notes(reason)


class Replayed(Run):
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
        """What to know of the replay."""
        name, unscored = self.plan.scenario.name, self.recording.unscored if self.learner else []
        many = "evaluations have no accuracies" if len(unscored) > 1 else "evaluation has no accuracy"
        versions = ", ".join(map(str, unscored))
        return [
            *([f"{name}: {reason}: these are its figures until then"] if reason else []),
            *([f"{name}: {len(unscored)} {many}: the run did not evaluate {versions}"] if unscored else []),
        ]
