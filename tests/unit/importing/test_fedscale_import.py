"""FedScale's traces as profiles."""

from contextlib import suppress
from itertools import pairwise, zip_longest

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from imported import BEHAVIOR, CAPACITY, fleet, pickled, record, rows

from edgefl.core.errors import UserError
from edgefl.importing import classes, import_traces
from edgefl.importing.fedscale import read


def test_capacity_is_a_relative_speed(tmp_path, monkeypatch):
    """Slowdowns are computation over the median's; kbit/s are 1000 bits both ways; the rest is assumed."""
    done = import_traces("fedscale", pickled(tmp_path, CAPACITY), tmp_path / "fast")
    assert [row["slowdown"] for row in rows(done)] == ["0.5", "1", "2"]
    of_users = [fleet(done, monkeypatch).links[row["link"]] for row in rows(done)]
    assert [(link.down.value, link.up.value) for link in of_users] == [
        (1e6, 1e6),
        (8_000_500.0, 8_000_500.0),
        (5e5, 5e5),
    ]
    for link in of_users:
        assert link.down.status == "derived"
        assert "SymbioticLab/FedScale" in link.down.source
        assert done.sources[0].sha256[:16] in link.down.source
        assert (link.latency.value, link.latency.status) == (0.07, "assumed")
        assert link.radio.status == "assumed"
    notes = record(done)["notes"]
    assert done.sources[0].sha256 in notes
    assert all(sentence in notes for sentence in (*done.read, *done.dropped))


@given(
    st.lists(st.tuples(st.floats(1, 1e9), st.floats(1e-9, 1e3)), min_size=1, max_size=60), st.integers(1, 9)
)
def test_classes_round_by_no_more_than_they_say(values, most):
    """At most so many classes, each user's within the rounding; none is rounded where all have their own."""
    given_ = np.array(values)
    found, of, rounding = classes(given_, most)
    assert len(found) <= most
    assert np.abs(found[of] / given_ - 1).max() <= rounding
    assert rounding == 0 or len(np.unique(given_, axis=0)) > most


def test_impossible_users_are_left_out_and_counted(tmp_path):
    """NaN, infinities, zeros and negative numbers make no client."""
    wrong = [float("nan"), float("inf"), 0, -1.0, 1e300]
    users = CAPACITY | {
        100 + place: {"computation": one, "communication": 10.0} for place, one in enumerate(wrong)
    }
    users |= {200 + place: {"computation": 9.0, "communication": one} for place, one in enumerate(wrong)}
    done = import_traces("fedscale", pickled(tmp_path, users), tmp_path / "fast")
    assert len(rows(done)) == len(CAPACITY)
    assert done.dropped == ("10 users without a possible speed and rate",)


users_of_a_trace = st.lists(
    st.tuples(
        st.lists(st.integers(-5, 110), max_size=6),
        st.lists(st.integers(-5, 110), max_size=6),
    ),
    min_size=1,
    max_size=4,
)


@example(traced=[([0, 10], [50, 20])], times=[5, 30, 60])
@example(traced=[([0, 50], [50, 60])], times=[50])
@given(users_of_a_trace, st.lists(st.integers(0, 99), min_size=1, max_size=20))
def test_availability_is_that_of_the_pairs(tmp_path_factory, traced, times):
    """A user is available if the time lies in one of its pairs; no two of which touch."""
    users = {
        number: {"active": active, "inactive": inactive, "finish_time": 100}
        for number, (active, inactive) in enumerate(traced)
    }
    try:
        found = read(pickled(tmp_path_factory.getbasetemp(), users)).columns["availability"]
    except UserError:
        found = [[] for _ in users]
    for own, (starts, ends) in zip(found, traced, strict=True):
        assert all(end < start for (_, end), (start, _) in pairwise(own))
        for now in times:
            expected = any(
                start <= now < end for start, end in zip_longest(starts, ends[: len(starts)], fillvalue=100)
            )
            assert any(start <= now < end for start, end in own) == expected


def test_availability_repeats_and_ends_jobs_at_their_end(tmp_path, monkeypatch):
    """finish_time is the period; a job counts if its client is there at its end."""
    done = import_traces("fedscale", pickled(tmp_path, BEHAVIOR), tmp_path / "there")
    read_back = fleet(done, monkeypatch)
    assert read_back.on_leave == "check-at-end"
    assert read_back.availability.repeat == 200
    assert read_back.users.dealt == "together"
    whose = [int(row["availability"]) for row in rows(done)]
    found = {(int(row["client"]), row["start_s"], row["end_s"]) for row in rows(done, "availability.csv")}
    first, second, never = whose
    assert never == 0
    assert found == {
        (first, "10.0", "20.0"),
        (first, "100.0", "130.0"),
        (second, "0.0", "60.0"),
        (second, "150.0", "200.0"),
    }
    assert "1 interval without an end: until the end of the period" in done.read
    assert "1 user never available" in done.read


def test_both_traces_make_one_profile(tmp_path, monkeypatch):
    """In either order; equal numbers do not say who is who, so columns are dealt independently."""
    users = [*CAPACITY.values(), CAPACITY[9], CAPACITY[7]]
    capacity = pickled(tmp_path, dict(enumerate(users, 1)), "capacity")
    behavior = pickled(tmp_path, BEHAVIOR, "behavior")
    one = import_traces("fedscale", [capacity, behavior], tmp_path / "one")
    two = import_traces("fedscale", [behavior, capacity], tmp_path / "two")
    assert one.dealt == two.dealt == "independently"
    assert fleet(one, monkeypatch).users.dealt == "independently"
    assert rows(one) == rows(two)
    assert [int(row["availability"]) for row in rows(one)] == [1, 2, 0, 1, 2]
    assert "the traces do not say which of their users are the same" in record(one)["notes"]


def test_a_sample_is_a_random_one(tmp_path):
    """``users`` takes so many at random, the same ones each time, and says so."""
    users = {number: {"computation": 1.0 + number, "communication": 9.0} for number in range(1000)}
    path = pickled(tmp_path, users)
    one, two = (import_traces("fedscale", path, tmp_path / name, users=100) for name in ("a", "b"))
    assert one.users == len(rows(one)) == 100
    assert rows(one) == rows(two)
    slow = [float(row["slowdown"]) for row in rows(one)]
    assert 0.8 < np.median(slow) < 1.2
    assert one.dropped[-1] == "900 users of fedscale-capacity: 100 were drawn at random"


values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
entries = st.fixed_dictionaries({"computation": values, "communication": values}) | st.fixed_dictionaries(
    {"active": values | st.lists(st.floats()), "inactive": st.lists(st.floats()), "finish_time": values}
)


@given(st.dictionaries(st.integers(0, 5) | st.text(max_size=2), entries | values, max_size=4))
def test_any_content_is_read_or_refused(tmp_path_factory, data):
    """Whatever users have, a trace comes of it or a UserError."""
    path = pickled(tmp_path_factory.getbasetemp(), data)
    with suppress(UserError):
        assert len(read(path)) > 0
