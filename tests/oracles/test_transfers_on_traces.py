"""Transfers over links that change, beside the integral of their traces in fractions."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import plan, prices, sourced, told

from edgefl.core.link import Link
from edgefl.core.yamls import RESOLVED

HANDSHAKES = 2
# No whole number of milliseconds: no transfer begins just when a latency changes.
WORK_S = 0.7123456789


@st.composite
def series(draw, value, end_ms=None):
    """Rows of a trace, (milliseconds, value), of which the first and the last are not 0."""
    gaps = draw(st.lists(st.integers(50, 4000), min_size=1, max_size=5))
    times = [sum(gaps[:place]) for place in range(len(gaps) + 1)]
    if end_ms is not None:
        times = [*(one for one in times if one < end_ms), end_ms]
    inner = draw(st.lists(value | st.just(0), min_size=len(times) - 2, max_size=len(times) - 2))
    return list(zip(times, [draw(value), *inner, draw(value)], strict=True))


def text(rows):
    """As a trace's rows, in seconds."""
    return " ".join(f"{ms / 1000!r},{float(value)!r}" for ms, value in rows)


@st.composite
def traces(draw):
    """Rates each way in bit/s, with latencies in milliseconds or without."""
    # No whole number of bits a second: no transfer ends just when an outage begins.
    rate = st.integers(1000, 10**7).map(lambda bps: Fraction(10_000 * bps + 3779, 10_000))
    down = draw(series(rate))
    if draw(st.booleans()):
        return {"down": down, "up": draw(series(rate))}
    end_ms = down[-1][0]
    return {
        "down": down,
        "up": draw(series(rate, end_ms)),
        "latency": draw(series(st.integers(1, 900), end_ms)),
    }


def value_at(rows, t_s, *, held):
    """What holds at a time of a trace, and how long it still does; None for ever."""
    ms, length_ms = t_s * 1000, rows[-1][0]
    if held and ms >= length_ms:
        return rows[-1][1], None
    ms %= length_ms
    place = max(place for place, row in enumerate(rows) if row[0] <= ms)
    return rows[place][1], (rows[place + 1][0] - ms) / 1000


def end_s(trace, way, start_s, offset_s, size_bytes, *, held):
    """When a transfer that begins at a time is complete: in fractions."""
    if not size_bytes:
        return start_s
    now_s, left = start_s + offset_s, Fraction(8 * size_bytes)
    latency_ms = value_at(trace["latency"], now_s, held=held)[0] if "latency" in trace else 50
    now_s += Fraction(HANDSHAKES * latency_ms, 1000)
    while True:
        bps, lasts_s = value_at(trace[way], now_s, held=held)
        if lasts_s is None or bps * lasts_s >= left:
            return now_s + left / bps - offset_s
        left -= bps * lasts_s
        now_s += lasts_s


def link_of(found, end):
    """A link that follows traces, without losses."""
    rows = [
        {
            way: text([(ms, value / 1000 if way == "latency" else value) for ms, value in one])
            for way, one in trace.items()
        }
        for trace in found
    ]
    data = {"title": "t", "handshakes": sourced(HANDSHAKES), "radio": sourced({"base": 1.0})}
    if "latency" not in found[0]:
        data["latency"] = sourced(0.05)
    return Link.model_validate({**data, "trace": {"rows": rows, "end": end}}, context=RESOLVED)


def play_on(link, table, **options):
    """The rows of the jobs of clients that all are on a link."""
    plan_ = plan(table, **options)
    return told(replace(plan_, fleet=plan_.fleet.model_copy(update={"links": {"cable": link}})))[2]


def test_a_transfer_may_end_as_an_outage_begins():
    """It does not wait until the outage is over for what rounding has left of it."""
    down = [(0, 8000), (400, 4000), (700, 8000), (1300, 0), (60_000, 1000)]
    link = link_of([{"down": down, "up": [(0, 10**6), (1000, 10**6)]}], "hold")
    table = [prices("train", 1, down_bytes=(2400 + 1200 + 4800) // 8, up_bytes=1, compute_s=WORK_S)]
    assert play_on(link, table)["received_s"].tolist() == pytest.approx([1.3])


@given(
    st.lists(traces(), min_size=1, max_size=3).filter(lambda found: len({len(one) for one in found}) == 1),
    st.sampled_from(["repeat", "hold"]),
    st.integers(0, 99),
    st.lists(st.tuples(*(st.integers(0, 5000),) * 2), min_size=1, max_size=4),
)
def test_a_transfer_is_the_integral_of_its_trace(found, end, seed, sizes):
    """From its handshakes on, through every change and outage, from the client's place in its trace."""
    link, held = link_of(found, end), end == "hold"
    down, up = zip(*sizes, strict=True)
    table = [prices("train", len(sizes), down_bytes=down, up_bytes=up, compute_s=WORK_S)]
    rows = play_on(link, table, rounds=3, seed=seed)
    which, offset_s = link.followed.dealt(seed, np.arange(len(sizes)))
    assert len(rows) == 3 * len(sizes)
    for job in rows:
        client = int(job["client"])
        trace, offset = found[which[client]], Fraction(float(offset_s[client]))
        for way, begin, finish, size in (
            ("down", "dispatched_s", "received_s", down),
            ("up", "worked_s", "arrived_s", up),
        ):
            start = Fraction(float(job[begin]))
            expected = end_s(trace, way, start, offset, size[client], held=held)
            assert float(job[finish]) == pytest.approx(float(expected), rel=1e-9, abs=1e-6)
