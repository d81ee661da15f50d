"""From a scenario to a plan: names resolved, clients dealt, work traced and priced, misfits refused."""

from edgefl.planning.components import Nothing
from edgefl.planning.fleets import device, profile
from edgefl.planning.learning import DataAccess, Learning
from edgefl.planning.plan import Planned, plan

__all__ = ["DataAccess", "Learning", "Nothing", "Planned", "device", "plan", "profile"]
