"""Who a run waited for, on timelines that a reader can check on paper."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plans import plan, prices

from edgefl.analysis.timeline import Jobs
from edgefl.analysis.usage import ENDINGS
from edgefl.analysis.waiting import waited
from edgefl.core import catalogue
from edgefl.core.cost import Trace, Work
from edgefl.core.event import Kind
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.runs.callbacks import Callbacks
from edgefl.runs.execute import Run
from edgefl.store import Store


def three(**changes):
    """c0, a "fast" device, is back after 1 + 2 + 1 = 4 s; two "slow" ones have a slowdown of 1.5.

    c1 takes 1 + 2 x 1.5 + 2 = 6 s, c2 2 + 4 x 1.5 + 1 = 9 s.
    """
    found = plan(
        [prices("train", 3, down_s=[1, 1, 2], compute_s=[2, 2, 4], up_s=[1, 2, 1])],
        slowdown=[1, 1.5, 1.5],
        **changes,
    )
    clients = replace(found.clients, device=np.array([0, 1, 1]), devices=("fast", "slow"))
    return replace(found, clients=clients)


def clocked(plan_):
    """(clients, devices) that a plan's run waited for."""
    trace = Trace("train", {}, {}, Work(), (), Work(), {}, 0)
    priced = replace(plan_, prices=tuple(replace(one, traces=(trace,)) for one in plan_.prices))
    store = Store.in_memory()
    store.set_meta({})
    store.write_plan(priced, {}, [0] * len(plan_.clients))
    run = Run(priced, store, None, Callbacks())
    run.to_end()
    found = waited(store.reader())
    store.abandon()
    return found


def of_jobs(*jobs, steps=0):
    """What is waited for in jobs (client, version, start, end, seconds of work), without links.

    c0 is a "fast" device, c1 and c2 are "slow" ones; version -1 is of a lost job. A step takes 2 s;
    a kind's price is of ``steps`` and 6 s.
    """
    fleet = {"kind": np.array([0, 1, 1]), "slowdown": np.ones(3)}
    client, version, start_s, end_s, work_s = map(np.array, zip(*jobs, strict=True))
    zeros = np.zeros(len(jobs), dtype=np.int64)
    columns = Jobs(
        client=client,
        place=zeros,
        version=zeros,
        into=version,
        steps=work_s.astype(np.int64) // 2,
        down_bytes=zeros,
        up_bytes=zeros,
        flops=zeros,
        ending=np.where(version < 0, ENDINGS.index(Kind.LOST), ENDINGS.index(Kind.MERGED)),
        dispatched_s=start_s,
        received_s=start_s,
        worked_s=end_s,
        arrived_s=end_s,
        ended_s=end_s,
        receive_s=zeros * 0.0,
        work_s=work_s,
        transmit_s=zeros * 0.0,
        full_power_s=work_s,
    )
    reader = SimpleNamespace(
        arrays=lambda *_, **__: fleet,
        rows=lambda _: [{"kind": 0, "device": "fast"}, {"kind": 1, "device": "slow"}],
        query=lambda _: [{"place": 0, "kind": kind, "work_s": 6.0, "steps": steps} for kind in (0, 1)],
    )
    clients, _ = waited(reader, columns)
    return [(one.client, one.lost) for one in clients]


def parts(lost):
    return pytest.approx([lost.link_s, lost.compute_s, lost.slowdown_s, lost.jitter_s, lost.away_s])


def test_a_client_costs_the_time_after_the_last_of_the_others():
    """Without c2 each of two rounds ends at 6 s instead of 9; c0 waits for 5 s of 9, c1 for 3.

    c2 is above the others' means in link (3 s and 2.5), computing (4 and 2) and slowdown (2 and 0.5): by 0.5,
    2 and 1.5 s, which are an eighth, a half and three eighths of 4.
    """
    (client,), _ = clocked(three(rounds=2))
    assert (client.client, client.device, client.slowdown) == (2, "slow", 1.5)
    assert (client.lost.merges, client.lost.lost_s) == (2, 6)
    assert parts(client.lost) == [0.75, 3, 2.25, 0, 0]
    assert client.lost.others_idle == pytest.approx(8 / 18)


def test_a_device_costs_the_time_after_the_last_other_device():
    """Without the two slow ones a round ends at 4 s; c2 is 1, 2 and 2 s above c0."""
    _, (device,) = clocked(three())
    assert (device.device, device.clients, device.lost.merges, device.lost.lost_s) == ("slow", 2, 1, 5)
    assert parts(device.lost) == [1, 2, 2, 0, 0]
    assert device.lost.others_idle == pytest.approx(5 / 9)


def test_jitter_is_what_chance_adds():
    """Every job takes twice as long: 4 + 6 + 1 and 1 + 6 + 2 s and, at last, 2 + 12 + 1 = 15 s for c2.

    c2's jitter is 6 s, the others' 2 and 3.
    """
    (client,), _ = clocked(three(jitter=Fixed(value=2)))
    assert client.lost.lost_s == 6
    over = np.array([3 - 2.5, 4 - 2, 2 - 0.5, 6 - 2.5, 0])
    assert parts(client.lost) == (6 * over / over.sum()).tolist()


def test_a_job_that_times_out_was_waited_for_until_then():
    """c2 is given up at 7 s, after 2 s of receiving and 5 of its 6 s of work."""
    (client,), _ = clocked(three(failures={"timeout": "7 s"}))
    assert (client.client, client.lost.merges) == (2, 1)
    assert client.lost.lost_s == pytest.approx(1)
    over = np.array([0, 5 / 1.5 - 2, 5 - 5 / 1.5 - 0.5, 0, 0])
    assert parts(client.lost) == (over / over.sum()).tolist()


def test_an_asynchronous_server_waits_for_nobody():
    """Uploads of one dispatch go into several merges."""
    params = catalogue.load("policies", "fedasync").Params()
    assert clocked(three(rounds=6, policy="fedasync", params=params)) == ([], [])


def test_a_merge_of_several_dispatches_waits_for_nobody():
    """Two dispatches of two jobs each, which end together; alone, each would have had to wait."""
    both = [(0, 1, 0.0, 4.0, 4.0), (1, 1, 0.0, 6.0, 6.0), (0, 1, 5.0, 7.0, 2.0), (2, 1, 5.0, 9.0, 4.0)]
    assert of_jobs(*both) == []
    assert [client for client, _ in of_jobs(*both[:2])] == [1]


def test_what_is_lost_after_a_merge_was_not_waited_for():
    """c2 is given up at 8 s; c0 and c1 were merged at 6."""
    ((client, lost),) = of_jobs((0, 1, 0.0, 4.0, 4.0), (1, 1, 0.0, 6.0, 6.0), (2, -1, 0.0, 8.0, 8.0))
    assert (client, lost.lost_s) == (1, 2)


def test_a_job_of_fewer_steps_has_less_work():
    """c0's 2 of 3 steps are 4 s of the kind's 6; that c1 takes longer is its third step, and no jitter."""
    ((_, lost),) = of_jobs((0, 1, 0.0, 4.0, 4.0), (1, 1, 0.0, 6.0, 6.0), steps=3)
    assert parts(lost) == [0, 2, 0, 0, 0]


def test_equal_clients_cost_nothing():
    """Without any one of them a round takes as long."""
    assert clocked(plan([prices("train", 3, compute_s=2)])) == ([], [])
