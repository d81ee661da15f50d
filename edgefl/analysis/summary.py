"""A run's results in numbers, read from its directory."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from edgefl.analysis.bills import Bill, Until, in_grams, in_money
from edgefl.analysis.explain.path import PathTime, path_times
from edgefl.analysis.explain.transfers import SharedTime
from edgefl.analysis.history import Target, until_target
from edgefl.analysis.run import Run
from edgefl.analysis.settings import dotted, settings_of
from edgefl.analysis.sums import Turnout, Usage, WorkSums, turnout, usage, work
from edgefl.core.corners import Interval
from edgefl.core.documents import INLINE, OPTIONAL, document
from edgefl.core.errors import UserError, nearest, quoted, short
from edgefl.core.merging import MergeCost
from edgefl.store.folders import lost_from, runs_in
from edgefl.store.reader import Reader, read

Record = TypeVar("Record")


@dataclass(frozen=True)
class Accuracy:
    """A model's last evaluation.

    Attributes:
        before: the accuracy before the exchanges at the end; None where there are none.
        round: the round it was evaluated after, from 0.
        deviation_over_clients: of personal models, the standard deviation of all clients' accuracies (n).
        clients: of personal models, how many were evaluated.
        untrained: of personal models, how many clients had not trained yet.
    """

    value: float
    before: float | None
    round: int
    deviation_over_clients: float | None = field(metadata=OPTIONAL)
    clients: int | None = field(metadata=OPTIONAL)
    untrained: int | None = field(metadata=OPTIONAL)


@dataclass(frozen=True)
class Measured:
    """The last values of a measure, as far as they are of all clients, classes and layers together.

    Attributes:
        round: the round after which it was taken, from 0.
        unit: of its values: "share", another, or empty.
        figures: by model and figure, as in "global" or "trained in-local"; in the order that the measure has.
    """

    round: int
    unit: str
    figures: Mapping[str, float]


@dataclass(frozen=True)
class RunOutcome:
    """Which run it was, and what it came to.

    Attributes:
        name, method, seed, run_id, status, reason, evaluated_on: as the run's directory has them.
        event_hash: the same for the same jobs and events of the server, so for one plan on every engine; see
            ``store.reader.Reader.event_hash``. None where nothing has happened.
        run_dir: its directory; empty for a dry run.
        accuracy: by model, "global" and "personal", those that were evaluated.
        after_rounds: the first exchange after the last round; None where there is none.
        assumed: a line for each assumption.
        stopped: what ended the rounds, such as "rounds"; None where the run does not say.
        virtual_s: when all was over, or the time of the last event so far.
    """

    name: str
    method: str
    dataset: str | None
    models: Sequence[str]
    seed: int
    run_id: str
    event_hash: str | None
    run_dir: str
    status: str
    reason: str
    evaluated_on: str
    accuracy: Mapping[str, Accuracy]
    after_rounds: str | None
    assumed: Sequence[str]
    rounds: int | None
    stopped: str | None
    virtual_s: float


@dataclass(frozen=True, repr=False)
class Summary(Usage, RunOutcome):
    """One run's results: its outcome, its usage, and what else is told.

    Attributes:
        peak_bytes: the largest memory need among admitted clients; None where nobody was admitted.
        engine: what trained, such as "vmapped"; "null" where nothing was trained.
        path: the critical paths of all rounds by the device that they waited for, most first; "nobody" is a
            timer, the server's work or clients to come. See ``analysis.explain.path``.
        host_s: the wall time of the whole run; None while it runs, and for a dry run.
        exchanges: the work of the clients that can do it, by exchange and device.
        settings: the resolved scenario by dotted key, such as "method.temperature"; None of a dry run.
        fleet_id: a digest of the fleet and its devices, as they were read; None of a dry run.
        costs: what it cost beside time, bytes and energy, by name of ``COSTS``, if asked for.
        measures: the last values of its measures, by name; None where it asked for none.
        measures_host_s: the wall time that they took; None where there are none.
        training_loss: the mean loss of the last merge that trained, at the method's own objective, with its
            temperature and its terms; over each job's steps, and over jobs by their weights.
        turnout: how many of the clients that a round asks for took part; None where there are no rounds.
        published: what its scenario says a paper reports; None where it does not.
        scale: the scenario's scale at which it was run; None for the scenario as it stands.
        server: what all merges cost the server, which is no part of any other figure but the time; the
            memory is that of the largest. None where its work is free.
    """

    peak_bytes: int | None
    clients: int
    refused: int
    engine: str
    path: Mapping[str, PathTime]
    host_s: float | None
    target: Target | None
    exchanges: Mapping[str, Mapping[str, WorkSums]]
    settings: Mapping[str, Any] | None = field(metadata=OPTIONAL)
    fleet_id: str | None = field(metadata=OPTIONAL)
    virtual_s_between: Interval | None = field(metadata=OPTIONAL)
    joules_between: Interval | None = field(metadata=OPTIONAL)
    costs: Mapping[str, Bill] | None = field(metadata=OPTIONAL)
    measures: Mapping[str, Measured] | None = field(metadata=OPTIONAL)
    measures_host_s: float | None = field(metadata=OPTIONAL)
    training_loss: float | None = field(metadata=OPTIONAL)
    turnout: Turnout | None = field(metadata=OPTIONAL)
    published: Mapping[str, Any] | None = field(metadata=OPTIONAL)
    scale: str | None = field(metadata=OPTIONAL)
    server: MergeCost | None = field(metadata=OPTIONAL)

    def __repr__(self) -> str:
        return f"Summary({self.name!r}, {self.status}, {self.run_dir!r})"

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """Every number of its record but for the seed and the settings, by dotted key."""
        record = dotted(document(replace(self, settings=None)))
        return {
            key: value
            for key, value in record.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool) and key != "seed"
        }


@dataclass(frozen=True)
class DryRun:
    """One run of a scenario whose clock ran without training.

    Attributes:
        scenario: its file or name, as it was given.
        notes: what was assumed, and which clients were refused.
        sharing: what links that clients share cost it; None where they share none.
    """

    scenario: str
    notes: Sequence[str]
    summary: Summary = field(metadata={INLINE: Summary})
    sharing: SharedTime | None = field(default=None, metadata=OPTIONAL)


def summaries(
    folders: list[Path],
    target: float | str | None = None,
    *,
    note: Callable[[str], None] | None = None,
) -> list[Summary]:
    """One summary per run; a group stands for its runs; see ``each_run`` and ``target_of``."""
    accuracy = target_of(target, folders)
    return each_run(folders, lambda reader, _: summary(reader, accuracy), note=note)


def each_run(
    folders: list[Path],
    record_of: Callable[[Reader, int], Record],
    *,
    trusted: bool = False,
    note: Callable[[str], None] | None = None,
) -> list[Record]:
    """What is made of each run, given its place among those that could be read; a group stands for its runs.

    Args:
        note: called with a line for each run of a group that cannot be read or is there no more; None
            refuses those too.

    Raises:
        UserError: a folder is neither, a run that is named cannot be read, or none of a group can be.
    """
    found: list[Record] = []
    skipped: list[UserError] = []
    for path, why in {path: why for folder in folders for path, why in lost_from(folder).items()}.items():
        if note is None:
            raise UserError(f"{path.name}: {why}", where=str(path))
        note(f"{path} is left out: {why}")
    # A run that is named twice, or by its group too, is listed once.
    for path in {run.resolve(): run for folder in folders for run in runs_in(folder)}.values():
        try:
            with read(path, trusted=trusted) as reader:
                found.append(record_of(reader, len(found)))
        except UserError as error:
            if note is None or path in folders:
                raise
            skipped.append(error)
            note(f"{path} is left out: {error.what.removeprefix(f'{path.name}: ')}")
    if skipped and not found:
        raise skipped[0]
    return found


def check_target(target: object, where: str) -> None:
    """Refuses a target that is no accuracy in (0, 1]."""
    if target is not None and not (isinstance(target, Real) and 0 < float(target) <= 1):
        what = f"the target accuracy must be greater than 0 and at most 1, not {quoted(target)}"
        raise UserError(what, where=where)


BEST_OF = "best-of:"


def target_of(target: float | str | None, folders: list[Path]) -> float | None:
    """A target accuracy: a number in (0, 1], or the best that a run of these has reached.

    Args:
        target: the number, also as text, or ``"best-of:RUN"`` with a run's name, of which the seed may be
            left out. Of several seeds it is the least of their bests, which all have reached, of the model
            that all runs have evaluated, rounded down to a hundredth of a percent. None for each run's own.

    Raises:
        UserError: it is no accuracy, or there is no such run.
    """
    if not isinstance(target, str):
        check_target(target, "--target")
        return None if target is None else float(target)
    if not target.startswith(BEST_OF):
        try:
            return target_of(float(target), [])
        except ValueError:
            check_target(target, "--target")
    runs = [(names, best) for names, best in each_run(folders, _bests, note=lambda _: None) if best]
    name = target.removeprefix(BEST_OF)
    found = [best for names, best in runs if name in names]
    if not found:
        hint = nearest(name, {names[-1] for names, _ in runs})
        raise UserError(f"no run that was evaluated is called {short(name)!r}", where="--target", hint=hint)
    models = [model for model in ("global", "personal") if all(model in best for _, best in runs)]
    best = min(one[models[0] if models else next(iter(one))] for one in found)
    return target_of(math.floor(best * 1e4) / 1e4, [])


def _bests(reader: Reader, _: int) -> tuple[Sequence[str], Mapping[str, float]]:
    """A run's name, with its seed and without, and the best accuracy of each model."""
    name = str(reader.meta["name"])
    plain = ", ".join(part for part in name.split(", ") if not part.startswith("seed "))
    rows = reader.query("SELECT model, MAX(accuracy) AS best FROM evaluations GROUP BY model ORDER BY model")
    return (name, plain), {row["model"]: row["best"] for row in rows}


