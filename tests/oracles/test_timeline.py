"""Timelines and prices that a reader can check on paper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alone import priced
from history import NOTHING, history
from plans import cost, device, kernel, link, plan, play, prices, told_all
from tails import CASES, TAIL_W

from edgefl.core.cost import Cost, Work
from edgefl.core.event import Kind
from edgefl.core.ledger import joules
from edgefl.core.pricer import Pricer
from edgefl.world.needs import Evaluate
from edgefl.world.world import World

START = Kind.DISPATCHED
LETTERS = {Kind.DISPATCHED: "sent", Kind.RECEIVED: "got", Kind.WORKED: "done", Kind.ARRIVED: "back"}


def _told(events):
    """Events as short text: ``7.0 c1 done train``, ``8.0 merge 1 train``."""
    lines = []
    for event in events:
        if event.kind in LETTERS:
            lines.append(f"{event.t_s} c{event.client} {LETTERS[event.kind]} {event.exchange}")
        elif event.kind is Kind.MERGED:
            lines.append(f"{event.t_s} merge {event.version} {event.exchange}")
        elif event.kind is Kind.REFUSED:
            lines.append(f"{event.t_s} c{event.client} refused {event.exchange}")
        else:
            lines.append(f"{event.t_s} score {event.version}")
    return lines


def test_two_rounds_of_two_clients():
    """The round lasts as long as its slowest client; slowdown stretches computing alone.

    c0: 1 s down, 2 s x 1 computing, 1 s up: back after 4 s. c1: 2 s down, 2 s x 1.5 computing, 3 s up: 8 s.
    """
    table = prices("train", 2, down_s=[1, 2], compute_s=2, up_s=[1, 3])
    events, _ = play(plan([table], rounds=2, slowdown=[1, 1.5]))
    assert _told(events) == [
        "0.0 c0 sent train",
        "0.0 c1 sent train",
        "1.0 c0 got train",
        "2.0 c1 got train",
        "3.0 c0 done train",
        "4.0 c0 back train",
        "5.0 c1 done train",
        "8.0 c1 back train",
        "8.0 merge 1 train",
        "8.0 score 1",
        "8.0 c0 sent train",
        "8.0 c1 sent train",
        "9.0 c0 got train",
        "10.0 c1 got train",
        "11.0 c0 done train",
        "12.0 c0 back train",
        "13.0 c1 done train",
        "16.0 c1 back train",
        "16.0 merge 2 train",
        "16.0 score 2",
    ]


def test_exchanges_before_within_and_after_the_rounds():
    """Start and end frame three rounds; an exchange every 2 rounds happens in round 1 (from 0) alone.

    ``hello`` sends nothing down (0 s) and 1 s up; ``train`` computes for 2 s in every round; ``mend``
    computes for 4 s every second round, after ``train``; ``calibrate`` ends it all with 5 s down. Client 1
    fits in no memory. Evaluated every 2 rounds, after the last round, and after the end.
    """
    table = [
        prices("hello", 2, at="start", up_s=1),
        prices("train", 2, compute_s=2),
        prices("mend", 2, every=2, compute_s=4),
        prices("calibrate", 2, at="end", everyone=True, down_s=5),
    ]
    events, needs = play(plan(table, rounds=3, every=2, refused=[1]))
    assert _told(events) == [
        "0.0 c1 refused hello",
        *(
            "0.0 c0 sent hello",
            "0.0 c0 got hello",
            "0.0 c0 done hello",
            "1.0 c0 back hello",
            "1.0 merge 1 hello",
        ),
        *(
            "1.0 c0 sent train",
            "1.0 c0 got train",
            "3.0 c0 done train",
            "3.0 c0 back train",
            "3.0 merge 2 train",
        ),
        *(
            "3.0 c0 sent train",
            "3.0 c0 got train",
            "5.0 c0 done train",
            "5.0 c0 back train",
            "5.0 merge 3 train",
        ),
        *("5.0 c0 sent mend", "5.0 c0 got mend", "9.0 c0 done mend", "9.0 c0 back mend", "9.0 merge 4 mend"),
        "9.0 score 4",
        *(
            "9.0 c0 sent train",
            "9.0 c0 got train",
            "11.0 c0 done train",
            "11.0 c0 back train",
            "11.0 merge 5 train",
        ),
        "11.0 score 5",
        "11.0 c0 sent calibrate",
        "16.0 c0 got calibrate",
        "16.0 c0 done calibrate",
        "16.0 c0 back calibrate",
        "16.0 merge 6 calibrate",
        "16.0 score 6",
    ]
    scored = [(need.version, need.round, need.t_s) for need in needs if isinstance(need, Evaluate)]
    assert scored == [(4, 1, 9.0), (5, 2, 11.0), (6, 3, 16.0)]
    dispatched = [event.round for event in events if event.kind is START]
    assert dispatched == [-1, 0, 1, 1, 2, 3]


def test_participants_alone_make_the_round():
    """Two of four clients a round: client i computes for 2**i s, so a round lasts as long as its larger one.

    The cohorts are drawn by seed 0; that they are {1, 3}, {0, 2}, {2, 3} is pinned here, the times follow:
    8 s, 4 s, 8 s.
    """
    events, needs = play(plan([prices("train", 4, compute_s=[1, 2, 4, 8])], rounds=3, participants=2))
    cohorts = [[job.client for job in need.merged] for need in needs if not isinstance(need, Evaluate)]
    assert cohorts == [[1, 3], [0, 2], [2, 3]]
    assert [event.t_s for event in events if event.kind is Kind.MERGED] == [8.0, 12.0, 20.0]


def test_a_version_that_did_not_change_is_not_scored_again():
    """With one exchange every 2 of 4 rounds there are versions 0, 1, 2; each is scored once."""
    _, needs = play(plan([prices("train", 1, every=2, compute_s=1)], rounds=4))
    scored = [(need.version, need.round) for need in needs if isinstance(need, Evaluate)]
    assert scored == [(0, 0), (1, 1), (2, 3)]


def test_time_of_a_transfer():
    """1 MB at 8 Mbit/s is 1 s and at 4 Mbit/s 2 s, each after half a second of round trip."""
    price = priced(Pricer("board", device()), cost(down=10**6, up=10**6), link())
    assert (price.down_s, price.compute_s, price.up_s) == (1.5, 0, 2.5)


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


def test_overheads_keep_one_core_busy():
    """1 s of arithmetic at 4 W, 1.5 s of overheads at 3 W, above 2 W: (2 + 1.5) J, whether fast or slow."""
    work = Work.of([kernel(flops=5 * 10**9, backward=1)])
    board = device(launch=1.0, backward=0.5, single_core=3.0)
    price = priced(Pricer("board", board), cost(work), link())
    assert price.compute_s == pytest.approx(2.5)
    assert price.energy.compute_j == pytest.approx(3.5)
    assert price.demand.compute_w * 2.5 == pytest.approx(3.5)
    assert priced(
        Pricer("board", device(launch=1.0, backward=0.5)), cost(work), link()
    ).energy.compute_j == pytest.approx(2 * 2.5)


def test_an_unknown_active_power_is_unknown_beside_a_known_one_core():
    """Part of the work needs it."""
    price = priced(Pricer("board", device(active=None, single_core=3.0)), cost(Work.of([kernel()])), link())
    assert price.energy.compute_j is None


def _broken_off_at(seconds):
    """The record of a job that is lost so many seconds after its dispatch.

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
    _, (record,) = history(plan_, [], chunks)
    return record


