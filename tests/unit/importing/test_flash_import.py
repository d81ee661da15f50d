"""FLASH's traces as profiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imported import SPEEDS, STATES, fleet, record, rows, written

from edgefl.core.errors import UserError
from edgefl.core.units import parse
from edgefl.importing import import_traces
from edgefl.importing.flash import CONDITIONS, read

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
        read(tmp_path / "trace.json", "locked,wify")


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
        (spans,) = read(path, ",".join(ready)).columns["availability"]
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


@pytest.mark.parametrize(
    "content", [b"", b"[" * 100_000, b'{"a": ' * 50_000, b'{"a": 1' + b"0" * 5000 + b"}", b"\xff\xfe{}"]
)
def test_what_is_no_json_or_nested_or_long_beyond_measure_is_refused(tmp_path, content):
    (tmp_path / "garbage.json").write_bytes(content)
    with pytest.raises(UserError):
        read(tmp_path / "garbage.json", None)
