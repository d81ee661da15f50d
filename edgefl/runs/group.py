"""From a scenario to a directory of finished runs."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.core import catalogue
from edgefl.core.errors import UnknownNameError, UserError, nearest
from edgefl.core.plan import Refusal
from edgefl.core.scenario import Draft, load, slug
from edgefl.core.yamls import Document, dump
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.runs.callbacks import Callbacks
from edgefl.runs.engines import wanted_of
from edgefl.runs.execute import execute
from edgefl.store import fresh_folder, read


@dataclass(frozen=True)
class RunResult:
    """One finished run; its tables are read from its directory.

    Attributes:
        name: the run's name.
        folder: its directory.
        status: "done" or "failed".
        reason: why it failed; empty where it did not.
    """

    name: str
    folder: Path
    status: str
    reason: str

    def table(self, name: str) -> list[dict[str, Any]]:
        """One of the run's tables as a list of dicts.

        Args:
            name: "jobs", "events", "merges", "evaluations", "client_evaluations", "clients", "exchanges",
                "prices", "payloads" or "refusals".
        """
        with read(self.folder) as reader:
            return reader.rows(name)


@dataclass(frozen=True)
class Result:
    """A group of finished runs.

    Attributes:
        folder: the group's directory; the run's own where there is one run.
        runs: in the order of the sweep.
    """

    folder: Path
    runs: tuple[RunResult, ...]

    @property
    def failed(self) -> tuple[RunResult, ...]:
        """The runs that failed."""
        return tuple(run for run in self.runs if run.status != "done")


def find_scenario(name: str | Path) -> Path:
    """A scenario's file: a path, or a shipped or own name.

    Raises:
        UnknownNameError: neither a file nor a known name.
    """
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        raise UserError(f"{name} is a directory, not a scenario", hint="give a YAML file or a shipped name")
    known = catalogue.entries("scenarios")
    if str(name) in known:
        return known[str(name)].path
    if path.suffix in {".yaml", ".yml"} or path.parent != Path():
        raise UnknownNameError(f"there is no scenario file {str(name)!r}", hint=nearest(path.stem, known))
    raise UnknownNameError(f"unknown scenario {str(name)!r}", hint=nearest(str(name), known))


def drafts(scenario: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> list[Draft]:
    """The runs that a scenario asks for: a path, a name, or the settings themselves.

    Raises:
        UserError: something in it is wrong.
    """
    if isinstance(scenario, Mapping):
        return load(Document.parse(dump(dict(scenario)), "scenario"), overrides)
    return load(find_scenario(scenario), overrides)


def run(
    scenario: str | Path | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    data_dir: str | Path | None = None,
    download: bool = True,
    engine: str | Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    callbacks: Callbacks | None = None,
) -> Result:
    """Runs a scenario: one run, or one for each setting of its sweep.

    All runs are planned before the first starts, so that a mistake in the last is known at once. A run that
    fails does not stop the others.

    Args:
        scenario: a file, a name, or the settings as a mapping.
        overrides: "key.path=value" texts.
        data_dir: where datasets' files lie; None for the default place.
        download: whether missing files may be fetched.
        engine: its name, such as "loop" or "null" (the clock and the costs alone), or a mapping with the name
            and its parameters; None for the scenario's.
        out: the directory to make; None for a fresh one under ``runs/``.
        callbacks: called as runs progress.

    Raises:
        UserError: something given is wrong; nothing was run.
    """
    callbacks = callbacks or Callbacks()
    if engine is not None:
        replaced = dict(engine) if isinstance(engine, Mapping) else {"name": engine}
        overrides = [f"engine={json.dumps(replaced)}", *overrides]
    wanted = drafts(scenario, overrides)
    engines = [wanted_of(draft) for draft in wanted]
    folder = Path(data_dir) if data_dir else None
    training = any(one.trains for one in engines)
    access = DataAccess(folder, download=download, need="pixels" if training else "labels")
    group = Path(out) if out else _fresh_name(Path("runs"), slug(wanted[0].group))
    fresh_folder(group)
    callbacks.planning(len(wanted))
    try:
        planned = [plan(draft, access) for draft in wanted]
    except BaseException:
        group.rmdir()
        raise
    names = [one.plan.scenario.name for one in planned]
    callbacks.planned([note for one in planned for note in refusal_notes(one)])
    single = len(planned) == 1
    results = []
    for index, (one, by) in enumerate(zip(planned, engines, strict=True)):
        target = group if single else group / f"{index + 1:02d}-{slug(names[index])}"
        results.append(RunResult(names[index], target, *execute(one, target, by, callbacks, folder)))
    return Result(group, tuple(results))


def refusal_notes(planned: Planned) -> list[str]:
    """One line for each kind of device that cannot do an exchange, with the numbers of its largest client."""
    kinds: dict[tuple[str, str], list[Refusal]] = {}
    for one in planned.plan.refusals:
        kinds.setdefault((one.device, one.exchange), []).append(one)
    name, clients = planned.plan.scenario.name, len(planned.plan.clients)
    return [
        f"{name}: {len(group)} of {clients} clients refused: {max(group, key=lambda one: one.needs_bytes)}"
        for group in kinds.values()
    ]


def _fresh_name(parent: Path, name: str) -> Path:
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    folder = parent / f"{name}-{stamp}"
    count = 1
    while folder.exists():
        count += 1
        folder = parent / f"{name}-{stamp}-{count}"
    if parent.exists() and not parent.is_dir():
        raise UserError(
            f"{parent} is a file, and runs are kept in a directory of that name", hint="pass --out DIR"
        )
    return folder
