"""Records, ledgers and errors."""

import math

import numpy as np
import pytest

from edgefl.core.event import JOB
from edgefl.core.params import Strict
from edgefl.world.ledger import Ledger


class Sample(Strict):
    """A record with one field of each kind."""

    count: int = 1
    rate: float = 0.5
    name: str = ""
    widths: tuple[int, ...] = ()
    pairs: tuple[tuple[float, float], ...] = ()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"count": "5"}, {"count": 5.0}, {"count": True}, {"rate": "0.5"}, {"rate": False}),
        *({"rate": math.nan}, {"rate": math.inf}, {"name": 5}, {"widths": "55"}, {"unknown": 1}),
    ],
)
def test_a_record_takes_no_lookalikes(wrong):
    with pytest.raises(ValueError, match="Sample"):
        Sample.model_validate(wrong)
    # What YAML writes: lists become tuples, also nested ones, and an integer is accepted as a rate.
    sample = Sample.model_validate({"rate": 1, "widths": [64, 32], "pairs": [[0, 1], [2, 3.5]]})
    assert (sample.rate, sample.widths, sample.pairs) == (1.0, (64, 32), ((0, 1), (2, 3.5)))


def _jobs(*rows):
    jobs = np.zeros(len(rows), dtype=JOB)
    for place, row in enumerate(rows):
        for name, value in zip(("client", "down_bytes", "up_bytes", "flops", "work_j"), row, strict=True):
            jobs[name][place] = value
    return jobs


def test_a_ledger_by_hand():
    """One energy is unknown, and its client's sum with it; what is only looked at is not added."""
    ledger = Ledger(5)
    assert ledger.totals(_jobs()[:0]) == (0, 0, 0, (None, 0, 0))
    assert ledger.spent()["joules"] is None
    ledger.add(_jobs((1, 100, 0, 70, 3.0), (2, 1, 2, 3, 0.5)))
    assert ledger.spent()["joules"] == 3.5
    ledger.add(_jobs((1, 30, 4, 0, math.nan)))
    assert ledger.totals(_jobs((4, 10, 0, 0, 2.0))) == (141, 6, 73, (2.5, 2, 3))
    assert ledger.totals(_jobs()[:0]) == (131, 6, 73, (0.5, 1, 2))
    assert list(ledger.spent().values()) == [3, 131, 6, 73, 0.0, 137, 0.5]
    ledger.spend(np.array([2, 2]), np.array([0.25, 0.25]))
    assert ledger.spent()["joules"] == 1.0
    ledger.spend(np.array([2]), np.array([math.nan]))
    assert ledger.spent()["joules"] is None
    # The operations of a large fleet exceed 64 bits.
    large = 2**62 + 1
    ledger.add(_jobs((0, 0, 0, large, 0.0), (1, 0, 0, large, 0.0)))
    assert ledger.totals(_jobs((0, 5, 0, large, 0.0)))[:3] == (136, 6, 3 * large + 73)
