"""Dry runs: the clock and the costs, without training and without a directory."""

from __future__ import annotations

from edgefl.core.errors import RunError
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import Planned, plan
from edgefl.report.summary import DryRun, Summary, summary
from edgefl.runs.callbacks import Callbacks
from edgefl.runs.execute import Run, describe
from edgefl.runs.group import Overrides, drafts, run_notes
from edgefl.store import Store


def dry_run(scenario: str, overrides: Overrides = ()) -> list[DryRun]:
    """Plans every run of a scenario, and runs its clock.

    Labels are assumed to be balanced unless the data come with a package, so that a forecast does not depend
    on the files on this machine.

    Raises:
        UserError: the scenario is wrong.
        RunError: the policy or the selector does what it must not.
    """
    runs = []
    access = DataAccess(need="embedded")
    for draft in drafts(scenario, overrides):
        planned = plan(draft, access)
        notes = (*planned.plan.assumed, *run_notes(planned, trains=False))
        runs.append(DryRun(scenario, notes, _clocked(planned)))
    return runs


def _clocked(planned: Planned) -> Summary:
    """The summary of a run on the null engine, whose rows are kept in memory."""
    store = Store.in_memory()
    try:
        describe(planned, store, "null")
        run = Run(planned, store, None, Callbacks())
        try:
            run.check_admitted()
        except RunError as error:
            store.set_meta({"status": "failed", "reason": str(error)})
        else:
            run.to_end()
            store.set_meta({"status": "done"})
        return summary(store.reader())
    finally:
        store.abandon()
