"""Availability: the laws of each model, and that a lookup depends on nothing but client and time."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightly import sampled
from plans import PHONE, plan, prices, sourced

from edgefl.core.availability import DAY_S, HOUR_S
from edgefl.core.availability.always import Params as Always
from edgefl.core.availability.by_data import Params as ByData
from edgefl.core.availability.charging import Params as Charging
from edgefl.core.availability.diurnal import Params as Diurnal
from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.availability.lognormal import Params as Lognormal
from edgefl.core.availability.markov import Params as Markov
from edgefl.core.devices import Battery
from edgefl.core.errors import UserError

MANY = 100_000


# Of four devices: one of which nothing is known, one on mains, and two with numbers of their own.
NUMBERS = (
    {"capacity": "5 Wh", "charge_power": "3 W", "cut_off": 0.5},
    {"capacity": "10 Wh", "charge_power": "2 W", "charge_efficiency": 0.8, "cut_off": 0.1},
)
OWN = (Battery.model_validate({key: sourced(value) for key, value in each.items()}) for each in NUMBERS)
BATTERIES = (PHONE, None, *OWN)


def people(count, samples=None, **columns):
    clients = plan([prices("train", count)], **columns).clients
    return clients if samples is None else replace(clients, samples=np.array(samples, dtype=np.int64))


def share_at(law, hours, count=MANY, samples=None):
    table = law.timetable(people(count, samples), 1)
    return table.at(np.arange(count), np.full(count, hours * HOUR_S)).available.mean()


MARKOV = Markov.model_validate({"on": "20 min", "off": "40 min"})
ROWS = "0,0,60 0,90,3600 1,5,7 3,1,86000.5"
MODELS = {
    "always": Always(),
    "markov": MARKOV,
    "rare": Markov.model_validate({"on": "2 s", "off": "30 h"}),
    "diurnal": Diurnal(zones=(-8.0, 0.0, 5.5), start=3.25),
    "mixed": Diurnal(sigma=0.7),
    "by-data": ByData(power=0.5),
    "less-data": ByData(power=-1.0, highest=0.8),
    "lognormal": Lognormal(),
    "charging": Charging(zones=(-8.0, 5.5), start=17.0),
    "slow charger": Charging.model_validate({"charger": "0.9 W", "minimum": 0.4, "initial": [0.0, 0.5]}),
    "sometimes": Charging(days=0.2, spread=6.0, hours=20.0),
    "own": Charging.model_validate({"capacity": "6 Wh", "charger": "3 W", "minimum": 0.3}),
    "intervals": Intervals(rows=ROWS),
    "repeated": Intervals.model_validate({"rows": ROWS, "repeat": "24 h"}),
}
CLIENTS = 12
DEVICE = np.arange(CLIENTS) % 4
MAINS = DEVICE == 1
model = st.sampled_from(sorted(MODELS))
time = st.floats(0, 30 * DAY_S)


def timetable(name, root=3, law=None):
    """A model's timetable for a few clients of 10, 20 ... samples, on four devices."""
    columns = {"device": DEVICE, "batteries": BATTERIES, "throttling": (None,) * 4}
    return (law or MODELS[name]).timetable(people(CLIENTS, range(10, 130, 10), **columns), root)


def ask(table, client, t_s):
    available, until = table.at(np.array([client]), np.array([t_s]))
    return bool(available[0]), float(until[0])


@given(model, st.integers(0, CLIENTS - 1), time, st.floats(0, 1))
def test_an_answer_holds_until_it_says(name, client, t_s, share):
    table = timetable(name)
    available, until = ask(table, client, t_s)
    assert until > t_s
    inside = min(t_s + share * (min(until, 40 * DAY_S) - t_s), math.nextafter(until, 0))
    assert ask(table, client, max(t_s, inside)) == (available, until)
    if until < math.inf:
        assert ask(table, client, until)[1] > until


@given(model, st.lists(st.tuples(st.integers(0, CLIENTS - 1), time), min_size=1, max_size=20))
def test_an_answer_depends_on_client_and_time_alone(name, questions):
    """A batch, singles in reverse order, and what asks for one client give the same, to the bit."""
    clients, times = (np.array(column) for column in zip(*questions, strict=True))
    table = timetable(name)
    batch = [(bool(a), float(u)) for a, u in zip(*table.at(clients, times.astype(float)), strict=True)]
    backwards = [ask(table, *question) for question in reversed(questions)][::-1]
    assert batch == backwards == [timetable(name).of_one(*question) for question in questions]


@pytest.mark.parametrize("name", ["markov", "diurnal", "lognormal", "charging"])
def test_runs_differ_by_their_seed(name):
    times, clients = np.linspace(0, 5 * DAY_S, 400), np.zeros(400, dtype=np.int64)
    one, again, other = (timetable(name, root).at(clients, times).until_s.tolist() for root in (1, 1, 2))
    assert one == again != other


