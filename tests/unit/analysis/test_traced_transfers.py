"""What transfers take alone on links that change, beside a walk from piece to piece."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import link, plan, prices, with_server
from recorded import recorded

from edgefl.analysis.explain.transfers import alone_on, transfers
from edgefl.analysis.run import Run
from edgefl.core.link import Link
from edgefl.core.yamls import RESOLVED
from edgefl.planning.recorded import Recorded

PIECES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=5)


def on_trace(pieces, end, latency_s=0.5):
    """A link whose uploads follow pieces of some seconds and bit/s; held, the last rate is 3."""
    starts = np.cumsum([0, *(seconds for seconds, _ in pieces)]).tolist()
    text = " ".join(f"{t_s},{bps}" for t_s, bps in zip(starts, [*(bps for _, bps in pieces), 3], strict=True))
    given_ = link(latency=latency_s).model_dump(mode="json", exclude={"down", "up"})
    down = f"0,1 {starts[-1] / 2},2 {starts[-1]},1"
    trace = {"rows": [{"down": down, "up": text}], "end": end}
    return Link.model_validate({**given_, "trace": trace}, context=RESOLVED)


def walked(pieces, end, at_s, bits):
    """How long bits take from a time of the trace on, a piece after the other."""
    passed = 0.0
    length_s = sum(seconds for seconds, _ in pieces)
    while bits > 0:
        t_s, bps, until_s = (at_s + passed) % length_s if end == "repeat" else at_s + passed, 3, math.inf
        begin = 0
        for seconds, rate in pieces:
            if begin <= t_s < begin + seconds:
                bps, until_s = rate, begin + seconds
            begin += seconds
        takes_s = bits / bps if bps else math.inf
        step_s = min(takes_s, until_s - t_s)
        passed += step_s
        bits = 0 if takes_s <= until_s - t_s else bits - bps * step_s
    return passed


@given(
    PIECES.filter(lambda pieces: sum(s * bps for s, bps in pieces) >= sum(s for s, _ in pieces)),
    st.sampled_from(["repeat", "hold"]),
    st.integers(0, 30),
    st.integers(0, 40),
    st.integers(0, 5),
)
def test_a_transfer_takes_what_its_trace_lets_through(pieces, end, begin_s, bits, client):
    """From its beginning on, after the handshakes, from the client's own place in the trace."""
    one = on_trace(pieces, end)
    clients = np.array([client])
    _, (offset_s,) = one.dealt(0, clients)
    delay_s, alone_s = alone_on(one, "up", 0, clients, np.array([float(begin_s)]), np.array([float(bits)]))
    assert delay_s == [0.5]
    assert alone_s[0] == pytest.approx(0.5 + walked(pieces, end, begin_s + offset_s + 0.5, bits), abs=1e-6)


@pytest.mark.parametrize(("uplink", "shares"), [(1e12, False), (12.0, True)])
def test_what_a_trace_adds_is_rate_and_what_others_add_is_sharing(uplink, shares):
    """In the world, five clients on one trace of 0 to 9 bit/s, behind a server's link."""
    moving = on_trace([(3, 1), (2, 0), (1, 9)], "repeat")
    table = [
        prices("train", 5, compute_s=[1, 2, 3, 4, 5], up_bytes=[1, 2, 3, 4, 5], up_bps=2.5, up_delay_s=0.5)
    ]
    plan_ = with_server(plan(table, rounds=4, links={"cable": moving}), uplink=uplink)
    with recorded(plan_) as reader:
        found = Run(reader)
        _ = found.jobs, found.clients
    jobs = np.arange(len(found.jobs))
    parts = transfers(found, Recorded(plan_, {}, {"cable": moving}), jobs, "up")
    assert sum(parts) == pytest.approx(found.jobs.transmit_s)
    assert parts.sharing.any() == shares
    own = jobs, found.jobs.worked_s, 8.0 * found.jobs.up_bytes
    _, alone_s = alone_on(moving, "up", plan_.scenario.seed, found.jobs.client, *own[1:])
    assert (parts.rate + parts.latency == pytest.approx(alone_s)) or shares
    assert (found.jobs.transmit_s >= alone_s - 1e-9).all()
