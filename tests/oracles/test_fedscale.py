"""FedScale's completion times and rounds, on devices and links that are described as FedScale describes them.

FedScale takes 3 * batch * steps * (milliseconds to infer one sample) / 1000 seconds to train, three passes as
long as the forward one, and (upload + download) / bandwidth to communicate. Its default speeds are
lognormal(1, 0.6) times 5 ms. At the end, the batch times of FLASH's tiers.
"""

from __future__ import annotations

import alone
import numpy as np
import pytest
from builders import build_method, build_net
from hardware import product
from plans import device as board
from plans import link, plan, played, prices

from edgefl.compute import meta
from edgefl.core.cost import GRAD_INPUT, GRAD_WEIGHT, Cost, Work
from edgefl.core.draws import key, uniforms
from edgefl.core.pricer import Pricer
from edgefl.core.samplers.lognormal import Params as LogNormal
from edgefl.planning.fleets import device
from edgefl.world.needs import Merge
from edgefl.world.policies.overselect import Params as Overselect

BATCH, STEPS = 16, 20
INFER_MS = 5.0
KBIT_PER_SECOND = 5_000
BYTES = 1_000_000
CLIENTS = 50


def priced():
    """One job on a device that infers a sample in 5 ms, behind a link without round trips.

    At 5 GFLOP/s these are 25 MFLOP a pass: two for each of 12.5 million weights.
    """
    forward = product(BATCH, 5000, 2500)
    work = Work.of([forward, *(forward._replace(role=role) for role in (GRAD_INPUT, GRAD_WEIGHT))])
    rate = KBIT_PER_SECOND * 1000
    job = Cost(down={"body": BYTES}, up={"body": BYTES}, steps=((work, STEPS),))
    return alone.priced(Pricer("board", board(launch=0)), job, link(down=rate, up=rate, latency=0))


def completion_s(infer_ms: float) -> float:
    """FedScale's formula."""
    kbits = 8 * BYTES / 1000
    return 3 * BATCH * STEPS * infer_ms / 1000 + (kbits + kbits) / KBIT_PER_SECOND


def test_one_client():
    """3 * 16 * 20 * 5 ms and 16 Mbit at 5 Mbit/s: 4.8 s and 3.2 s."""
    price = priced()
    assert (price.compute_s, price.down_s + price.up_s) == pytest.approx((4.8, 3.2))
    assert price.seconds == pytest.approx(completion_s(INFER_MS)) == pytest.approx(8.0)


def of_a_round(sampled, seconds, needed):
    """Which of the sampled clients FedScale merges, and how long its round takes.

    Those with the lowest completion times; of equal times, who was sampled first
    (``Aggregator.tictak_client_tasks``, whose clients are all active here).
    """
    ranked = sorted(range(len(sampled)), key=lambda place: seconds[sampled[place]])[:needed]
    return sorted(sampled[place] for place in ranked), seconds[sampled[ranked[-1]]]


@pytest.mark.parametrize(("participants", "ties"), [(3, False), (20, True)])
def test_over_commitment(participants, ties):
    """Rounds sample int(1.3 x participants) clients, merge whom FedScale would, and last as long as there.

    With ties, speeds are multiples of a half, so that many clients take equally long.
    """
    rounds, price = 25, priced()
    speeds = LogNormal(mu=1, sigma=0.6).draw(uniforms(key(3, "slowdown"), np.arange(CLIENTS)))
    speeds = np.ceil(2 * speeds) / 2 if ties else speeds
    seconds = [completion_s(INFER_MS * speed) for speed in speeds]
    table = prices("train", CLIENTS, down_s=price.down_s, compute_s=price.compute_s, up_s=price.up_s)
    params = Overselect(factor=1.3)
    plan_ = plan(
        [table],
        rounds=rounds,
        participants=participants,
        slowdown=speeds,
        policy="overselect",
        params=params,
    )
    _, needs, jobs = played(plan_)
    asked: dict[int, list[int]] = {}
    for record in jobs:
        asked.setdefault(record.job.round, []).append(record.job.client)
    merges = [need for need in needs if isinstance(need, Merge)]
    assert len(merges) == rounds
    start_s = 0.0
    for need in merges:
        sampled = sorted(asked[need.round])
        assert len(sampled) == int(participants * 1.3)
        merged, lasts_s = of_a_round(sampled, seconds, participants)
        assert [job.client for job in need.merged] == merged
        assert need.t_s - start_s == pytest.approx(lasts_s, rel=1e-12, abs=1e-9)
        start_s = need.t_s


@pytest.mark.parametrize(("tier", "milliseconds"), [("low", 1642), ("mid", 588), ("high", 179)])
def test_flashs_tiers(tier, milliseconds):
    """A batch of FLASH's FEMNIST network takes each phone within 2% of what was measured.

    PKU-Chengxu/FLASH, ``device_util.py``. The network is LEAF's: 32 and 64 channels, 2,048 hidden units, 62
    classes on 28x28 pixels; a batch is taken as 10 samples.
    """
    net = build_net("cnn2", (1, 28, 28), 62, channels=(32, 64), hidden=2048, padding="same")
    (exchange,) = (method := build_method("fedavg", net)).exchanges
    work = meta.trace(method, exchange, net, [[{10: 1}]]).phases[0].steps[10]
    name = f"phone-{tier}"
    found = Pricer(name, device(name)).time(Cost(steps=((work, 1),)))
    assert 1000 * found.seconds == pytest.approx(milliseconds, rel=0.02)
