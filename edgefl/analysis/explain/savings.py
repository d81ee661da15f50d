"""How much shorter rounds would be if clients had the fleet's median link, device or work, or no slowdown.

Where a run is blind to time (``edgefl.world.blind``), that is reckoned, not estimated: every job is timed
again with the one change, and each merge waits for its slowest job, which may now be another client's. A
client that is not slower than the median keeps what it has. Elsewhere other times would make another run.
"""

from __future__ import annotations

import numpy as np

from edgefl.analysis.bounds import read_jobs
from edgefl.analysis.explain.path import Rounds
from edgefl.analysis.timeline import Bools, Floats, Timeline
from edgefl.analysis.waiting import planned_s
from edgefl.core.repricing import Repriced, slowest_s
from edgefl.planning.medians import Medians
from edgefl.planning.recorded import Recorded
from edgefl.store import Reader

CHANGES = ("link", "device", "work", "speed")
"""The fleet's median link, device or work; "speed" is no slowdown and no jitter above 1."""
# Times that differ by less, relatively, are the same.
_ROUNDING = 1e-9


class Savings:
    """The times of a blind run's rounds, as they were and with changes.

    Attributes:
        of: by change and kind of client, what it has then; empty where nothing changes.
    """

    def __init__(
        self, reader: Reader, found: Timeline, recorded: Recorded, medians: Medians, rounds: Rounds
    ) -> None:
        """Times each job again, once for each change.

        Args:
            reader: the run.
            found: its timeline.
            recorded: what it was planned of.
            medians: those of its fleet.
            rounds: its rounds.
        """
        self._found, self._rounds = found, rounds
        jobs, prices = read_jobs(reader, found.jobs), recorded.plan.prices
        self._client, self._into = jobs.client, jobs.into_version
        own = Repriced(jobs, prices, prices, blind=False).took_s()
        self._took_s = {"": own}
        changed = {"link": medians.link(), "device": medians.device(), "work": medians.work()}
        for name, median in changed.items():
            took_s = Repriced(jobs, prices, median.prices, blind=False).took_s()
            self._took_s[name] = np.minimum(own, took_s)
        full_s = planned_s(reader, jobs.exchange, jobs.kind, found.jobs.steps)
        slowdown = found.fleet.slowdown[jobs.client]
        usual_s = full_s * slowdown
        chance = np.divide(jobs.work_s, usual_s, out=np.ones(len(own)), where=usual_s > 0)
        quick_s = full_s * np.minimum(slowdown, 1.0) * np.minimum(chance, 1.0)
        self._took_s["speed"] = own - np.where(
            jobs.work_s > quick_s * (1 + _ROUNDING), jobs.work_s - quick_s, 0.0
        )
        self.of = {name: median.of for name, median in changed.items()}
        self._own_s = self._rounds_s(own)

    def to(self, change: str, client: int) -> str:
        """What a client has after a change, in words; empty where nothing changes."""
        if change != "speed":
            has: str = self.of[change][self._found.fleet.kind[client]]
            return has
        mine = self._client == client
        slower = mine & (self._took_s["speed"] < self._took_s[""])
        return "full speed" if slower.any() else ""

    def everyone(self, change: str) -> Floats:
        """The seconds that each round is shorter by, (rounds,), if a change is made to all clients."""
        return self._saved(change, np.ones(len(self._client), dtype=bool))

    def one(self, change: str, client: int) -> Floats:
        """The same if it is made to one client."""
        return self._saved(change, self._client == client)

    def then(self, change: str, client: int, place: int) -> int:
        """The client that a round waits for longest after a change to one; -1 for none.

        Args:
            change: which.
            client: to whom.
            place: of the round.
        """
        took_s = np.where(self._client == client, self._took_s[change], self._took_s[""])
        merges = slice(self._rounds.first[place], self._rounds.last[place] + 1)
        waited: dict[int, float] = {}
        for version in self._found.merges.version[merges].tolist():
            mine = np.flatnonzero(self._into == version)
            if len(mine):
                # Of several, the last, as in the path.
                last = mine[np.flatnonzero(took_s[mine] == took_s[mine].max())[-1]]
                who = int(self._client[last])
                waited[who] = waited.get(who, 0.0) + float(took_s[last])
        return max(waited, key=lambda who: waited[who], default=-1)

    def _saved(self, change: str, who: Bools) -> Floats:
        changed_s = self._rounds_s(np.where(who, self._took_s[change], self._took_s[""]))
        saved_s: Floats = self._own_s - changed_s
        return saved_s

    def _rounds_s(self, took_s: Floats) -> Floats:
        """How long rounds last whose jobs take so long."""
        merges = self._found.merges.version
        longest = slowest_s(self._into, took_s)
        # A merge of no jobs takes no time.
        of_merge = np.append(longest, np.zeros(max(0, int(merges.max(initial=0)) + 1 - len(longest))))[merges]
        return np.add.reduceat(of_merge, self._rounds.first) if len(merges) else np.zeros(0)