@pytest.mark.parametrize(
    ("seconds", "receive", "work", "transmit"),
    [
        # In the handshake: no byte, the radio's base power; its tail is not over.
        (0.5, (0.5, 0, 0, 0, 0.5, 0, 1), NOTHING, NOTHING),
        # Half of the bytes: 2 s x 1 W + 4 Mbit x 0.5.
        (2, (2, 500_000, 0, 0, 4, 0, 4), NOTHING, NOTHING),
        # A quarter of the work; the tail after the download is left open.
        (5, (3, 10**6, 0, 0, 7, 0, 6), (2, 0, 0, 25, 6, 0, 4), NOTHING),
        # Half of the upload; the tail after the download was over by then.
        (11.5, (3, 10**6, 0, 0, 7, 0, 6), (8, 0, 0, 100, 24, 2, 16), (0.5, 0, 500_000, 0, 1.5, 0, 1)),
    ],
)
def test_what_a_job_that_is_broken_off_has_cost(seconds, receive, work, transmit):
    """Each stage is charged as far as it went.

    In order: seconds, bytes down, bytes up, FLOPs, joules above idle, of the tail, at idle power.
    """
    record = _broken_off_at(seconds)
    assert record.ended.t_s == seconds
    assert record.receive == pytest.approx(receive)
    assert record.work == pytest.approx(work)
    assert record.transmit == pytest.approx(transmit)


@pytest.mark.parametrize("case", CASES)
def test_tails_by_hand(case):
    """A tail lasts until the client's next transfer, whatever job it is of, for 10 s at most."""
    rows, tails, total_j = case.told()
    of_jobs = [(row["work_tail_j"], row["earlier_tail_j"]) for row in rows]
    assert of_jobs == case.of_jobs
    assert tails.tolist() == case.settled
    assert total_j == sum(work_j + earlier_j for work_j, earlier_j in of_jobs) + case.settled[0][-1]
    assert total_j == sum(TAIL_W * (until_s - since_s) for since_s, until_s in case.drawn)


def test_a_tail_goes_on_while_a_job_that_downloads_nothing_works():
    """Uploads of 1 s end at 5 s and 10 s; the second begins at 9 s, 4 s after the first: 3 W x 4 s."""
    table = prices("train", 1, compute_s=4, up_s=1, tail_w=3, tail_s=30)
    _, _, rows, tails = told_all(plan([table], rounds=2))
    assert rows["earlier_tail_j"].tolist() == [0, 12]
    assert rows["work_tail_j"].tolist() == [0, 0]
    # At 10 s the run ends.
    assert not len(tails)


def test_tails_of_an_unknown_radio_are_unknown():
    """From the second job on, and at the end; before its first transfer a radio has no tail."""
    table = prices("train", 1, up_s=1, compute_s=1, radio_w=math.nan, tail_w=math.nan, idle_w=math.nan)
    _, needs, rows, tails = told_all(plan([table], rounds=2, until={"rounds": 2, "time": 100.0}))
    np.testing.assert_array_equal(rows["earlier_tail_j"], [0, math.nan])
    np.testing.assert_array_equal(rows["waiting_j"], [0, 0])
    assert np.isnan(tails["joules"]).all()
    assert (tails["client"].tolist(), tails["job"].tolist()) == ([0], [1])
    assert needs[-1].totals.energy == (None, 0, 1)


def test_waiting_by_hand():
    """Two clients arrive after 1 s and 4 s and are merged then: one waits for 3 s at 2 W."""
    table = prices("train", 2, compute_s=[1, 4], idle_w=2)
    rows = told_all(plan([table]))[2]
    assert rows["waiting_j"].tolist() == [6, 0]
    assert joules(rows).tolist() == [2, 8]
