"""FedScale's completion times and rounds, on devices and links that are described as FedScale describes them.

FedScale takes 3 * batch * steps * (milliseconds to infer one sample) / 1000 seconds to train, three passes as
long as the forward one, and (upload + download) / bandwidth to communicate. Its default speeds are
lognormal(1, 0.6) times 5 ms. At the end, the batch times of FLASH's tiers.
"""

from __future__ import annotations

import alone
import pytest
from builders import build_method, build_net
from hardware import product
from plans import device as board
from plans import link

from edgefl.compute import meta
from edgefl.core.cost import GRAD_INPUT, GRAD_WEIGHT, Cost, Work
from edgefl.core.pricer import Pricer
from edgefl.planning.fleets import device

BATCH, STEPS = 16, 20
INFER_MS = 5.0
KBIT_PER_SECOND = 5_000
BYTES = 1_000_000


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
