"""FLASH's traces as profiles."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imported import SPEEDS, STATES, fleet, record, rows, written

from edgefl.core.errors import UserError
from edgefl.core.units import parse
from edgefl.importing import import_traces
from edgefl.importing.flash import CONDITIONS, conditions_of, read

HOUR_S = 3600.0


def test_ready_is_locked_on_wifi_and_charging(tmp_path, monkeypatch):
    """By default; 0 s is the first day's midnight, the period is whole days, and jobs pause."""
    done = import_traces("flash", written(tmp_path, STATES), tmp_path / "phones")
    read_back = fleet(done, monkeypatch)
    assert read_back.on_leave == "pause"
    assert read_back.availability.repeat == 2 * 24 * HOUR_S
    (first, second) = (int(row["availability"]) for row in rows(done))
    found = [tuple(map(float, row.values())) for row in rows(done, "availability.csv")]
    assert found == [(first, 23 * HOUR_S, 30 * HOUR_S), (first, 31 * HOUR_S, 32 * HOUR_S)]
    assert second < first
    assert set(done.dropped) == {"1 message of another state or time", "the model of each phone"}
    assert any(sentence.startswith("ready means: locked, wifi, charged") for sentence in done.read)


def test_what_is_ready_can_be_chosen(tmp_path):
    """Locked alone holds from the first lock; who is still locked at the last message is so until then."""
    done = import_traces("flash", written(tmp_path, STATES), tmp_path / "phones", ready="LOCKED")
    found = {(float(row["start_s"]), float(row["end_s"])) for row in rows(done, "availability.csv")}
    assert found == {(23 * HOUR_S, 30 * HOUR_S), (31 * HOUR_S, 32 * HOUR_S), (24 * HOUR_S, 26 * HOUR_S)}
    with pytest.raises(UserError, match="unknown condition 'wify'"):
        conditions_of("locked,wify")


def test_the_hosts_time_zone_does_not_matter(tmp_path, monkeypatch):
    """Times are a wall clock's: over the night in which the host's clock is changed, too."""
    night = "2020-03-28 22:00:00\tscreen_lock\n2020-03-29 06:00:00\tscreen_unlock\n"
    path = written(tmp_path, {"0": {"guid": "a", "model": "P", "messages": night}})
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    found = read(path, ["locked"]).columns["availability"]
    monkeypatch.undo()
    time.tzset()
    assert found == [[(22 * HOUR_S, 30 * HOUR_S)]]


SAYS = {
    "battery_charged_on": {"charged": True},
    "battery_charged_off": {"charged": False},
    "screen_lock": {"locked": True},
    "screen_unlock": {"locked": False},
    "screen_on": {"screen-off": False},
    "screen_off": {"screen-off": True},
    "wifi": {"wifi": True, "online": True},
    "4g": {"wifi": False, "online": True},
    "unknown": {"wifi": False, "online": False},
    "55%": {},
}


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 23), st.sampled_from(sorted(SAYS))), min_size=2, max_size=25), st.data()
)
def test_readiness_is_the_conjunction_of_what_was_said_last(tmp_path_factory, said, data):
    """At each hour a phone is available if the last that it said of each is true, in any order."""
    said = sorted(said, key=lambda message: message[0])
    ready = data.draw(st.sets(st.sampled_from(CONDITIONS), min_size=1))
    hours = data.draw(st.permutations(range(24)))
    told = sorted(said, key=lambda message: hours.index(message[0]))
    messages = "\n".join(f"2020-02-03 {hour:02d}:00:00\t{state}" for hour, state in told)
    path = written(tmp_path_factory.getbasetemp(), {"0": {"guid": "a", "messages": messages}})
    try:
        (spans,) = read(path, sorted(ready)).columns["availability"]
    except UserError:
        spans = []
    last_hour = said[-1][0]
    for hour in range(24):
        known = {key: now for when, state in said if when <= hour for key, now in SAYS[state].items()}
        expected = hour < last_hour and all(known.get(one, False) for one in ready)
        assert any(start <= hour * HOUR_S < end for start, end in spans) == expected


