"""What transfers on shared links take at other prices, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from plans import prices

from edgefl.analysis.repricing import Repriced, priceable
from edgefl.core.event import JOB

MB = 10**6


def repriced(busy_s, up_bytes, up_bps, *, shared=True):
    """An upload that took so long, at another rate: of 1 MB, behind 8 Mbit/s and a handshake of 0.5 s."""
    rows = np.zeros(1, dtype=JOB)
    rows["transmit_s"], rows["arrived_s"], rows["up_bytes"] = busy_s, busy_s, up_bytes
    rest = {"up_delay_s": 0.5, "up_bytes": MB, "transmit_j_per_mbit": 1}
    before, after = ((prices("train", 1, up_bps=bps, **rest),) for bps in (8e6, up_bps))
    return Repriced(priceable(rows, np.zeros(1, dtype=np.int64)), before, after, blind=False, shared=shared)


@pytest.mark.parametrize(
    ("busy_s", "up_bytes", "up_bps", "taken_s"),
    [
        # 1.5 s alone, and 2.5 with half of the rate or 1 with twice as much.
        (1.5, MB, 4e6, 2.5),
        (4, MB, 4e6, 5),
        (4, MB, 16e6, 3.5),
        (4, MB, 8e6, 4),
        # Sent three times.
        (12, 3 * MB, 4e6, 15),
        # Broken off in the handshake: nothing is known of it.
        (0.2, 0, 4e6, 0.2),
    ],
)
def test_what_sharing_added_stays(busy_s, up_bytes, up_bps, taken_s):
    """Only what the transfer takes alone on its own link is longer or shorter, by its ratio there."""
    assert repriced(busy_s, up_bytes, up_bps).took_s()[0] == pytest.approx(taken_s)
    assert repriced(1.5, MB, 4e6, shared=False).took_s()[0] == pytest.approx(2.5)


def test_bytes_of_a_transfer_under_way_go_by_its_time():
    """Of 8 Mbit in 4 s, 4 until half of the time, at 1 J each; alone all would have been through."""
    assert repriced(4, MB, 8e6).joules(2.0) == pytest.approx(4)
    assert repriced(4, MB, 8e6, shared=False).joules(2.0) == pytest.approx(8)
    assert repriced(4, MB, 8e6).joules(4.0) == pytest.approx(8)
