"""Dry runs: the clock and the costs, without training and without a directory."""

import json
from collections.abc import Mapping
from dataclasses import replace

from edgefl.analysis.explain.transfers import SharedTime, shared_time
from edgefl.analysis.summary import DryRun, Summary, summary
from edgefl.core.drafts import Draft
from edgefl.core.errors import RunError
from edgefl.core.scenario import Until
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.runs.describing import describe
from edgefl.runs.engines import engine_options
from edgefl.runs.group import Overrides, Scenario, drafts, run_notes
from edgefl.runs.run import RunInProgress
from edgefl.show.check import Overview
from edgefl.store.writer import Store
from edgefl.trackers import Callbacks

ROUNDS = 3
"""At a glance, the clock runs so many rounds."""


def name_of(scenario: Scenario) -> str:
    """Its file or name, as it was given."""
    return "scenario" if isinstance(scenario, Mapping) else str(scenario)


def checked_drafts(scenario: Scenario, overrides: Overrides = (), seeds: int | None = None) -> list[Draft]:
    """The runs of a scenario, whose engines can be used here; the same checks as before a run.

    Raises:
        UserError: the scenario is wrong.
    """
    found = drafts(scenario, overrides, seeds)
    for draft in found:
        engine_options(draft)
    return found


def dry_run(scenario: Scenario, overrides: Overrides = (), seeds: int | None = None) -> list[DryRun]:
    """Plans every run of a scenario, and runs its clock.

    Labels are assumed to be balanced unless the data come with a package, so that a forecast does not depend
    on the files on this machine.

    Raises:
        UserError: the scenario is wrong.
    """
    access = DataAccess(need="embedded")
    planned = [plan(draft, access) for draft in checked_drafts(scenario, overrides, seeds)]
    return [_dry(scenario, each) for each in planned]


def overview(scenario: str, overrides: Overrides, access: DataAccess) -> Overview:
    """Checks every run of a scenario, and dry-runs one of each kind for at most three rounds.

    ``access`` holds what scenarios share, such as traces.

    Raises:
        UserError: the scenario is wrong.
    """
    drafts = checked_drafts(scenario, overrides)
    kinds: dict[str, Draft] = {}
    for draft in drafts:
        settings = draft.scenario.resolved()
        del settings["seed"], settings["local"]["optimizer"]["lr"]
        kinds.setdefault(json.dumps(settings, sort_keys=True), draft)
    planned = [_shortened(plan(draft, access)) for draft in kinds.values()]
    return Overview(scenario, len(drafts), [_dry(scenario, each) for each in planned])


def _shortened(planned: Planned) -> Planned:
    """A run of the first rounds of another, with no other limit."""
    scenario = planned.plan.scenario
    until = Until(rounds=min(scenario.server.until.rounds or ROUNDS, ROUNDS))
    server = scenario.server.model_copy(update={"until": until})
    short = replace(planned.plan, scenario=scenario.model_copy(update={"server": server}))
    return replace(planned, plan=short)


def _dry(scenario: Scenario, planned: Planned) -> DryRun:
    notes = (*planned.plan.assumed, *run_notes(planned, trains=False))
    return DryRun(name_of(scenario), notes, *_clocked(planned))


def _clocked(planned: Planned) -> tuple[Summary, SharedTime | None]:
    """The summary of a run on the null engine, whose rows are kept in memory, and what sharing costs it."""
    store = Store.in_memory()
    try:
        describe(planned, store, "null")
        run = RunInProgress(planned.plan, store, None, Callbacks())
        try:
            planned.plan.check_admitted()
            run.to_end()
        except RunError as error:
            store.set_meta({"status": "failed", "reason": str(error)})
        else:
            store.set_meta({"status": "done"})
        reader = store.reader()
        return summary(reader), shared_time(reader, planned.plan)
    finally:
        store.abandon()
