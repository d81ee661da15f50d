"""Laws of needs that exist only because a run is ending."""

from dataclasses import replace

import numpy as np
import pytest
from fleets import AVAILABILITY, fleets, only
from hypothesis import given
from hypothesis import strategies as st
from plans import facts, plan, prices

from edgefl.core.errors import RunError
from edgefl.world.driver import simulate
from edgefl.world.job import LIVE
from edgefl.world.needs import Feedback, Merge

# Clients that charge have hours to go.
THERE = only(AVAILABILITY, *(name for name in AVAILABILITY if name != "charging"))
MOST_NEEDS = 200


def answer(need):
    """Losses are a function of the job, accuracies of the version."""
    if isinstance(need, Merge):
        return Feedback({job.id: {"loss": 1 / (1 + job.id % 7)} for job in need.merged})
    return Feedback(scores={"global": need.version * 37 % 101 / 100})


def run(plan_):
    """A plan's needs, each with all that was told by then: its facts, the server's events, and the jobs."""
    events, chunks, told, feedback = [], [np.zeros(0, dtype=LIVE)], [], None
    world = simulate(plan_, events.append, chunks.append)
    try:
        while len(told) < MOST_NEEDS:
            need = world.send(feedback)
            jobs = np.concatenate(chunks)
            jobs = jobs[np.argsort(jobs["job"])].tobytes()
            told.append((need, (type(need), need.regular, facts(need), len(events), jobs)))
            feedback = answer(need)
    except (StopIteration, RunError):
        pass
    finally:
        world.close()
    return told, events


def with_until(plan_, until):
    """The plan with other limits."""
    server = plan_.scenario.server.model_copy(update={"until": until})
    return replace(plan_, scenario=plan_.scenario.model_copy(update={"server": server}))


@st.composite
def raised(draw):
    """A plan, and the same plan with some limits larger or removed; it has rounds left as a limit."""
    plan_ = draw(fleets(availability=THERE))
    until = plan_.scenario.server.until.model_copy(
        update={"accuracy": draw(st.none() | st.floats(0.05, 0.95))}
    )
    larger = {"rounds": until.rounds + draw(st.integers(0, 8))}
    for name in ("time", "bytes", "energy", "accuracy"):
        limit = getattr(until, name)
        if limit is not None:
            more = (limit + 1) / 2 if name == "accuracy" else limit * 3
            larger[name] = draw(st.sampled_from([limit, more, None]))
    return with_until(plan_, until), with_until(plan_, until.model_copy(update=larger))


@given(raised())
def test_a_run_with_larger_limits_begins_the_same_up_to_the_last_regular_need(plans):
    """Its needs, events and jobs are equal to the bit, under every policy and selector."""
    (before, events), (after, others) = (run(plan_) for plan_ in plans)
    count = max((place for place, (need, _) in enumerate(before, 1) if need.regular), default=0)
    assert [facts_ for _, facts_ in before[:count]] == [facts_ for _, facts_ in after[:count]]
    told = before[count - 1][1][3] if count else 0
    assert events[:told] == others[:told]


def letters(table, **given_):
    """What a plan's needs are: M or E, in lower case where they are not regular."""
    needs = [need for need, _ in run(plan(table, **given_))[0]]
    found = [("M" if isinstance(need, Merge) else "E", need.regular) for need in needs]
    return "".join(letter if regular else letter.lower() for letter, regular in found)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"rounds": 4, "every": 2}, "MMEMME"),
        ({"rounds": 3, "every": 2}, "MMEMe"),
        ({"until": {"time": 3.5}, "every": 1}, "MEMEME"),
        ({"until": {"time": 3.5}, "every": 2}, "MMEMe"),
        ({"until": {"bytes": 5}, "every": 2}, "MMEMe"),
        ({"until": {"energy": 5}, "every": 2}, "MMEMe"),
        ({"until": {"rounds": 9, "accuracy": 0.7}, "every": 2}, "MME"),
        ({"until": {"rounds": 3, "accuracy": 0.1}, "every": 2}, "MME"),
    ],
)
def test_an_evaluation_out_of_turn_is_not_regular(given_, expected):
    """One client takes a second, two bytes and two joules a round; the second version's accuracy is 0.74."""
    table = [prices("train", 1, compute_s=1.0, down_bytes=1, up_bytes=1, compute_w=2.0)]
    assert letters(table, **given_) == expected


def test_exchanges_at_the_end_are_not_regular():
    """Neither their merges nor the evaluation after them; the last round's own evaluation is."""
    table = [
        prices("announce", 1, at="start", compute_s=1.0),
        prices("train", 1, compute_s=1.0),
        prices("calibrate", 1, at="end", compute_s=1.0),
    ]
    assert letters(table, rounds=2) == "MMEMEme"
