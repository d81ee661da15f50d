"""Laws of radios' tails and of waiting, over every policy, availability, speed and failure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fleets import fleets
from hypothesis import given, settings
from plans import told_all

from edgefl.core.event import TAIL
from edgefl.core.ledger import joules
from edgefl.world.needs import Evaluate
from edgefl.world.world import World

FEW = settings(max_examples=20)
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
    return replace(plan_, prices=tuple(replace(one, **zeros) for one in plan_.prices))


def ends(monkeypatch):
    """The times at which worlds end, as they do."""
    found, close = [], World.close

    def closed(world):
        close(world)
        found.append(world.now_s)

    monkeypatch.setattr(World, "close", closed)
    return found


@given(fleets())
@FEW
def test_a_radio_draws_no_more_than_it_can(plan_):
    """A client takes at most the active power and the radio's maximum for as long as the run lasts.

    Tails are longer than jobs, as on 4G.
    """
    long_s = 60 + plan_.prices[0].tail_s
    plan_ = replace(plan_, prices=tuple(replace(one, tail_s=long_s) for one in plan_.prices))
    with pytest.MonkeyPatch.context() as patch:
        end_s = ends(patch)
        _, _, rows, tails = told_all(plan_)
    spent_j = by_client(plan_, rows, joules(rows)) + by_client(plan_, tails, tails["joules"])
    most_w = np.zeros(len(plan_.clients))
    for one in plan_.prices:
        draw = one.demand(plan_.clients.kind)
        receiving_w, sending_w = draw.receive_j_per_mbit * one.down_bps, draw.transmit_j_per_mbit * one.up_bps
        radio_w = np.maximum(draw.radio_w + np.maximum(receiving_w, sending_w) / 1e6, draw.tail_w)
        most_w = np.maximum(most_w, draw.idle_w + draw.compute_w + radio_w)
    known = ~np.isnan(spent_j)
    assert (spent_j[known] <= np.nan_to_num(most_w[known]) * end_s[0] * (1 + 1e-9) + 1e-9).all()


@given(fleets())
@FEW
def test_a_tail_lasts_until_the_next_transfer(plan_):
    """However jobs go, each client's tails are those between its transfers, and overlap none of them."""
    plan_ = radios_alone(plan_)
    with pytest.MonkeyPatch.context() as patch:
        end_s = ends(patch)
        _, needs, rows, tails = told_all(plan_)
    own, tail_s = transfers(rows), plan_.prices[0].tail_s

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
@FEW
def test_a_tail_is_settled_once(plan_):
    """With the last transfer of each client, at most for its tail time, and with a job of its client."""
    with pytest.MonkeyPatch.context() as patch:
        end_s = ends(patch)
        _, _, rows, tails = told_all(plan_)
    assert tails.dtype == TAIL
    assert len(np.unique(tails["client"])) == len(tails)
    last = transfers(rows)
    for tail in tails:
        assert rows["client"][rows["job"] == tail["job"]] == [tail["client"]]
        since_s = last[int(tail["client"])][-1][1]
        assert since_s <= tail["t_s"] <= end_s[0]
        assert tail["joules"] == pytest.approx(TAIL_W * (tail["t_s"] - since_s))


@given(fleets())
@FEW
def test_who_arrived_waits_until_the_end_or_the_next_job(plan_):
    """At idle power, which is no part of the job's energy; who did not arrive does not wait."""
    rows = told_all(plan_)[2]
    for row in rows:
        later = rows["dispatched_s"][(rows["client"] == row["client"]) & (rows["job"] > row["job"])]
        until_s = min(row["ended_s"], later.min(initial=np.inf))
        waits_s = 0.0 if np.isnan(row["arrived_s"]) else until_s - row["arrived_s"]
        idle_w = plan_.prices[row["exchange"]].idle_w[row["client"]]
        assert row["waiting_j"] == pytest.approx(idle_w * waits_s)
        assert waits_s >= 0
