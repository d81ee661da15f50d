"""Each thing that a merge's result depends on is compared, and told in words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plans import plan, prices, told

from edgefl.runs.recording import Differences
from edgefl.world.job import stacked
from edgefl.world.needs import Merge

CLIENTS = 6
PLAN = plan([prices("train", CLIENTS, down_s=1.0, compute_s=2.0, up_s=1.0, steps=4)], rounds=2)
LEARNING = SimpleNamespace(methods=())
DIFFERENCES = Differences(PLAN, PLAN, LEARNING)


@pytest.fixture(scope="module")
def merge():
    return [need for need in told(PLAN)[1] if isinstance(need, Merge)][1]


def _changed(rows, place, **values):
    rows = rows.copy()
    for name, value in values.items():
        rows[name][place] = value
    return rows


def _of(merge, rows, **others):
    return replace(merge, merged_rows=lambda: rows, **others)


def _found(was, now, late=None):
    none = was.rows[:0]
    return DIFFERENCES.of(was, now, (none, none) if late is None else late)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"exchange": "calibrate"}, "would have exchange calibrate instead of train"),
        ({"round": 4}, "would have round 4 instead of 1"),
        ({"correction": "mix"}, "would have correction mix instead of move"),
        ({"weights": (1.0,) * 5 + (2.0,)}, "would have client 5 with weight 2 instead of 1"),
        ({"scales": (0.5,) + (1.0,) * 5}, "would have client 0 with scale 0.5 instead of 1"),
        # What a job's result depends on.
        ({"version": 0}, "would have client 3 with version 0 instead of 1"),
        ({"steps": 2}, "would have client 3 with steps 2 instead of 4"),
        ({"nth": 2}, "would have client 3 with jobs done 2 instead of 1"),
    ],
)
def test_what_is_merged_and_how(merge, values, words):
    merge = replace(merge, weights=(1.0,) * CLIENTS)
    of_job = values.keys() <= {"version", "steps", "nth"}
    other = _of(merge, _changed(merge.rows, 3, **values)) if of_job else replace(merge, **values)
    assert _found(merge, other) == words


def test_late_work_whose_state_is_kept(merge):
    """Clients begin with the states that their late jobs wrote: which and in what order, but not when."""
    late, none = merge.rows[[1, 4]], merge.rows[:0]
    assert not _found(merge, merge, (late, late[::-1]))
    assert _found(merge, merge, (none, late)) == "would also come after late work of clients 1 and 4"
    assert _found(merge, merge, (late, none)) == "would not come after late work of clients 1 and 4"
    again = _changed(late, 1, steps=1)
    assert _found(merge, merge, (late, again)) == "would have client 4 with steps 1 instead of 4"
    twice = stacked([late, _changed(late[:1], 0, job=99, nth=2)])
    assert not _found(merge, merge, (twice, twice[np.array([2, 0, 1])]))
    assert DIFFERENCES.late(none, late) == "would also come after late work of clients 1 and 4"
