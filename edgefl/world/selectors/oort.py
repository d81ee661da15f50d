"""Oort: clients whose data the model knows least, but not the slow ones (Lai et al. 2021, Algorithm 1).

With R the round from 1, an explored client's utility is its statistical utility U, clipped at a quantile,
plus its temporal uncertainty sqrt(0.1 log R / L), times (T / t)^penalty if it is slower than the preferred
duration T:

- U = |B| sqrt((1 / |B|) sum of loss(k)^2): |B| the client's samples, the losses those of its last training
  (Section 4.2). ``loss_rms`` is the root mean square over all samples of all its steps.
- L is the round in which it was last asked, t the seconds that its last job took, predicted before its first.
- Of the K clients asked, (1 - epsilon) K are drawn by utility among the explored ones that have at least a
  share (``cutoff``) of the utility of the (1 - epsilon) K-th; the others are drawn by predicted speed among
  those that were never asked. Epsilon decays with the rounds.
- The pacer raises T when the statistical utility of the last ``window`` rounds is below that of the
  ``window`` before.
- A client that was asked ``picks`` times is not asked again, as long as there are others.

Where the paper and its code (github.com/SymbioticLab/Oort, oort/oort.py and training/argParser.py) differ, or
leave something open:

- The code scales utilities to [0, 1] before it adds the uncertainty, which is otherwise lost beside |B|. So
  do we, over the clipped ones; ``scaled: false`` is Algorithm 1 as printed.
- T is a quantile of the clients' durations, as in the code (``round_threshold`` 10, ``pacer_delta`` 5, in
  percent); the paper adds a fixed step in seconds, which depends on the fleet. Once it reaches the slowest,
  nobody is penalised.
- The pacer follows the paper's condition, every ``window`` rounds as in the code. The code instead relaxes T
  when the utility changed by less than 10%, and lowers it when it changed more than fivefold.
- Epsilon is 0.9, falls by 0.98 a round and stops at 0.2; the code's factor is 0.95. (1 - epsilon) K is
  rounded up or down at random, so that one client at a time, as asynchronous policies ask, can be an explored
  one. The code rounds down.
- Quantile and share are the paper's 95%; the code has 0.98 and 0.7.
- The paper draws unexplored clients by speed, here in proportion to 1 / t. The code draws by samples, with
  the penalty of slow clients.
- No client is barred by default, as in the code, and never more than 30% of the clients
  (``blacklist_max_len``).
- A job that ended without losses (it was not merged, or nothing is trained) counts as asked; until its client
  reports losses, their root mean square is taken to be the mean of those known, 1 if none is.
"""

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from edgefl.core import draws
from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.params import NonNegative
from edgefl.world.selectors import Draws, Jobs, Scalars, Selector, SelectorParams, chooses, reported, round_s
from edgefl.world.world import World

Share = Annotated[float, Field(ge=0, le=1)]


class Params(SelectorParams):
    READS = ("loss_rms",)

    explore: Annotated[Share, Field(description="epsilon at first: the share of unexplored clients")] = 0.9
    decay: Annotated[Share, Field(description="epsilon's factor from round to round")] = 0.98
    explore_least: Annotated[Share, Field(description="epsilon decays to this")] = 0.2
    penalty: Annotated[
        NonNegative, Field(description="exponent of T / t of slow clients; 0 ignores speed")
    ] = 2.0
    clip: Annotated[Share, Field(description="quantile at which statistical utilities are clipped")] = 0.95
    cutoff: Annotated[Share, Field(description="share of the cut-off utility that admits a client")] = 0.95
    window: Annotated[int, Field(gt=0, description="rounds between two steps of the pacer")] = 20
    duration: Annotated[Share, Field(description="T at first, as a quantile of the clients' durations")] = 0.1
    duration_step: Annotated[Share, Field(description="by how much the pacer raises that quantile")] = 0.05
    picks: Annotated[int, Field(gt=0)] | None = Field(None, description="how often a client is asked at most")
    scaled: Annotated[bool, Field(description="scale utilities to [0, 1] before adding uncertainty")] = True

    def build(self, world: World) -> Selector:
        return Oort(self, world)


