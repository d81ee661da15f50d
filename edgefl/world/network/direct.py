"""Links that clients have to themselves: all of a job's times are known at its dispatch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from edgefl.core.draws import Floats
from edgefl.core.plan import Bools, Ints, Plan
from edgefl.core.price import Demand
from edgefl.world.table import Rows
from edgefl.world.tails import Tails
from edgefl.world.timeline import Timeline

# Of a job's steps that a budget of time allows, and of the number of uploads: a rounding error below a whole
# number counts as it.
_ROUNDING = 1e-9


class Transfer(NamedTuple):
    """How far transfers went, an array each.

    Attributes:
        busy_s: for how long clients were at them.
        moved: the bytes.
        states: of clients' speed curves then, (n, curves).
    """

    busy_s: Floats
    moved: Ints
    states: Floats


class Direct:
    """A network on which nothing is shared and rates do not change."""

    def __init__(self, plan: Plan, timeline: Timeline, tails: Tails) -> None:
        """Nothing is under way."""
        self.timeline = timeline
        self._plan = plan
        self._tails = tails

    def launch(self, rows: Rows, states: Floats, given_up: Bools, finish_by: float | None) -> None:
        """Fills in all times of jobs that begin.

        Args:
            rows: the jobs, of one exchange.
            states: of their clients' speed curves, (n, curves).
            given_up: whether their last upload is one too many that arrives with errors.
            finish_by: see ``World.dispatch``.
        """
        timeline, clients = self.timeline, rows["client"]
        received = timeline.stage(clients, rows["dispatched_s"], rows["down_s"], states, working=False)
        rows["received_s"] = received.t_s
        worked = work(rows, received.states, timeline, finish_by)
        sent = timeline.stage(clients, worked.t_s, rows["up_s"], worked.states, working=False)
        in_vain = given_up
        if timeline.checks_at_end:
            in_vain = given_up | timeline.absent(clients, sent.t_s, states)
        rows["arrived_s"] = np.where(in_vain, np.inf, sent.t_s)
        lost_s = np.full(len(rows), np.inf)
        if timeline.losing:
            name = self._plan.prices[int(rows["exchange"][0])].exchange if len(rows) else ""
            lost_s = timeline.losses(rows, name, np.where(in_vain, sent.t_s, np.inf))
        rows["lost"] = np.isfinite(lost_s)
        rows["due_s"] = np.minimum(rows["arrived_s"], lost_s)
        self._tails.leave(rows)

    def begin(self, slots: Ints, given_up: Bools, finish_by: float | None) -> None:
        """The jobs are in the table."""

    def drop(self, jobs: Ints) -> None:
        """Jobs were broken off."""

    def received(self, rows: Rows, demand: Demand, states: Floats, until_s: Floats) -> Transfer:
        """How far downloads went until a time.

        Args:
            rows: the jobs, of one exchange.
            demand: theirs.
            states: of their clients' speed curves at the dispatch.
            until_s: for each of them.
        """
        stage = self.timeline.stage(
            rows["client"], rows["dispatched_s"], rows["down_s"], states, working=False, until_s=until_s
        )
        return Transfer(stage.busy_s, demand.moved_down(stage.busy_s), stage.states)

    def sent(self, rows: Rows, demand: Demand, start_s: Floats, states: Floats, until_s: Floats) -> Transfer:
        """How far uploads, which begin at a time each, went; see ``received``."""
        stage = self.timeline.stage(
            rows["client"], start_s, rows["up_s"], states, working=False, until_s=until_s
        )
        once_s = demand.up_s
        sends = np.divide(stage.busy_s, once_s, out=np.zeros(len(rows)), where=once_s > 0)
        sends = np.floor(sends + _ROUNDING).astype(np.int64)
        moved = sends * demand.up_bytes + demand.moved_up(stage.busy_s - sends * once_s)
        return Transfer(stage.busy_s, moved, stage.states)


class Worked(NamedTuple):
    """When work ended, (n,), and the states of clients' speed curves then, (n, curves)."""

    t_s: Floats
    states: Floats


def work(rows: Rows, states: Floats, timeline: Timeline, finish_by: float | None) -> Worked:
    """Fills in how the work of jobs goes that were received.

    Args:
        rows: the jobs.
        states: of their clients' speed curves when they were received, (n, curves).
        timeline: the run's.
        finish_by: see ``World.dispatch``.
    """
    if finish_by is not None:
        _shorten(rows, states, timeline, finish_by)
    stage = timeline.stage(rows["client"], rows["received_s"], rows["amount_s"], states, working=True)
    rows["worked_s"], rows["work_s"], rows["full_power_s"] = stage.t_s, stage.busy_s, stage.power_s
    timeline.commit(rows["client"], stage.t_s, stage.states)
    return Worked(stage.t_s, stage.states)


def _shorten(rows: Rows, states: Floats, timeline: Timeline, finish_by: float) -> None:
    """Reduces work, in place, to the whole steps that leave time for the upload; at least to one."""
    # Nobody foresees that an upload will be corrupted, or will have to share a link.
    stop_s = finish_by - rows["up_s"] / rows["sends"]
    stage = timeline.stage(
        rows["client"], rows["received_s"], rows["amount_s"], states, working=True, until_s=stop_s
    )
    done = np.divide(stage.done_s, rows["amount_s"], out=np.ones(len(rows)), where=rows["amount_s"] > 0)
    steps = np.floor(rows["steps"] * done + _ROUNDING).astype(np.int64)
    short = (steps >= 1) & (steps < rows["steps"])
    share = np.divide(steps, rows["steps"], out=np.ones(len(rows)), where=rows["steps"] > 0)
    rows["amount_s"] = np.where(short, rows["amount_s"] * share, rows["amount_s"])
    rows["flops"] = np.where(short, (rows["flops"] * share).astype(np.int64), rows["flops"])
    rows["steps"] = np.where(short, steps, rows["steps"])