# Facts about a run that a summary has, too; the others may be missing.
_FACTS = ("name", "method", "seed", "run_id", "evaluated_on", "assumed", "engine")
_MAYBE = ("dataset", "rounds", "stopped", "measures_host_s", "scale", "published")


def summary(run: Run | Reader, target: float | None = None) -> Summary:
    """One run's summary, with another target accuracy than its own if one is given."""
    check_target(target, "target")
    run = run if isinstance(run, Run) else Run(run)
    reader, meta = run.reader, run.reader.meta
    target = meta["target"] if target is None else target
    (totals,) = reader.query(
        "SELECT (SELECT IFNULL(MAX(t_s), 0.0) FROM server_events) AS t_s, "
        "(SELECT MAX(peak_bytes) FROM prices"
        " WHERE kind NOT IN (SELECT kind FROM refused_kinds)) AS peak_bytes, "
        "(SELECT loss FROM merges WHERE loss IS NOT NULL ORDER BY version DESC LIMIT 1) AS training_loss"
    )
    virtual_s = max(run.jobs.ended_s.max(initial=0.0), totals.pop("t_s"), meta.get("virtual_s", 0.0))
    used, admitted = usage(run, virtual_s), int(run.clients.admitted.sum())
    after = np.array([at == "end" for at in run.at], dtype=bool)[run.merges.exchange]
    facts: dict[str, Any] = {key: meta[key] for key in _FACTS} | {key: meta.get(key) for key in _MAYBE}
    settings, fleet_id = settings_of(reader) if reader.where else (None, None)
    between_s, reached = run.between_s(virtual_s), None if target is None else until_target(run, target)
    return Summary(
        **facts,
        **vars(used),
        **totals,
        models=sorted({row["model"] for row in run.kinds}),
        event_hash=reader.event_hash(),
        run_dir=reader.where,
        status=reader.status,
        reason=meta.get("reason", ""),
        accuracy=_accuracy(reader, int(run.merges.version[~after].max(initial=0))),
        after_rounds=next((run.names[place] for place in run.merges.exchange[after]), None),
        virtual_s=float(virtual_s),
        clients=len(run.clients.admitted),
        refused=len(run.clients.admitted) - admitted,
        path=path_times(run),
        host_s=meta.get("host_wall_s"),
        target=reached,
        exchanges=work(run),
        settings=settings,
        fleet_id=fleet_id,
        virtual_s_between=between_s,
        joules_between=run.between_j(virtual_s),
        costs=_costs(run, used, (virtual_s, between_s), reached),
        measures=_measured(reader),
        turnout=turnout(run),
        server=_merges_cost(reader),
    )