def test_each_user_has_the_link_of_its_means(tmp_path, monkeypatch):
    """A kB/s is 8000 bit/s; the spread is dropped, and the profile says so."""
    done = import_traces("flash", written(tmp_path, SPEEDS), tmp_path / "wifi")
    links = fleet(done, monkeypatch).links
    rates = [(links[row["link"]].down.value, links[row["link"]].up.value) for row in rows(done)]
    assert rates == [(16e6, 8e6), (2e6, 1e6)]
    assert all(one.latency.value == 0.005 and one.latency.status == "assumed" for one in links.values())
    assert "coefficients of variation of 0.12 down and 0.15 up" in done.dropped[0]
    assert done.dropped[0] in record(done)["notes"]
    assert "licence of its data is not stated" in record(done)["notes"]


def test_states_and_speeds_of_the_same_users_stay_together(tmp_path):
    """Users are joined by guid, others are dropped and counted; strangers are dealt on their own."""
    states, speeds = written(tmp_path, STATES, "states"), written(tmp_path, SPEEDS, "speeds")
    both = [speeds, states]
    done = import_traces("flash", both, tmp_path / "one", ready="locked")
    assert (done.dealt, record(done)["users"]["dealt"]) == ("together", "together")
    (row,) = rows(done)
    assert parse(record(done)["links"][row["link"]]["down"]["value"], "bit rate") == 16e6
    assert [row["start_s"] for row in rows(done, "availability.csv")] == [str(24 * HOUR_S)]
    told = "1 user of flash-speeds not in flash-states", "1 user of flash-states not in flash-speeds"
    assert set(told) <= set(done.dropped)
    strangers = written(tmp_path, {"q": SPEEDS["z"]}, "strangers")
    assert import_traces("flash", [strangers, states], tmp_path / "three").dealt == "independently"


def test_messages_that_cannot_be_read_are_counted(tmp_path):
    """Unknown states and times are left out and counted; so are users who say nothing."""
    odd = (
        "2020-02-03 01:00:00\tscreen_lock\n"
        "yesterday\twifi\n"
        "2020-02-03 02:00:00+01:00\twifi\n"
        "2020-02-03 03:00:00\tflying\n"
        "no tab\n"
        "2020-02-03 04:00:00\tscreen_unlock\n"
    )
    users = {"0": {"guid": "a", "messages": odd}, "1": {"guid": "b", "messages": ""}}
    done = import_traces("flash", written(tmp_path, users), tmp_path / "phones", ready="locked")
    assert "4 messages of another state or time" in done.dropped
    assert "1 user without messages of two times" in done.dropped
    assert len(rows(done)) == 1


WRONG = {
    "another file": {"0": {"speed": 1}},
    "messages that are no text": {"0": {"guid": "a", "messages": 5}},
    "only one time": {"0": {"guid": "a", "messages": "2020-02-03 01:00:00\twifi"}},
    "nobody ready": {"0": STATES["1"]},
    "a rate that is a text": {"a": SPEEDS["z"] | {"up_u": "5"}},
    "a rate that is not a number": {"a": SPEEDS["z"] | {"up_sigma": float("nan")}},
    "a user that is no object": {"0": 5},
    "a huge rate": {"a": SPEEDS["z"] | {"up_u": 10**400}},
    "a user without a rate": SPEEDS | {"a": {"down_u": 1}},
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_wrong_content_is_named(data, tmp_path):
    path = written(tmp_path, data)
    with pytest.raises(UserError) as raised:
        read(path, ["locked", "wifi", "charged"])
    assert str(path) in str(raised.value)
    if data == WRONG["another file"]:
        assert "must have guid, messages, or down_u" in str(raised.value)
        assert "got speed" in str(raised.value)


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b'{"a": ' * 50_000, b'{"a": 1' + b"0" * 5000 + b"}", b"\xff\xfe{}"]
)
def test_what_is_no_json_or_nested_or_long_beyond_measure_is_refused(tmp_path, content):
    (tmp_path / "garbage.json").write_bytes(content)
    with pytest.raises(UserError):
        read(tmp_path / "garbage.json", ["wifi"])
