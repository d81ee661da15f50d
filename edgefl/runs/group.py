"""Runs a scenario, or all runs of its sweep, into a directory."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from edgefl.analysis.settings import dotted
from edgefl.core import catalogue
from edgefl.core.drafts import Draft, load, slug
from edgefl.core.errors import UnknownNameError, UserError, nearest, short
from edgefl.core.overrides import Override
from edgefl.core.plan import Refusal
from edgefl.core.user_code import asked, user_code
from edgefl.core.yamls import Document
from edgefl.planning.assumed import in_short
from edgefl.planning.learning import GLOBAL, DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.runs.engines import EngineOptions, engine_options
from edgefl.runs.execute import Execution, execute, prepare
from edgefl.runs.progress import shown
from edgefl.runs.results import Result, RunResult
from edgefl.runs.tracking import Trackers, trackers_of
from edgefl.show.answers import several
from edgefl.store.folders import claimed, discard, write_group
from edgefl.trackers import Began, Callbacks


def find_scenario(name: str | Path) -> Path:
    """A scenario's file, by path or name.

    Raises:
        UnknownNameError: neither a file nor a known name.
    """
    path = Path(str(name))
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError as error:  # too long, for one
        raise UserError(f"cannot read {short(str(name))}: {error.strerror}", where="SCENARIO") from None
    if is_file:
        return path
    try:
        return catalogue.find("scenarios", str(name)).path
    except UnknownNameError as error:
        # After the names: a run's folder may have its scenario's.
        if is_folder:
            what = f"{name} is a directory, not a scenario"
            raise UserError(what, hint="give a YAML file or a shipped name") from None
        is_path = path.suffix in {".yaml", ".yml"} or path.parent != Path()
        what = f"unknown scenario {'file ' * is_path}{str(name)!r}"
        hint = nearest(path.stem, catalogue.entries("scenarios")) if is_path else error.hint
        raise UnknownNameError(what, hint=hint) from None


Overrides: TypeAlias = Sequence[str | Override] | Mapping[str, Any]
"""Settings that replace a scenario's: "key.path=value" texts, or values by their dotted keys."""
Scenario: TypeAlias = str | Path | Mapping[str, Any]
"""A scenario's file or name, or its settings."""


@user_code()
def drafts(scenario: Scenario, overrides: Overrides = (), seeds: int | None = None) -> list[Draft]:
    """The runs of a scenario, given as a path, a name or a mapping of settings; ``seeds`` as of ``load``.

    Raises:
        UserError: the scenario is wrong.
    """
    given = as_overrides(overrides)
    if isinstance(scenario, Mapping):
        scenario = {key: _plain(key, value) for key, value in scenario.items()}
        return load(Document.of(scenario, "scenario"), given, seeds)
    return load(find_scenario(scenario), given, seeds)


# The settings that options are short for.
_SHORT = {
    "engine": "engine.name",
    "seed": "seed",
    "link": "fleet.link",
    "workers": "engine.workers",
    "torch_device": "engine.device",
    "ray_address": "engine.address",
}


def as_overrides(given: Overrides, **short: Any) -> list[Override]:
    """Settings as they were given, each with its key; ``short`` has by option what it sets, None for nothing.

    An engine and a model come first, as a name or as a mapping with parameters: other options and settings
    are their parameters.

    Raises:
        ScenarioError: one is not KEY=VALUE.
    """
    found = {
        name: Override(name, Document.of(_plain(name, value), name))
        if name == "model" or isinstance(value, Mapping)
        else Override(_SHORT[name], Document.of(value, f"--{name.replace('_', '-')} {value}"))
        for name, value in short.items()
        if value is not None
    }
    first = [found.pop(name) for name in ("engine", "model") if name in found]
    if isinstance(given, Mapping):
        plain = {key: _plain(key, value) for key, value in given.items()}
        settings = [Override(key, Document.of(value, f"overrides[{key!r}]")) for key, value in plain.items()]
    else:
        settings = [one if isinstance(one, Override) else Override.parse(str(one)) for one in several(given)]
    return [*first, *settings, *found.values()]


def _plain(key: str, value: Any) -> Any:
    """A setting as plain data: of a model that is a module, or makes one, the component."""
    if key.partition(".")[0] != "model" or not callable(value):
        return value
    from edgefl.models.module import given

    return given(value)