def _merges_cost(reader: Reader) -> MergeCost | None:
    (row,) = reader.query(
        "SELECT COUNT(*) AS merges, COUNT(server_joules) AS known, SUM(server_uploads) AS uploads, "
        "SUM(server_seconds) AS seconds, SUM(server_flops) AS flops, SUM(server_moved_bytes) AS moved_bytes, "
        "SUM(server_joules) AS joules, MAX(server_peak_bytes) AS peak_bytes, "
        "(SELECT COUNT(*) FROM server_work) AS priced FROM merges"
    )
    if not row["priced"]:
        return None
    found = MergeCost(**{name: row[name] or 0 for name in MergeCost._fields})
    return found if row["merges"] == row["known"] else found._replace(joules=None)


COSTS = {"carbon": in_grams, "money": in_money}
"""What a run can cost beside time, bytes and energy, if its scenario or its fleet asks for it."""


def _costs(run: Run, used: Usage, until: Until, target: Target | None) -> dict[str, Bill] | None:
    models = ("global", "personal") if target else ()
    reached = {model: one for model in models if target and (one := target.of(model))}
    return {name: bill for name, of in COSTS.items() if (bill := of(run, used, until, reached))} or None


# The last evaluations of each model, of which there may be many.
_LAST_TWO = """
SELECT * FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY model ORDER BY version DESC) AS nth FROM evaluations)
WHERE nth <= 2 ORDER BY version, model
"""