def test_markov_is_stationary_and_forgets_and_clients_are_independent():
    """1/3 are there, for exponential times; correlations fall as exp(-(1 / on + 1 / off) t)."""
    table, t_s = MARKOV.timetable(people(MANY), 1), 12345.678
    available, until = table.at(np.arange(MANY), np.full(MANY, t_s))
    assert available.mean() == pytest.approx(1 / 3, abs=0.006)
    for state, mean in ((True, 1200), (False, 2400)):
        left = np.sort(until[available == state] - t_s)
        assert left.mean() == pytest.approx(mean, rel=0.02)
        # Kolmogorov and Smirnov's distance; 1.95 is exceeded once in a thousand seeds.
        distance = np.abs(1 - np.exp(-left / mean) - np.arange(len(left)) / len(left)).max()
        assert distance * math.sqrt(len(left)) < 1.95
    assert (table.at(np.arange(MANY), until).available != available).all()
    later = table.at(np.arange(MANY), np.full(MANY, t_s + 800)).available
    forgotten = math.exp(-800 * (1 / 1200 + 1 / 2400))
    assert np.corrcoef(available, later)[0, 1] == pytest.approx(forgotten, abs=0.012)
    assert abs(np.corrcoef(available[::2], available[1::2])[0, 1]) < 0.015


def test_diurnal_follows_the_local_hour():
    """The share that is available is mean (1 + amplitude cos), exactly, hours after the start and by zone.

    With the defaults it is the published 4 times higher at night; in three zones the fleet's does not change.
    """
    settings_ = {"mean": 0.3, "amplitude": 0.5, "peak": 3, "start": 6, "zones": [2], "correlation": "3 h"}
    for hour in (2, 14):
        expected = 0.3 * (1 + 0.5 * math.cos(2 * math.pi * (hour - 3) / 24))
        found = share_at(Diurnal.model_validate(settings_), 5 * 24 + hour - 8)
        assert found == pytest.approx(expected, abs=0.006)
    assert share_at(Diurnal(), 2) / share_at(Diurnal(), 14) == pytest.approx(4, rel=0.05)
    zones = Diurnal(zones=(0.0, 8.0, 16.0))
    assert [share_at(zones, 2), share_at(zones, 14)] == pytest.approx([0.25, 0.25], abs=0.006)


def test_by_data_is_in_proportion_to_data():
    """Whatever the power: samples to a large one overflow; the shares, of which the highest is 1, do not."""
    laws = {
        ByData(highest=0.8): [0.2, 0.4, 0.8],
        ByData(power=-1): [1, 0.5, 0.25],
        ByData(power=1000.0): [0, 0, 1],
        ByData(power=-1000.0): [1, 0, 0],
    }
    clients = people(90_000, np.repeat([25, 50, 100], 30_000))
    for law, shares in laws.items():
        found = law.timetable(clients, 1).at(np.arange(90_000), np.full(90_000, 1e5)).available
        assert found.reshape(3, -1).mean(axis=1) == pytest.approx(shares, abs=0.01), law


@pytest.mark.nightly
def test_lognormal_clients_stay_rare():
    """Each client's own share of time is the same in two disjoint spans, and different from others'."""
    count, days = 300, [[span + day / 10 for day in range(100)] for span in (0, 100)]
    table = Lognormal(sigma=1.0).timetable(people(count), 1)
    spans = [
        np.mean([table.at(np.arange(count), np.full(count, day * DAY_S)).available for day in each], axis=0)
        for each in days
    ]
    assert np.corrcoef(*spans)[0, 1] > 0.85
    assert np.log(spans[0][spans[0] > 0.05]).std() > 0.3
    assert share_at(Lognormal(sigma=0.0, highest=0.5), 25) == pytest.approx(0.5, abs=0.006)
    assert share_at(Lognormal(highest=1e-300), 25, 10) == 0


def test_charging_clients_are_there_at_night():
    """On a share of days from the hour given, for the hours given, in local time; 6 is the mean end."""
    night = Charging(plug_in=22, hours=8, spread=1, days=0.9, zones=(-5.0,), minimum=0.0)
    shares = {hour: share_at(night, 10 * 24 + hour + 5) for hour in (2, 14, 22, 30)}
    assert shares == pytest.approx({2: 0.9, 14: 0, 22: 0.45, 30: 0.45}, abs=0.01)