class Oort(Selector):
    """What is known of every client, a column each.

    Attributes:
        preferred_s: T of the round in progress.
    """

    # The code's blacklist_max_len.
    MOST_BARRED = 0.3

    def __init__(self, params: Params, world: World) -> None:
        self._params = params
        self._world = world
        self._samples = world.plan.clients.samples.astype(np.float64)
        clients = len(self._samples)
        self._draws = Draws(world, "oort")
        self._rounding = Draws(world, "oort rounding")
        self._chosen = np.array([chooses(prices) for prices in world.plan.prices])
        self._loss = np.full(clients, np.nan)
        self._last = np.zeros(clients, dtype=np.int64)
        self._picks = np.zeros(clients, dtype=np.int64)
        self._duration_s = round_s(world)
        self._achieved: list[float] = []
        self._round = 0
        self._quantile = params.duration
        self.preferred_s = math.inf

    def select(self, count: int, candidates: Ints) -> Ints:
        self._begin(max(self._world.round, 0) + 1)
        candidates = self._allowed(count, candidates)
        explored = self._last[candidates] > 0
        known, unknown = candidates[explored], candidates[~explored]
        exploited = math.floor((1 - self.epsilon) * count + self._rounding.next(np.zeros(1, np.int64))[0])
        exploited = max(min(exploited, len(known)), count - len(unknown))
        chosen = np.concatenate([
            self._exploit(known, exploited) if exploited else known[:0],
            self._by_speed(unknown, count - exploited),
        ])  # fmt: skip
        return np.sort(chosen)

    def observe(self, jobs: Jobs, scalars: Scalars) -> None:
        """Exchanges that all clients take part in are no concern of it."""
        jobs = jobs[self._chosen[jobs["exchange"]]]
        clients, rounds = jobs["client"], np.maximum(jobs["round"], 0) + 1
        self._last[clients] = rounds
        np.add.at(self._picks, clients, 1)
        took = jobs["arrived_s"] - jobs["dispatched_s"]
        arrived = np.isfinite(took)
        self._duration_s[clients[arrived]] = took[arrived]
        jobs, loss = reported(jobs, scalars, "loss_rms")
        self._loss[jobs["client"]] = loss
        self._achieve(np.maximum(jobs["round"], 0) + 1, self._samples[jobs["client"]] * loss)

    @property
    def epsilon(self) -> float:
        """The share of unexplored clients in the round in progress."""
        params = self._params
        decayed = params.explore * params.decay ** max(self._round - 1, 0)
        return max(decayed, min(params.explore, params.explore_least))

    def utility(self, clients: Ints) -> Floats:
        """The utility of explored clients in the round in progress, (n,)."""
        loss = self._loss[clients]
        known = self._loss[~np.isnan(self._loss)]
        loss = np.where(np.isnan(loss), known.mean() if len(known) else 1.0, loss)
        statistical = self._samples[clients] * loss
        statistical = np.minimum(statistical, np.quantile(statistical, self._params.clip))
        if self._params.scaled:
            # As in the code: the lowest is a little above 0, and equal ones do not divide by 0.
            low = 0.999 * statistical.min()
            statistical = (statistical - low) / max(statistical.max() - low, 1e-4)
        uncertainty = np.sqrt(0.1 * math.log(self._round) / self._last[clients])
        utility: Floats = (statistical + uncertainty) * self._system(clients)
        return utility

    def _system(self, clients: Ints) -> Floats:
        """(T / t)^penalty of slow clients, 1 of the others."""
        duration_s = self._duration_s[clients]
        factor = np.ones(len(clients))
        slow = duration_s > self.preferred_s
        factor[slow] = (self.preferred_s / duration_s[slow]) ** self._params.penalty
        return factor

    def _exploit(self, known: Ints, count: int) -> Ints:
        utility = self.utility(known)
        place = len(known) - count
        admitted = utility >= self._params.cutoff * np.partition(utility, place)[place]
        clients: Ints = known[admitted]
        return clients[draws.sample(self._draws.next(clients), utility[admitted], count)]

    def _by_speed(self, unknown: Ints, count: int) -> Ints:
        if not count:
            return unknown[:0]
        speed = 1 / np.maximum(self._duration_s[unknown], np.finfo(np.float64).tiny)
        return unknown[draws.sample(self._draws.next(unknown), speed, count)]

    def _begin(self, round_: int) -> None:
        """Begins a round: the pacer's step, if one is due, and the preferred duration."""
        if round_ == self._round:
            return
        window = self._params.window
        if (round_ - 1) // window > (self._round - 1) // window:
            end = (round_ - 1) // window * window
            if self._sum(end - 2 * window, end - window) > self._sum(end - window, end):
                self._quantile = min(1.0, self._quantile + self._params.duration_step)
        self._round = round_
        self.preferred_s = self._preferred()

    def _sum(self, start: int, end: int) -> float:
        """The statistical utility achieved in rounds ``start`` + 1 to ``end``."""
        return math.fsum(self._achieved[max(start, 0) : max(end, 0)])

    def _achieve(self, rounds: Ints, utility: Floats) -> None:
        for round_, value in zip(rounds.tolist(), utility.tolist(), strict=True):
            self._achieved += [0.0] * (round_ - len(self._achieved))
            self._achieved[round_ - 1] += value

    def _preferred(self) -> float:
        """T, in seconds; no limit once it is everybody's."""
        if self._quantile >= 1:
            return math.inf
        known = self._duration_s[self._world.plan.clients.admitted]
        place = min(int(len(known) * self._quantile), len(known) - 1)
        return float(np.partition(known, place)[place])

    def _allowed(self, count: int, candidates: Ints) -> Ints:
        """The candidates without those that were asked too often, the most frequent first."""
        if self._params.picks is None:
            return candidates
        picks = self._picks[candidates]
        barred: Bools = picks >= self._params.picks
        most = min(int(self.MOST_BARRED * len(self._picks)), len(candidates) - count)
        often = np.lexsort((candidates, -picks))[:most]
        keep = np.ones(len(candidates), dtype=bool)
        keep[often[barred[often]]] = False
        allowed: Ints = candidates[keep]
        return allowed
