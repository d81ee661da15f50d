"""Dry runs: the world on its own, answered with nothing."""

from __future__ import annotations

from collections.abc import Sequence

from edgefl.core.ledger import Ledger
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.report.summary import DryRun
from edgefl.runs.group import drafts, refusal_notes
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Feedback


def dry_run(scenario: str, overrides: Sequence[str] = ()) -> list[DryRun]:
    """Plans every run of a scenario, and runs its clock.

    Labels are assumed as balanced as can be, but for data that come with a package: whether files lie on this
    machine changes no forecast.

    Raises:
        UserError: something in the scenario is wrong.
    """
    found = []
    access = DataAccess(need="embedded")
    for draft in drafts(scenario, overrides):
        planned = plan(draft, access)
        ledger = Ledger()
        if planned.plan.clients.admitted.any():
            converse(simulate(planned.plan, ledger.add), lambda _: Feedback())
        one = planned.plan
        notes = (*one.assumed, *refusal_notes(planned))
        name, rounds = one.scenario.name, one.scenario.server.rounds
        found.append(DryRun(scenario, name, len(one.clients), rounds, len(one.refusals), ledger, notes))
    return found