@sampled(1, "name", ["charging", "slow charger", "sometimes", "own"])
def test_a_battery_is_the_integral_of_its_day(name):
    """Levels are those that steps of ten seconds lead to; who has less than the minimum is away.

    Batteries are the devices' (a phone's that says nothing has 17.8 Wh, 10 W and a minimum of 0.2), losses
    included, but what a fleet gives is everybody's, also on mains; else a board on mains is always there.
    """
    table, law = timetable(name), MODELS[name]
    who, step = np.arange(CLIENTS) if law.capacity else np.flatnonzero(~MAINS), 10.0
    device, always = DEVICE[who], np.setdiff1d(np.arange(CLIENTS), who)
    capacity_j = np.array([17.8, np.nan, 5, 10])[device] * HOUR_S if law.capacity is None else law.capacity
    fill_w = np.array([10, np.nan, 3, 1.6])[device] if law.charger is None else law.charger
    minimum = np.array([0.2, np.nan, 0.5, 0.1])[device] if law.minimum is None else law.minimum
    minimum = np.broadcast_to(minimum, len(who))
    times = np.arange(0, 4 * DAY_S, step)
    # With no minimum, being available is being plugged in.
    plug = timetable(name, law=law.model_copy(update={"minimum": 0.0}))
    clients, instants = np.tile(who, len(times)), np.repeat(times, len(who))
    plugs = plug.at(clients, instants).available.reshape(-1, len(who))
    level = table.level(who, np.zeros(len(who)))
    for t_s, plugged in zip(times, plugs, strict=True):
        power = np.where(plugged, fill_w, -law.drain)
        level = np.clip(level + power * step / capacity_j, 0, 1)
        if t_s % DAY_S == 7 * HOUR_S:
            exact = table.level(who, np.full(len(who), t_s + step))
            assert exact == pytest.approx(level, abs=np.max(4 * 20 * step / capacity_j))
            there = table.at(who, np.full(len(who), t_s)).available
            sure = np.abs(level - minimum) > 0.02
            assert (there == (plugged & (level >= minimum)))[sure].all()
            assert table.at(always, np.full(len(always), t_s)).available.all()
            assert (table.level(always, np.full(len(always), t_s)) == 1).all()


TRACE = "client,start_s,end_s\n1,5,7\n\n0, 90, 3600\n3,1,86000.5\n0,0,60\n"


TIMES = {
    (0, 0): (True, 60), (0, 60): (False, 90), (0, 3600): (False, math.inf), (1, 0): (False, 5),
    (2, 0): (False, math.inf), (3, 86000): (True, 86000.5), (5, 6): (True, 7), (6, 6): (False, math.inf),
}  # fmt: skip
REPEATED = {
    (0, 9 * DAY_S + 100): (True, 9 * DAY_S + 3600), (0, 4000): (False, DAY_S), (1, 10): (False, DAY_S + 5),
    (2, 10): (False, math.inf),
}  # fmt: skip


def test_intervals_are_the_files(own):
    """Half-open; a client without rows is never there; clients beyond the file use it in turn."""
    for settings_, answers in (({}, TIMES), ({"repeat": "24 h"}, REPEATED)):
        table = Intervals.model_validate({"file": str(own("trace.csv", TRACE)), **settings_}).timetable(
            people(8), 0
        )
        assert {asked: ask(table, *asked) for asked in answers} == answers


def test_a_trace_is_known_by_its_content(own, monkeypatch):
    """Name and order of lines do not matter, a changed number does; what was written out needs no file."""
    first, *lines = TRACE.splitlines()
    own("other.csv", "\n".join([first, *lines[::-1]]))
    own("third.csv", TRACE.replace("3600", "3601"))
    own("trace.csv", TRACE)
    one, again, changed = (Intervals(file=f"{name}.csv") for name in ("trace", "other", "third"))
    assert one.model_dump() == again.model_dump() != changed.model_dump()
    assert one.model_dump()["rows"] == "0,0.0,60.0 0,90.0,3600.0 1,5.0,7.0 3,1.0,86000.5"
    monkeypatch.delenv("EDGEFL_PATH")
    assert Intervals.model_validate(one.model_dump()) == one
    with pytest.raises(ValueError, match=r"no file 'trace.csv'"):
        Intervals(file="trace.csv")


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("client,start_s,end_s\n", 1, "there are no rows"),
        (TRACE + "7" * 200_000 + ",1,2\n", 7, "not valid CSV: field larger than field limit"),
        (TRACE + "9,2,2\n", 7, "must end after that"),
        (TRACE + "0,3000,4000\n", 7, "client 0: an interval from 3000 s begins within the last one"),
    ],
)
def test_a_bad_trace_has_one_message(own, text, line, what):
    with pytest.raises(UserError) as caught:
        Intervals(file=str(own("trace.csv", text)))
    assert what in caught.value.what
    assert caught.value.where.endswith(f"/trace.csv:{line}")


def test_a_large_number_takes_no_memory():
    """Intervals of number 99999999 alone: what is kept is one row, and who has no row is never available."""
    params = Intervals(rows="7,0,5 99999999,1,2")
    clients = replace(people(5), user=np.array([0, 7, 99_999_998, 99_999_999, 100_000_007]))
    tracemalloc.start()
    answer = params.timetable(clients, 0).at(np.arange(5), np.full(5, 1.5))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
    assert answer.available.tolist() == [False, True, False, True, True]
    assert answer.until_s.tolist() == [math.inf, 5.0, math.inf, 2.0, 5.0]
