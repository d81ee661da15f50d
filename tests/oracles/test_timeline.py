"""Timelines and prices that a reader can check on paper."""

import math

import numpy as np
import pytest
from alone import priced
from plans import cost, device, kernel, link, plan, prices, told_all

from edgefl.core.cost import Cost, Work
from edgefl.core.event import Kind
from edgefl.planning.repricing import Pricer
from edgefl.world.world import World


def test_energy_by_phase_with_radio_and_tail():
    """Idle 2 W, radio 1 W + 0.1 W per Mbit/s down and 0.5 up, tail 3 W x 4 s, computing at 4 W.

    down: 1 W x 1.5 s + 0.1 J/Mbit x 8 Mbit = 2.3 J. up: 1 W x 2.5 s + 0.5 x 8 = 6.5 J.
    Computing 5 GFLOP at 5 GFLOP/s and one launch of 1 ms: 1.001 s x (4 - 2) W = 2.002 J.
    The first tail ends with computing: 3 W x 1.001 s; the second one lasts: 3 W x 4 s. Idle: 2 W x 5.001 s.
    """
    radio = {"base": "1 W", "down_w_per_mbps": 0.1, "up_w_per_mbps": 0.5, "tail": "3 W", "tail_time": "4 s"}
    job = cost(Work.of([kernel(flops=5 * 10**9)]), down=10**6, up=10**6)
    price = priced(Pricer("board", device()), job, link(radio=radio))
    assert price.energy == pytest.approx((2.3, 2.002, 6.5, 15.003, 10.002))
    assert price.energy.joules == pytest.approx(35.807)


def test_three_kernels_by_hand():
    """Dense is bound by computing, depthwise by memory, elementwise by half of it; each pays 1 ms of launch.

    2 x dense: max(5 GFLOP / 5 GFLOP/s, 0.1 GB / 1 GB/s) = 1 s -> 2.002 s
    1 x depthwise: max(0.1 GFLOP / 1 GFLOP/s, 0.2 GB / 1 GB/s) = 0.2 s -> 0.201 s
    3 x elementwise: 50 MB / (0.5 x 1 GB/s) = 0.1 s -> 0.303 s
    """
    dense = kernel("dense", 5 * 10**9, 10**8)
    depthwise = kernel("depthwise", 10**8, 2 * 10**8)
    elementwise = kernel("elementwise", 0, 5 * 10**7)
    pricer = Pricer("board", device())
    assert pricer.time(cost(Work.of([dense]))) == pytest.approx((1, 0, 0.001))
    assert pricer.time(cost(Work.of([depthwise]))) == pytest.approx((0, 0.2, 0.001))
    assert pricer.time(cost(Work.of([elementwise]))) == pytest.approx((0, 0.1, 0.001))
    price = priced(pricer, cost(Work.of([dense, dense, depthwise, *[elementwise] * 3])), link())
    assert price.compute_s == pytest.approx(2.506)
    assert price.bounds == pytest.approx((2.0, 0.5, 0.006))
    assert price.energy.compute_j == pytest.approx(2 * 2.506)


def test_backward_passes_have_an_overhead_of_their_own():
    """Two passes of three kernels: 3 x 1 s of arithmetic, 3 x 1 ms of launches and 2 x 10 ms of passes."""
    begins, goes_on = kernel(flops=5 * 10**9, backward=1), kernel(flops=5 * 10**9)
    work = Work.of([begins, goes_on, begins])
    pricer = Pricer("board", device(backward=0.01))
    assert work.backwards == 2
    assert pricer.time(cost(work)) == pytest.approx((3, 0, 0.023))
    assert pricer.time(Cost(steps=((work, 10),))) == pytest.approx((30, 0, 0.23))
    assert Pricer("board", device()).time(cost(work)) == pytest.approx((3, 0, 0.003))


def _broken_off_at(seconds):
    """The row of a job that is lost so many seconds after its dispatch.

    It has a handshake of 1 s and 8 Mbit at 4 Mbit/s down (2 s), 4 s x 2 of work for 100 FLOP (at half speed),
    and 8 Mbit at 8 Mbit/s up (1 s) without a handshake. Idle 2 W, computing 3 W, radio 1 W, 0.5 J/Mbit down,
    0.25 J/Mbit up, tail 4 W x 0.5 s.
    """
    table = prices(
        "train",
        1,
        down_delay_s=1,
        down_bps=4e6,
        up_bps=8e6,
        work_s=4,
        down_bytes=10**6,
        up_bytes=10**6,
        flops=100,
        idle_w=2,
        compute_w=3,
        radio_w=1,
        receive_j_per_mbit=0.5,
        transmit_j_per_mbit=0.25,
        tail_w=4,
        tail_s=0.5,
    )
    chunks, plan_ = [], plan([table], slowdown=2)
    world = World(plan_, lambda _: None, chunks.append)
    jobs = world.dispatch("train", 0)
    world.env.run(until=seconds)
    world.env.run(world.discard(jobs, Kind.LOST))
    world.close()
    return np.concatenate(chunks)[0]


RECEIVE = ["receive_s", "down_bytes", "receive_j", "receive_idle_j"]
WORK = ["work_s", "flops", "work_j", "work_tail_j", "work_idle_j"]
TRANSMIT = ["transmit_s", "up_bytes", "transmit_j", "transmit_idle_j"]


@pytest.mark.parametrize(
    ("seconds", "receive", "work", "transmit"),
    [
        # In the handshake: no byte, the radio's base power; its tail is not over.
        (0.5, (0.5, 0, 0.5, 1), (0,) * 5, (0,) * 4),
        # Half of the bytes: 2 s x 1 W + 4 Mbit x 0.5.
        (2, (2, 500_000, 4, 4), (0,) * 5, (0,) * 4),
        # A quarter of the work; the tail after the download is left open.
        (5, (3, 10**6, 7, 6), (2, 25, 6, 0, 4), (0,) * 4),
        # Half of the upload; the tail after the download was over by then.
        (11.5, (3, 10**6, 7, 6), (8, 100, 24, 2, 16), (0.5, 500_000, 1.5, 1)),
    ],
)
def test_what_a_job_that_is_broken_off_has_cost(seconds, receive, work, transmit):
    """Each stage is charged as far as it went."""
    row = _broken_off_at(seconds)
    assert (row["ended_s"], row["earlier_tail_j"]) == (seconds, 0)
    for names, figures in ((RECEIVE, receive), (WORK, work), (TRANSMIT, transmit)):
        assert row[names].tolist() == pytest.approx(figures)


def test_tails_of_an_unknown_radio_are_unknown():
    """From the second job on, and at the end; before its first transfer a radio has no tail."""
    table = prices("train", 1, up_s=1, compute_s=1, radio_w=math.nan, tail_w=math.nan, idle_w=math.nan)
    _, needs, rows, tails = told_all(plan([table], rounds=2, until={"rounds": 2, "time": 100.0}))
    np.testing.assert_array_equal(rows["earlier_tail_j"], [0, math.nan])
    np.testing.assert_array_equal(rows["waiting_j"], [0, 0])
    assert np.isnan(tails["joules"]).all()
    assert (tails["client"].tolist(), tails["job"].tolist()) == ([0], [1])
    assert needs[-1].totals.energy == (None, 0, 1)
