"""Every client is available all the time."""

import numpy as np

from edgefl.core.arrays import Floats, Ints
from edgefl.core.availability import Availability, Spell, Timetable
from edgefl.core.clients import Clients


class Always(Timetable):
    def at(self, clients: Ints, t_s: Floats) -> Spell:
        return Spell(np.ones(len(clients), dtype=bool), np.full(len(t_s), np.inf))


class Params(Availability):
    def timetable(self, clients: Clients, root: int) -> Always:  # noqa: ARG002
        return Always()
