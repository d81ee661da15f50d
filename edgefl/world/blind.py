"""Whether a run goes the same way whatever its jobs take."""

from collections.abc import Iterator

from edgefl.core.availability.always import Params as Always
from edgefl.core.fleet import Failures
from edgefl.core.plan import Plan


def is_blind(plan: Plan) -> bool:
    """Whether who works, on what and with whom depends on no time and no energy.

    That is so where the policy and the selector say ``BLIND = True`` of themselves, clients are always there,
    keep their speed and never fail, links are not shared and keep their rates, no client's work is as much as
    fits into a time, the server's work takes no time, and neither time nor energy ends the run.
    """
    return not any(sights(plan))


def sights(plan: Plan) -> Iterator[str]:
    """What depends on times or energies in a run, in words; see ``is_blind``."""
    server, fleet = plan.scenario.server, plan.fleet
    if not server.policy.BLIND:
        yield f"policy {server.policy.name}"
    if not server.selector.BLIND:
        yield f"selector {server.selector.name}"
    if not isinstance(fleet.availability, Always):
        yield f"availability {fleet.availability.name}"
    if fleet.speed:
        yield f"speed {' and '.join(one.name for one in fleet.speed)}"
    yield from shared(plan)
    if fleet.failures != Failures():
        yield "failures"
    if plan.scenario.local.fit is not None:
        yield "local training that fits into a time"
    if server.device is not None:
        yield "server.device"
    if server.until.time is not None:
        yield "until.time"
    if server.until.energy is not None:
        yield "until.energy"


def shared(plan: Plan) -> Iterator[str]:
    """What transfers' times depend on besides their own client's link, in words: nothing of most runs.

    On a capacity that clients share, a transfer takes as long as others let it; on a link that changes, as it
    takes from the moment on at which it begins.
    """
    server = plan.scenario.server
    yield from (f"server.{way}" for way in ("uplink", "downlink") if getattr(server, way) is not None)
    if plan.clients.cells:
        yield "cells"
    if any(link.trace for link in plan.fleet.links.values()):
        yield "links that follow traces"
