"""Laws of radios' tails and of waiting, over every policy, availability, speed and failure."""

from dataclasses import replace

import numpy as np
import pytest
from fleets import fleets
from hypothesis import given
from plans import reasked, told_all

from edgefl.core.event import joules
from edgefl.world.needs import Evaluate
from edgefl.world.world import World

TAIL_W = 0.5


def transfers(rows):
    """Each client's transfers, (from, to), in order: read off the times and busy seconds of its jobs."""
    found = {}
    for row in rows[np.argsort(rows["job"])]:
        own = found.setdefault(int(row["client"]), [])
        for stage, begin, end in (
            ("receive_s", "dispatched_s", "received_s"),
            ("transmit_s", "worked_s", "arrived_s"),
        ):
            if row[stage] > 0:
                own.append((row[begin], row["ended_s"] if np.isnan(row[end]) else row[end]))
    return found


def tails_j(own, tail_s, until_s):
    """The joules of a client's tails until a time, given its transfers."""
    begun = [(start, end) for start, end in own if start <= until_s]
    after = [start for start, _ in begun[1:]] + [until_s]
    gaps = [start - end for (_, end), start in zip(begun, after, strict=False) if end < until_s]
    assert all(gap >= 0 for gap in gaps)
    return sum(TAIL_W * min(tail_s, gap) for gap in gaps)


def by_client(plan_, rows, values):
    """The sum of the values of rows, by client."""
    return np.bincount(rows["client"], weights=values, minlength=len(plan_.clients))


def radios_alone(plan_):
    """The plan, of which nothing draws power but radios' tails."""
    nothing = ("idle_w", "compute_w", "radio_w", "receive_j_per_mbit", "transmit_j_per_mbit")
    zeros = dict.fromkeys(nothing, np.zeros(len(plan_.clients)))
    return replace(plan_, prices=tuple(reasked(one, **zeros) for one in plan_.prices))


def ends(monkeypatch):
    """The times at which worlds end, as they do."""
    found, close = [], World.close

    def closed(world):
        close(world)
        found.append(world.now_s)

    monkeypatch.setattr(World, "close", closed)
    return found


@given(fleets())
def test_a_tail_lasts_until_the_next_transfer(plan_):
    """However jobs go, each client's tails are those between its transfers, and overlap none of them."""
    plan_ = radios_alone(plan_)
    with pytest.MonkeyPatch.context() as patch:
        end_s = ends(patch)
        _, needs, rows, tails = told_all(plan_)
    own, tail_s = transfers(rows), plan_.prices[0].demand.tail_s

    def expected(until_s):
        return {client: tails_j(each, tail_s[client], until_s) for client, each in own.items()}

    charged = by_client(plan_, rows, joules(rows)) + by_client(plan_, tails, tails["joules"])
    whole = np.zeros(len(plan_.clients))
    whole[list(own)] = list(expected(end_s[0]).values())
    np.testing.assert_allclose(charged, whole, rtol=1e-9, atol=1e-9)
    for need in needs:
        if isinstance(need, Evaluate) and need.totals.energy.energy_clients:
            assert need.totals.energy.joules == pytest.approx(sum(expected(need.t_s).values()))


@given(fleets())
def test_who_arrived_waits_until_the_end_or_the_next_job(plan_):
    """At idle power, which is no part of the job's energy; who did not arrive does not wait."""
    rows = told_all(plan_)[2]
    for row in rows:
        later = rows["dispatched_s"][(rows["client"] == row["client"]) & (rows["job"] > row["job"])]
        until_s = min(row["ended_s"], later.min(initial=np.inf))
        waits_s = 0.0 if np.isnan(row["arrived_s"]) else until_s - row["arrived_s"]
        idle_w = plan_.prices[row["exchange"]].demand.idle_w[row["client"]]
        assert row["waiting_j"] == pytest.approx(idle_w * waits_s)
        assert waits_s >= 0
