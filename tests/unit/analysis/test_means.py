"""A figure over seeds, by hand; see laws/test_repetition_laws.py for intervals and differences."""

import pytest

from edgefl.analysis.values import NOT_REACHED, Value, over_seeds
from edgefl.core.corners import Interval

# Half of Student's 95% interval, in standard deviations: of two values, and of three.
TWO, THREE = 12.7062047 / 2**0.5, 4.3026527 / 3**0.5
BOUNDED = Value(10.0, Interval(5.0, 30.0))
SOME = Value.over_clients(10.0, 19, 20, Interval(5.0, 30.0))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None], None),
        ([], None),
        ([BOUNDED], BOUNDED),
        ([NOT_REACHED], NOT_REACHED),
        ([Value(1.0), Value(2.0), Value(3.0)], Value(2.0, half=pytest.approx(THREE), runs=3, of=3)),
        ([BOUNDED] * 2, Value(10.0, Interval(5.0, 30.0), 0.0, 2, 2)),
        # Bounds are those of all, or none; one that is open above leaves the mean open.
        ([BOUNDED, Value(10.0)], Value(10.0, None, 0.0, 2, 2)),
        ([BOUNDED, Value(10.0, Interval(7.0, None))], Value(10.0, Interval(6.0, None), 0.0, 2, 2)),
        # Means are of the runs that have the figure.
        ([Value(1.0), None, Value(3.0)], Value(2.0, half=pytest.approx(TWO * 2**0.5), runs=2, of=3)),
        ([Value(1.0), NOT_REACHED], Value(1.0, runs=1, of=2)),
        ([NOT_REACHED, NOT_REACHED], Value(None, runs=0, of=2, reached=False)),
        ([NOT_REACHED, Value(1.0)], Value(1.0, runs=1, of=2)),
        ([None, Value(5.0)], Value(5.0, runs=1, of=2)),
        # Shares are of the mean whole.
        ([Value(1.0, whole=10.0), Value(1.0, whole=30.0)], Value(1.0, half=0.0, runs=2, of=2, whole=20.0)),
        # A sum over some clients is none over all; what is known of it stays apart.
        (
            [SOME, Value.over_clients(20.0, 17, 18, Interval(15.0, 50.0))],
            Value(None, Interval(10.0, 40.0), None, 0, 2, part=15.0, known=(17, 19), clients=(18, 20)),
        ),
        ([SOME, Value(20.0)], Value(20.0, None, None, 1, 2, part=10.0, known=(19, 19), clients=(20, 20))),
    ],
)
def test_the_mean_over_runs(values, expected):
    assert over_seeds(values) == expected


def test_a_sum_over_clients():
    assert Value.over_clients(3.0, 2, 2) == Value(3.0)
    assert Value(None, Interval(5.0, 30.0), part=10.0, known=(19, 19), clients=(20, 20)) == SOME
    assert Value.over_clients(None, 0, 2, None).part is None
    assert Value.over_clients(None, 0, 0, None) is None
