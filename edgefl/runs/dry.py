"""Dry runs: the clock and the costs, without training and without a directory."""

from __future__ import annotations

from collections.abc import Mapping

from edgefl.analysis.explain.sharing import SharedTime, shared_time
from edgefl.analysis.summary import DryRun, Summary, summary
from edgefl.core.drafts import Draft
from edgefl.core.errors import RunError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.runs.callbacks import Callbacks
from edgefl.runs.describing import describe
from edgefl.runs.engines import engine_options
from edgefl.runs.group import Overrides, Scenario, drafts, run_notes
from edgefl.runs.run import Run
from edgefl.store import Store


def name_of(scenario: Scenario) -> str:
    """Its file or name, as it was given."""
    return "scenario" if isinstance(scenario, Mapping) else str(scenario)


def checked_drafts(scenario: Scenario, overrides: Overrides = (), seeds: int | None = None) -> list[Draft]:
    """The runs of a scenario, whose engines can be used here; the same checks as before a run.

    Args:
        scenario: its file or name, or its settings.
        overrides: settings to replace.
        seeds: as of ``run``.

    Raises:
        UserError: the scenario is wrong.
    """
    found = drafts(scenario, overrides, seeds)
    for draft in found:
        engine_options(draft)
    return found


def dry_run(scenario: Scenario, overrides: Overrides = (), seeds: int | None = None) -> list[DryRun]:
    """Plans every run of a scenario, and runs its clock; its arguments are those of ``checked_drafts``.

    Labels are assumed to be balanced unless the data come with a package, so that a forecast does not depend
    on the files on this machine.

    Raises:
        UserError: the scenario is wrong.
    """
    access = DataAccess(need="embedded")
    planned = [plan(draft, access) for draft in checked_drafts(scenario, overrides, seeds)]
    return [
        DryRun(name_of(scenario), (*each.plan.assumed, *run_notes(each, trains=False)), *_clocked(each))
        for each in planned
    ]


def _clocked(planned: Planned) -> tuple[Summary, SharedTime | None]:
    """The summary of a run on the null engine, whose rows are kept in memory, and what sharing costs it."""
    store = Store.in_memory()
    try:
        describe(planned, store, "null")
        run = Run(planned.plan, store, None, Callbacks())
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