def _accuracy(reader: Reader, last: int) -> dict[str, Accuracy]:
    """The last evaluation by model, and the accuracy before the exchanges at the end, after ``last``."""
    scores: dict[str, Accuracy] = {}
    for row in reader.query(_LAST_TWO):
        before = scores.get(row["model"])
        scores[row["model"]] = Accuracy(
            row["accuracy"],
            before.value if before and row["version"] > last else None,
            *(row[key] for key in ("round", "spread", "clients", "untrained")),
        )
    return scores


# The last version of which a measure has values.
_LAST = """
SELECT one.* FROM measures AS one JOIN
  (SELECT measure, MAX(version) AS version FROM measures WHERE client IS NULL AND label = '' GROUP BY measure)
  USING (measure, version)
WHERE client IS NULL AND label = '' ORDER BY one.rowid
"""


def _measured(reader: Reader) -> dict[str, Measured] | None:
    """The last values of a run's measures; None if it asked for none."""
    units: Mapping[str, str] = reader.meta.get("measures", {})
    rows = reader.query(_LAST)
    figures, rounds = measured_together(rows), {row["measure"]: row["round"] for row in rows}
    found = {name: Measured(rounds[name], units.get(name, ""), values) for name, values in figures.items()}
    return {name: found[name] for name in units if name in found} if units else None


def measured_together(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The figures of rows of the table ``measures``, of one version, by measure; see ``Measured``."""
    figures: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["client"] is None and not row["label"]:
            key = f"{row['model']} {row['figure']}".strip()
            figures.setdefault(row["measure"], {})[key] = row["value"]
    return figures
