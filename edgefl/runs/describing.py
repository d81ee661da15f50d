"""What the store is told of a run before it starts."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from edgefl.core.plan import Assumption, Plan
from edgefl.data.federation import Federation
from edgefl.planning.plan import Planned
from edgefl.store.writer import Store
from edgefl.world.blind import is_blind, shared

# Clients times classes; their counts take 3 MB and a third of a second at most.
MOST_COUNTS = 250_000


def describe(planned: Planned, store: Store, engine: str) -> None:
    """Writes what is known before the run starts: facts about it, and its plan."""
    plan, federation = planned.plan, planned.learning.federation
    left_out = _not_counted(federation)
    facts = {
        "name": plan.scenario.name,
        "method": plan.scenario.method.name,
        "dataset": plan.scenario.task.dataset.name,
        "run_id": planned.run_id,
        "seed": plan.scenario.seed,
        "engine": engine,
        "assumed": list(plan.assumed),
        "assumptions": {line: line.__getnewargs__() for line in plan.assumed if isinstance(line, Assumption)},
        "target": plan.scenario.evaluate.target,
        "evaluated_on": plan.scenario.evaluate.on,
        "batteries": _capacities_j(planned.resolved["devices"]),
        "blind": is_blind(plan),
        "participants": _participants(plan),
        "batch_size": plan.scenario.local.size,
        "measures": {one.name: one.UNIT for one in planned.learning.measures},
        "data": asdict(federation.spec),
        "data_notes": list(planned.data_notes),
        "classes": list(federation.spec.class_names),
        "class_counts": left_out,
    }
    shortest_s, longest_s = plan.scenario.server.policy.lasts_s()
    if shortest_s == longest_s:
        facts["timed"] = True
    if any(shared(plan)):
        facts["shared"] = True
    if plan.fleet.carbon is not None:
        facts["carbon"] = plan.fleet.carbon
    if plan.scenario.costs is not None:
        facts["costs"] = plan.scenario.costs.model_dump(mode="json")
    if plan.scenario.scale:
        facts["scale"] = plan.scenario.scale
    if plan.scenario.published:
        facts["published"] = plan.scenario.published.model_dump(mode="json")
    store.set_meta(facts)
    counts = None if left_out else federation.class_counts
    store.write_plan(plan, planned.resolved, federation.test_samples, counts)


def _participants(plan: Plan) -> int | None:
    """How many clients a round asks for; None of a policy without rounds that ask."""
    if plan.scenario.server.policy.STREAMS:
        return None
    admitted = int(plan.clients.admitted.sum())
    return min(admitted, plan.scenario.server.participants or admitted)


def _not_counted(federation: Federation) -> str:
    """Why the store gets no class counts, in words; empty where it gets them."""
    cells = federation.class_counts.size
    if not cells:
        return "clients have numbers of samples and no data"
    if federation.assumed:
        return "there were no files, so labels were assumed balanced"
    if cells > MOST_COUNTS:
        return f"{cells:,} counts of clients and classes are more than the {MOST_COUNTS:,} that are kept"
    return ""


def _capacities_j(devices: Mapping[str, Any]) -> dict[str, float]:
    """The joules of full batteries, by device; a laptop that trains is taken to be plugged in."""
    batteries = {
        name: device["battery"] for name, device in devices.items() if device["category"] != "laptop"
    }
    known = {name: battery["capacity"]["value"] for name, battery in batteries.items() if battery}
    return {name: joules for name, joules in known.items() if joules is not None}