@asked
def run(
    scenario: Scenario,
    *,
    overrides: Overrides = (),
    model: Any = None,
    seed: int | None = None,
    seeds: int | None = None,
    link: str | None = None,
    data_dir: str | Path | None = None,
    offline: bool = False,
    engine: str | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    callbacks: Callbacks | None = None,
    progress: bool | None = None,
    track: Trackers = (),
) -> Result:
    """Runs a scenario: one run, or one for each setting of its sweep.

    All runs are planned before the first starts, so that a mistake in the last is reported at once. A failed
    run does not stop the others.

    Args:
        scenario: a file, a name, or the settings as a mapping.
        overrides: settings that replace the scenario's, by dotted key, such as {"server.rounds": 3}; or
            texts, such as ["server.rounds=3"].
        model: in place of the scenario's: a module, whose weights every run starts from; a class or function
            that makes one, from each seed; or a component, as in a scenario.
        seed: short for ``seed`` among them.
        link: short for ``fleet.link`` among them: all clients' network class.
        seeds: repeats all runs with so many seeds, which count up from the scenario's; None for no
            repetition.
        data_dir: the folder of dataset files; None for the default.
        offline: whether nothing may be downloaded.
        engine: a name, such as "loop" or "null" (clock and costs only), or a mapping with the name and its
            parameters; None for the scenario's.
        out: the directory to create; None for a new one under ``runs/``.
        callbacks: called as runs progress.
        progress: whether progress is shown on standard error; None shows it in a terminal or a notebook,
            unless there are callbacks.
        track: experiment trackers, by name, such as "tensorboard", or as mappings with a name and
            parameters, such as {"name": "wandb", "mode": "offline"}. They change no result.

    Raises:
        UserError: an argument or the scenario is wrong; nothing was run.
        RunError: a run's directory cannot be written; nothing was run.
    """
    trackers = trackers_of(track)
    overrides = as_overrides(overrides, engine=engine, model=model, seed=seed, link=link)
    with shown(callbacks, progress, trackers) as watching:
        drafted = drafts(scenario, overrides, seeds)
        engines = [engine_options(draft) for draft in drafted]
        folder, name = Path(data_dir) if data_dir else None, drafted[0].group
        training = any(options.trains for options in engines)
        access = DataAccess(folder, download=not offline, need="pixels" if training else "labels")
        with claimed(Path(out) if out else None, slug(name)) as group:
            planned = [plan(draft, access) for draft in drafted]
            pairs = list(zip(planned, engines, strict=True))
            notes = [note for each, options in pairs for note in run_notes(each, trains=options.trains)]
            assumed = in_short(line for each in planned for line in each.plan.assumed)
            executions = _prepared(pairs, group, folder, name)
            return executed(executions, name, group, watching, [*assumed, *notes])


def _prepared(
    pairs: Sequence[tuple[Planned, EngineOptions]], group: Path, data_dir: Path | None, name: str
) -> list[Execution]:
    """Makes the directories of all runs, and ``group.json`` where there are several.

    Raises:
        RunError: one cannot be written, so that it could not be resumed; nothing is left of any.
    """
    found: list[Execution] = []
    try:
        for number, (planned, options) in enumerate(pairs, start=1):
            own = slug(planned.plan.scenario.name)
            target = group if len(pairs) == 1 else group / f"{number:02d}-{own}"
            prepare(planned, target, options, data_dir)
            found.append(Execution(planned, target, options))
        if len(pairs) > 1:
            write_group(group, name, [each.folder.name for each in found])
    except BaseException:
        for each in found:
            discard(each.folder)
        raise
    return found


def executed(
    runs: Sequence[Execution | RunResult],
    name: str,
    folder: Path,
    callbacks: Callbacks,
    notes: Sequence[str],
) -> Result:
    """Executes runs of the group ``name`` in ``folder``, whose lock is held; what has a result keeps it."""
    found: list[RunResult] = []
    for number, run in enumerate(runs, start=1):
        if isinstance(run, RunResult):
            found.append(run)
            continue
        scenario = run.planned.plan.scenario
        began = Began(
            name=scenario.name,
            group=name,
            number=number,
            runs=len(runs),
            rounds=scenario.server.until.rounds,
            run_id=run.planned.run_id,
            seed=scenario.seed,
            folder=run.folder,
            group_folder=folder,
            settings=deepcopy(dotted(run.planned.resolved["scenario"])),
            tags={
                "method": scenario.method.name,
                "dataset": scenario.task.dataset.name,
                "engine": run.options.params.name,
            },
            notes=notes,
        )
        notes = []
        found.append(RunResult(scenario.name, run.folder, *execute(run, began, callbacks)))
    return Result(folder, tuple(found))


def run_notes(planned: Planned, *, trains: bool) -> list[str]:
    """What to know of a planned run: who was refused, and what cannot be measured or selected by."""
    return [
        *_refusal_notes(planned),
        *_measure_notes(planned),
        *([] if trains else _selection_notes(planned)),
    ]


def _measure_notes(planned: Planned) -> list[str]:
    """Which measures have no rows, where the method has no global model."""
    learning = planned.learning
    missing = [one.name for one in learning.measures if GLOBAL in one.NEEDS]
    if not missing or learning.methods[0].global_model is not None:
        return []
    method = planned.plan.scenario.method.name
    return [f"evaluate.measures: {', '.join(missing)}: no values, since {method} has no global model"]


def _selection_notes(planned: Planned) -> list[str]:
    """A line if the selection reads what only training reports."""
    scenario = planned.plan.scenario
    found = " and ".join(scenario.server.selector.READS)
    why = f"selection reads {found}, and nothing is trained: it uses its cold-start values"
    return [f"{scenario.name}: {why}"] if found else []


def _refusal_notes(planned: Planned) -> list[str]:
    """A line for each device and exchange that it cannot do, with the numbers of its largest client."""
    kinds: dict[tuple[str, str], list[Refusal]] = {}
    for _, refusal in planned.plan.refused():
        kinds.setdefault((refusal.device, refusal.exchange), []).append(refusal)
    name, clients = planned.plan.scenario.name, len(planned.plan.clients)
    return [
        f"{name}: {len(group)} of {clients} clients refused: {max(group, key=attrgetter('needs_bytes'))}"
        for group in kinds.values()
    ]
