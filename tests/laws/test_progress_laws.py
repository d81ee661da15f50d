"""Laws of what a run's ledger says of the jobs that have ended, whenever it is asked."""

from __future__ import annotations

import numpy as np
import pytest
from fleets import fleets
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.core.event import ENDINGS, TAIL, Kind
from edgefl.core.ledger import Ledger, joules
from edgefl.world.driver import converse, simulate
from edgefl.world.job import LIVE
from edgefl.world.needs import Feedback

MERGED = ENDINGS.index(Kind.MERGED)


@given(fleets(), st.integers(1, 20), st.integers(1, 3))
@settings(max_examples=12)
def test_what_ended_jobs_cost_is_known_at_every_need(plan_, at_least, every):
    """Jobs are counted as they end, however many are charged at a time, and asked often or seldom."""
    ledger, asked = Ledger(len(plan_.clients)), []
    chunks, tails = [np.zeros(0, dtype=LIVE)], [np.zeros(0, dtype=TAIL)]

    def answer(need):
        if need.version % every == 0:
            asked.append((need.version, ledger.spent()))
        return Feedback()

    world = simulate(plan_, ended=chunks.append, settled=tails.append, at_least=at_least, ledger=ledger)
    converse(world, answer)
    rows, settled = np.concatenate(chunks), np.concatenate(tails)
    asked.append((max(rows["into_version"], default=0), ledger.spent()))
    for version, spent in asked:
        merged = np.flatnonzero((rows["ending"] == MERGED) & (rows["into_version"] <= version))
        assert merged.max(initial=-1) < spent.jobs
        so_far = rows[: spent.jobs]
        sums = (so_far[name].sum() for name in ("down_bytes", "up_bytes", "flops"))
        assert spent[1:4] == tuple(map(int, sums))
        busy_s = so_far["receive_s"] + so_far["work_s"] + so_far["transmit_s"]
        assert spent.client_s == pytest.approx(busy_s.sum())
        wasted = so_far[so_far["ending"] != MERGED]
        assert spent.wasted_bytes == (wasted["down_bytes"] + wasted["up_bytes"]).sum()
    by_client = np.zeros(len(plan_.clients))
    np.add.at(by_client, rows["client"], joules(rows))
    np.add.at(by_client, settled["client"], settled["joules"])
    known = by_client[np.unique(rows["client"])]
    known = known[~np.isnan(known)]
    assert spent.jobs == len(rows)
    assert spent.joules == (pytest.approx(known.sum()) if len(known) else None)
