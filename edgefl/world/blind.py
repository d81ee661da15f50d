"""Whether a run goes the same way whatever its jobs take."""

from __future__ import annotations

from edgefl.core.availability.always import Params as Always
from edgefl.core.catalogue import load
from edgefl.core.fleet import Failures
from edgefl.core.plan import Plan


def is_blind(plan: Plan) -> bool:
    """Whether who works, on what and with whom depends on no time and no energy.

    That is so where the policy and the selector say ``BLIND = True`` of themselves, clients are always there,
    keep their speed and never fail, no client's work is as much as fits into a time, and neither time nor
    energy ends the run.
    """
    server, fleet = plan.scenario.server, plan.fleet
    parts = load("policies", server.policy.name), load("selectors", server.selector.name)
    return (
        all(getattr(part, "BLIND", False) for part in parts)
        and isinstance(fleet.availability, Always)
        and not fleet.speed
        and fleet.failures == Failures()
        and plan.scenario.local.fit is None
        and server.until.time is None
        and server.until.energy is None
    )
