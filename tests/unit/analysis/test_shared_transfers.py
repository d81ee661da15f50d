"""What transfers on shared links, and on links that change, were bound by."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plans import plan, prices, with_server

from edgefl.analysis.explain.transfers import is_shared, transfers
from edgefl.planning.recorded import Recorded
from edgefl.world.blind import is_blind, sights

MB = 10**6


def split(busy_s, up_bytes, *, uplink=8e6, cell=-1):
    """What an upload of 1 MB behind a link of 8 Mbit/s with a handshake of 0.5 s was bound by."""
    table = [prices("train", 1, up_delay_s=0.5, up_bps=8e6, up_bytes=MB)]
    plan_ = with_server(plan(table), uplink=uplink)
    plan_ = replace(plan_, clients=replace(plan_.clients, cell=np.array([cell])))
    zero = np.zeros(1, dtype=np.int64)
    jobs = SimpleNamespace(
        client=zero, exchange=zero, transmit_s=np.array([busy_s]), up_bytes=np.array([up_bytes])
    )
    found = SimpleNamespace(jobs=jobs, clients=SimpleNamespace(kind=zero))
    parts = transfers(found, Recorded(plan_, {}, {}), zero, "up")
    return {name: pytest.approx(float(one[0])) for name, one in zip(parts._fields, parts, strict=True)}


@pytest.mark.parametrize(
    ("busy_s", "up_bytes", "settings", "parts"),
    [
        (4, MB, {}, {"latency": 0.5, "rate": 1, "sharing": 2.5}),
        (4, MB, {"uplink": None, "cell": 0}, {"latency": 0.5, "rate": 1, "sharing": 2.5}),
        # Two of three were repeats, as slow as the first.
        (12, 3 * MB, {}, {"latency": 0.5, "rate": 1, "sharing": 2.5, "repeats": 8}),
        # Broken off half-way, and in the handshake.
        (3, MB // 2, {}, {"latency": 0.5, "rate": 0.5, "sharing": 2}),
        (0.2, 0, {}, {"latency": 0.2}),
        # On a link of its own only repeats take longer.
        (4.5, 3 * MB, {"uplink": None}, {"latency": 0.5, "rate": 1, "repeats": 3}),
    ],
)
def test_what_others_add_is_sharing(busy_s, up_bytes, settings, parts):
    """1.5 s alone; what is longer is sharing, and repeats are told from it by their bytes."""
    alone = dict.fromkeys(("rate", "latency", "loss", "sharing", "repeats"), 0)
    assert alone | parts == split(busy_s, up_bytes, **settings)


def test_each_direction_is_shared_by_its_own_limit():
    """A server's downlink makes no upload a shared one; a run that shares a link is not blind to times."""
    plan_ = plan([prices("train", 1)])
    assert (list(sights(plan_)), is_blind(plan_)) == ([], True)
    limited = with_server(plan_, downlink=1e6)
    assert (is_shared(limited, "down").all(), is_shared(limited, "up").any()) == (True, False)
    both = with_server(plan_, uplink=1e6, downlink=1e6)
    assert (list(sights(both)), is_blind(both)) == (["server.uplink", "server.downlink"], False)
    home = replace(plan_, clients=replace(plan_.clients, cell=np.array([0]), cells=("home",)))
    assert list(sights(home)) == ["cells"]
