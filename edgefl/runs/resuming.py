"""Goes on with runs that were interrupted, killed or failed, or that are to be longer."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgefl.core.components import component
from edgefl.core.errors import UserError
from edgefl.core.notes import note
from edgefl.core.overrides import Override, put
from edgefl.core.scenario import Checkpointing as Checkpoints
from edgefl.core.units import show_seconds
from edgefl.core.user_code import asked
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned
from edgefl.planning.raising import raised
from edgefl.planning.replanning import REPLAYED, learning_of
from edgefl.runs.engines import NULL, EngineOptions, checked_engine
from edgefl.runs.execute import Execution
from edgefl.runs.group import Overrides, as_overrides, executed
from edgefl.runs.past import whole
from edgefl.runs.progress import shown
from edgefl.runs.results import UNREADABLE, Result, RunResult, Runs, folder_of
from edgefl.runs.tracking import Trackers, trackers_of
from edgefl.store.folders import is_group, made_in, read_group, runs_in
from edgefl.store.locks import GROUP, locked
from edgefl.store.plans import read_plan
from edgefl.store.reader import Reader, is_settled
from edgefl.store.writer import Store
from edgefl.trackers import Callbacks

# More runs that are done are counted, not named.
_FEW = 5


@asked
def resume(
    run: Runs,
    *,
    overrides: Overrides = (),
    data_dir: str | Path | None = None,
    offline: bool = False,
    engine: str | Mapping[str, Any] | None = None,
    callbacks: Callbacks | None = None,
    progress: bool | None = None,
    track: Trackers = (),
) -> Result:
    """Goes on with a run, or with all runs of a group, from the last checkpoint of each.

    What was interrupted, killed or failed goes on; what was only planned begins; what is done stays as it is,
    unless ``server.until`` is raised. A run ends as if it had never stopped: its rows, weights and event hash
    are the same bits, given the same versions of the code and its libraries on the same kind of processor.

    Args:
        run: the directory of a run or of a group, or what ``run`` or ``open`` returned.
        overrides: settings that replace the runs' own: of ``server.until``, each limit raised or removed, of
            ``engine`` and of ``checkpoint``.
        data_dir: the folder of dataset files; None for where the run found them.
        offline: whether nothing may be downloaded.
        engine: another engine, as of ``run``; None for the one that trained so far.
        callbacks: called as runs progress.
        progress: as of ``run``.
        track: as of ``run``; they are told what happens from now on.

    Raises:
        UserError: an argument is wrong, another command works on it, or a run is damaged beyond its
            checkpoints; nothing was changed.
    """
    trackers = trackers_of(track)
    given = as_overrides(overrides, engine=engine)
    access = DataAccess(Path(data_dir) if data_dir else None, download=not offline)
    with shown(callbacks, progress, trackers) as watching:
        folder = folder_of(run)
        name, runs = _runs_of(folder)
        with locked(folder):
            executions = [_execution(one, given, access, alone=len(runs) == 1) for one in runs]
            return executed(executions, name, folder, watching, _notes(executions))


def _notes(executions: Sequence[Execution | RunResult]) -> list[str]:
    """Where the runs go on; those that do not are noted."""
    kept = [each for each in executions if isinstance(each, RunResult)]
    done = [each.name for each in kept if each.status == "done"]
    if done:
        few = f": {', '.join(done)}" if len(done) <= _FEW else ""
        note(f"already done{few or f': {len(done)} of {len(executions)} runs'}")
    for run in kept:
        if run.status != "done":
            note(f"{run.name} failed: {run.reason}")
    found = []
    for each in executions:
        if isinstance(each, Execution) and each.checkpoint:
            place = each.checkpoint.place
            name = each.planned.plan.scenario.name
            found.append(
                f"{name}: goes on from version {place.version}, {show_seconds(place.t_s)} of virtual time"
            )
    return found


def _runs_of(folder: Path) -> tuple[str, list[Path]]:
    """A group's name and the directories of its runs; those of a single run.

    Raises:
        UserError: the directory is neither, or none of the group's runs is there any more.
    """
    if is_group(folder):
        name, names = read_group(folder)
        gone = [each for each in names if not (folder / each).is_dir()]
        if gone == names:
            raise UserError(f"{folder} has none of its runs any more", where=str(folder))
        if gone:
            some = ", ".join(gone[:_FEW]) + (" and others" if len(gone) > _FEW else "")
            note(f"left out: {some}, no longer in {folder}")
        return name, [folder / each for each in names if each not in gone]
    if made_in(folder) == [folder]:
        return folder.name, [folder]
    found = runs_in(folder)
    raise UserError(
        f"{folder} holds {len(found)} runs and no {GROUP}",
        where=str(folder),
        hint="resume its runs one by one",
    )


def _engine_of(reader: Reader, given: Sequence[Override]) -> EngineOptions:
    """The engine of a run: the one that trained it, with what is set of it.

    Raises:
        UserError: a setting is wrong, or the engine cannot work here.
    """
    asked = reader.meta["engine_asked"]
    document = _overridden("engine", reader.meta.get("engine_used") or asked, given)
    options = checked_engine(component("engines", document.data["engine"], document, ["engine"]))
    if options.trains != (asked["name"] != NULL):
        raise UserError(
            f"{reader.folder.name} was run {'without' if options.trains else 'with'} training, and can "
            "only go on like that",
            where=f"engine {options.params.name}",
            hint="choose another engine, or run the scenario again with this one",
        )
    return options if "engine" in _set(given) else replace(options, why="as before")


def _set(given: Sequence[Override]) -> set[str]:
    """What they set, of all that is not the limits of a run."""
    return {one.keys[0] for one in given} & {"engine", "checkpoint"}


def _overridden(key: str, own: Mapping[str, Any], given: Sequence[Override]) -> Document:
    """What a run has under a key, with what is set of it."""
    document = replace(Document.of({key: own}, "the run"), context=RESOLVED)
    for one in given:
        if one.keys[0] == key:
            document = put(document, one.keys, one.value)
    return document


def _execution(
    folder: Path, given: Sequence[Override], access: DataAccess, *, alone: bool
) -> Execution | RunResult:
    """How a run goes on, or its result: of one that stays as it is, or is damaged and not alone.

    Raises:
        UserError: it is damaged beyond its checkpoints, its data are gone, or a setting is wrong.
    """
    try:
        reader = Reader(folder)
    except UserError as error:
        if alone:
            raise
        return RunResult(folder.name, folder, UNREADABLE, str(error))
    with closing(reader):
        meta = reader.meta
        if replayed := meta.get(REPLAYED):
            raise UserError(
                f"{folder.name} is a replay of {replayed['name']}, and trained nothing that could go on",
                where=str(folder),
                hint=f"resume {replayed['run_dir']}, and replay it again",
            )
        done = meta["status"] == "done"
        limits = [one for one in given if not _set([one])]
        document = _overridden("checkpoint", {"minutes": meta["checkpoint_minutes"]}, given)
        checkpoints = validate(Checkpoints, document.data["checkpoint"], document, ["checkpoint"])
        if not done or limits:
            options = _engine_of(reader, given)
            plan = read_plan(reader)
            plan = replace(plan, scenario=plan.scenario.model_copy(update={"checkpoint": checkpoints}))
            before = Planned(plan, learning_of(reader, access), reader.document.data)
            planned = raised(before, limits)
            longer = planned is not before
            if not done or longer:
                checkpoint = whole(reader, note, raised=longer) if options.trains else None
                return Execution(planned, folder, options, meta, checkpoint, longer)
        elif "engine" in _set(given):
            _engine_of(reader, given)
    if not is_settled(folder):
        # It was killed while it ended.
        Store.open(folder).close("done")
    return RunResult(meta["name"], folder, "done", "")
