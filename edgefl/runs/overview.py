"""Scenarios at a glance: every run is validated; one of each kind is planned, and run for a few rounds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from edgefl.core.corners import Interval
from edgefl.core.drafts import Draft
from edgefl.core.errors import RunError
from edgefl.core.event import TAIL, Kind, ServerEvent
from edgefl.core.ledger import joules
from edgefl.core.plan import Plan
from edgefl.core.repricing import Jobs, at_corners, is_unbounded
from edgefl.core.scenario import Until
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.dry import checked_drafts
from edgefl.runs.group import Overrides
from edgefl.show.overviews import Overview, Range
from edgefl.world.blind import is_blind, shared
from edgefl.world.driver import converse, simulate
from edgefl.world.needs import Feedback
from edgefl.world.table import stacked

ROUNDS = 3
"""The clock runs so many rounds."""


def overview(scenario: str, overrides: Overrides = (), access: DataAccess | None = None) -> Overview:
    """Looks at a scenario.

    Args:
        scenario: its file or name.
        overrides: settings to replace.
        access: holds what scenarios share, such as traces.

    Raises:
        UserError: the scenario is wrong.
    """
    access = access or DataAccess(need="embedded")
    drafts = checked_drafts(scenario, overrides)
    plans = [plan(draft, access).plan for draft in _one_of_each_kind(drafts)]
    rounds, failed = [], []
    for each in plans:
        try:
            rounds.append(_clocked(each))
        except RunError as error:
            failed.append(f"{each.scenario.name}: {error}")
    limits = [each.scenario.server.until.rounds for each in plans]
    return Overview(
        scenario=scenario,
        runs=len(drafts),
        planned=len(plans),
        clients=_range(len(each.clients) for each in plans) or (0, 0),
        refused=_range(len(each.refusals) for each in plans) or (0, 0),
        rounds=_range(limits),
        round_s=_range(each.seconds for each in rounds),
        round_bytes=_range(each.moved for each in rounds),
        round_j=_range(each.joules for each in rounds),
        round_j_between=_widest(each.joules_between for each in rounds),
        lower_bounds=any(is_unbounded(prices) for each in plans for prices in each.prices),
        round_waiting_j=_range(each.waiting_j for each in rounds),
        failed=failed,
        assumed=tuple(dict.fromkeys(line for each in plans for line in each.assumed)),
    )


def _one_of_each_kind(drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts without those that differ from an earlier one only in what costs hardly depend on."""
    found: dict[str, Draft] = {}
    for draft in drafts:
        settings = draft.scenario.resolved()
        del settings["seed"], settings["local"]["optimizer"]["lr"]
        found.setdefault(json.dumps(settings, sort_keys=True), draft)
    return list(found.values())


class _Round(NamedTuple):
    seconds: float
    moved: float
    joules: float | None
    joules_between: Interval
    waiting_j: float | None


def _clocked(planned: Plan) -> _Round:
    """The mean of the first rounds.

    Raises:
        RunError: nobody can work, or the policy or the selector does what it must not.
    """
    planned.check_admitted()
    until = Until(rounds=min(planned.scenario.server.until.rounds or ROUNDS, ROUNDS))
    server = planned.scenario.server.model_copy(update={"until": until})
    short = replace(planned, scenario=planned.scenario.model_copy(update={"server": server}))
    events: list[ServerEvent] = []
    ended: list[np.ndarray] = []
    tails: list[np.ndarray] = [np.zeros(0, dtype=TAIL)]
    world = simulate(short, events.append, ended.append, settled=tails.append)
    done = converse(world, lambda _: Feedback())
    rounds = done.rounds
    during = [prices.at == "round" for prices in planned.prices]
    names = [prices.exchange for prices, does in zip(planned.prices, during, strict=True) if does]
    merged = [event.t_s for event in events if event.kind is Kind.MERGED and event.exchange in names]
    before = [event.t_s for event in events if event.round < 0]
    jobs = stacked(ended)
    jobs = jobs[np.array(during)[jobs["exchange"]]]
    settled = tails[-1][np.isin(tails[-1]["job"], jobs["job"])]
    energy = float(joules(jobs).sum() + settled["joules"].sum())
    waiting = float(jobs["waiting_j"].sum())
    figures = (energy, *_at_corners(short, stacked(ended), energy, done.t_s), waiting)
    each, low, high, waiting_j = (None if np.isnan(one) else one / rounds for one in figures)
    return _Round(
        (max(merged, default=0.0) - max(before, default=0.0)) / rounds,
        float((jobs["down_bytes"] + jobs["up_bytes"]).sum()) / rounds,
        each,
        Interval.of(low, high),
        waiting_j,
    )


def _at_corners(planned: Plan, ended: np.ndarray, energy: float, end_s: float) -> tuple[float, float]:
    """The energy of the rounds' jobs at both corners, given all jobs and the end; NaN where it is unknown."""
    if all(prices.corners is None for prices in planned.prices):
        return energy, energy
    rows = ended[np.argsort(ended["job"])]
    during = np.array([prices.at == "round" for prices in planned.prices])[rows["exchange"]]
    jobs = Jobs.of_rows(rows, planned.clients.kind)
    corners = at_corners(jobs, planned.prices, blind=is_blind(planned), shared=any(shared(planned)))
    low, high = (
        math.fsum(
            float(joules[during[places]].sum())
            for places, taken in corner.by_job(end_s)
            for joules in (*taken.stage_j, *taken.tail_j)
        )
        for corner in corners
    )
    return low, high


def _widest(intervals: Iterable[Interval]) -> Interval | None:
    """What bounds all of them; None where there are none."""
    found = list(intervals)
    highs = [one.high for one in found]
    known = [high for high in highs if high is not None]
    high = max(known) if len(known) == len(highs) else None
    return Interval(min(one.low for one in found), high) if found else None


def _range(values: Iterable[float | None]) -> Range | None:
    """The lowest and the highest; None if one is unknown, or there are none."""
    found = list(values)
    known = [value for value in found if value is not None]
    return (min(known), max(known)) if known and len(known) == len(found) else None
