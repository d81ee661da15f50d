"""Devices and links as their files have them: sourced numbers, corners of intervals, what is inherited."""

import pytest
from plans import device as board
from plans import link as plain_link
from plans import sourced as number

from edgefl.core.catalogue import find
from edgefl.core.corners import at_corners
from edgefl.core.devices import Battery, Power, Throttling
from edgefl.core.devices.roofline import Roofline
from edgefl.core.errors import UserError
from edgefl.core.link import Radio
from edgefl.core.notes import note
from edgefl.core.sourced import Costs, Sourced, sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document, dump
from edgefl.planning.carbon import Making
from edgefl.planning.fleets import device, link

AT = {"status": "assumed", "source": "for this test"}
UNKNOWN = {"status": "unknown", "source": "not found"}


def pi(**numbers):
    """A Raspberry Pi 4 with other numbers; ``active`` is one of its powers."""
    document = Document.read(find("devices", "raspberry-pi-4b").path)
    data = {**document.data, **{key: value for key, value in numbers.items() if key != "active"}}
    if "active" in numbers:
        data["power"] = {**data["power"], "active": numbers["active"]}
    return validate(Roofline, data, document)


def read(record, **numbers):
    return record.model_validate({name: number(value) for name, value in numbers.items()})


def power(**watts):
    return Power.model_validate({name: {**bounds, **AT} for name, bounds in watts.items()})


@pytest.mark.parametrize(
    ("make", "what"),
    [
        # There is a value if and only if it is not unknown, and always a source.
        (lambda: Sourced[float].model_validate({"value": 1.0, **UNKNOWN}), "unknown"),
        (lambda: Sourced[float].model_validate(AT), "value"),
        (lambda: Sourced[float].model_validate({"value": 1.0, "status": "measured", "source": ""}), "source"),
        (lambda: read(Battery, capacity="3 Wh", cut_off=1), "cut_off.value"),
        (lambda: read(Throttling, after="3 s", over=None, to=0.7, recovery="9 s"), "needs a value"),
        (lambda: board(peak=0.5), "greater than or equal to 1"),
        (lambda: plain_link(up=1e-320), "greater than or equal to 1"),
        (lambda: board(idle=4.0, active=2.0), "active, 2 W, is below idle, 4 W"),
        (lambda: power(idle={"value": "4 W"}, active={"high": "2 W"}), "active, 2 W, is below idle, 4 W"),
        (lambda: power(idle={"low": "20 W"}, active={"value": "15 W"}), "active, 15 W, is below idle, 20 W"),
        (lambda: board(memory=1e3, reserved=2e3), "reserved_memory, 2 kB, is not below memory, 1 kB"),
        (lambda: pi(memory_bandwidth={"low": "3 GB/s", "value": "2 GB/s", **AT}), "low must not be above"),
        (lambda: pi(memory={"low": "2 GB", "value": "4 GB", **AT}), "cannot be an interval"),
        (lambda: pi(cache={"size": number("1 MB"), "bandwidth": number("1 kB/s")}), "below memory_bandwidth"),
        (lambda: Radio.model_validate({"base": "1 W", "tail": "1 W"}), "a tail of 1 W needs a tail_time"),
    ],
)
def test_numbers_that_cannot_be_are_refused(make, what):
    with pytest.raises((ValueError, UserError), match=what):
        make()


def test_corners_are_cheap_where_capacities_are_high_and_overheads_low():
    """Without a bound a number keeps its value; an upper bound of a power alone is enough, from 0 on."""
    own = pi(
        memory_bandwidth={"low": "1 GB/s", "value": "2 GB/s", "high": "4 GB/s", **AT},
        launch_overhead={"value": "20 ms", "high": "40 ms", **AT},
        active={"high": "15 W", **AT},
    )
    assert own.power.active.value is None
    cheap, costly = at_corners(own)
    assert (cheap.memory_bandwidth.value, costly.memory_bandwidth.value) == (4e9, 1e9)
    assert (cheap.launch_overhead.value, costly.launch_overhead.value) == (0.02, 0.04)
    assert (cheap.power.active.value, costly.power.active.value) == (0.0, 15.0)
    for one in (own, pi(memory_bandwidth=UNKNOWN, active=UNKNOWN)):
        for end in at_corners(one):
            for _, found in sourced(end):
                assert not found.is_interval
                assert (found.value is None) == (found.status == "unknown")
    cheap, costly = at_corners(pi(memory_bandwidth=UNKNOWN, active=UNKNOWN))
    assert (cheap.memory_bandwidth.value, cheap.power.active.value) == (None, 0.0)
    assert costly.power.active.value is None
    # Seconds cost more, but those of a lifetime, over which a making is spread, less.
    assert Making.model_fields["lifetime"].annotation.costs() is Costs.LESS


def test_a_battery_has_what_its_file_says():
    """Capacity, the power that arrives after losses, and the level at which work ends."""
    battery = read(Battery, capacity="10 Wh", charge_power="5 W", charge_efficiency=0.8, cut_off=0.25)
    assert (battery.capacity.value, battery.fill_w) == (36_000, pytest.approx(4))
    no_share = read(Battery, capacity="10 Wh", charge_power="5 W", charge_efficiency=None)
    assert no_share.fill_w == 5
    unknown = read(Battery, capacity=None)
    assert (unknown.capacity.value, unknown.fill_w) == (None, None)
    curve = read(Throttling, after="3 min", over="60 s", to=0.7, recovery="4 min")
    for record in (battery, no_share, curve):
        document = Document.parse(dump(record.model_dump(mode="json")), "plan.yaml")
        again = Document("plan.yaml", document.data, context=RESOLVED)
        assert validate(type(record), document.data, again) == record


def test_a_device_states_what_differs(own):
    """Its own numbers stand as they are; each other is the parent's, assumed, with its name and source."""
    dense = "dense: {value: 0.3, status: measured, source: timed here}"
    own("devices/mine.yaml", f"like: raspberry-pi-5\nefficiency: {{{dense}}}\n")
    mine, parent = device("mine"), device("raspberry-pi-5")
    assert (mine.title, mine.category, mine.notes) == ("mine", "sbc", "")
    numbers, others = dict(sourced(mine)), dict(sourced(parent))
    dense = numbers.pop("efficiency.dense")
    assert (dense.value, dense.low, dense.status, dense.source) == (0.3, None, "measured", "timed here")
    assert numbers.keys() == others.keys() - {"efficiency.dense"}
    for key, each in numbers.items():
        source = f"taken from raspberry-pi-5: {others[key].source}"
        assert each == others[key].model_copy(update={"status": "assumed", "source": source})


def test_null_takes_a_key_away(own):
    own(
        "devices/one-type.yaml",
        "like: raspberry-pi-5\npeak: {int8: null}\nefficiency_in: null\ninference: null\n",
    )
    own("devices/wired.yaml", "like: pixel-6\nbattery: null\n")
    own("devices/large.yaml", "like: pixel-6\nbattery: 20 Wh\n")
    assert device("one-type").dtypes(inference=True) == ("fp32",)
    assert device("wired").battery is None
    large, parent = device("large").battery, device("pixel-6").battery
    assert (large.capacity.value, large.fill_w) == (72_000, parent.fill_w)


@pytest.mark.parametrize(
    ("text", "what", "where", "hint"),
    [
        ("like: raspberry-pi-55\n", "unknown device 'raspberry-pi-55'", "mine.yaml:1", "'raspberry-pi-5'"),
        ("like: mine\n", "devices inherit from each other in a cycle: mine -> mine", "mine.yaml", ""),
        ("title: x\n", "'category' is missing", "mine.yaml", ""),
    ],
)
def test_a_mistake_is_placed_in_the_own_file(own, text, what, where, hint):
    own("devices/mine.yaml", text)
    with pytest.raises(UserError) as caught:
        device("mine")
    assert what in str(caught.value)
    assert where in caught.value.where
    assert hint in caught.value.hint


def test_numbers_alone_are_assumed_with_one_note(own, caplog):
    """The note says which, and how one is stated; bounds alone are numbers too."""
    text = "power: {idle: 1.1 W, active: {high: 9 W}}\nbackward_overhead: 0\nmemory: 2 GB\n"
    note.cache_clear()
    own("devices/mine.yaml", f"like: raspberry-pi-4b\n{text}")
    numbers = dict(sourced(device("mine")))
    assert (numbers["power.idle"].value, numbers["power.active"].high) == (1.1, 9)
    for key in ("memory", "power.idle", "power.active", "backward_overhead"):
        assert numbers[key].status == "assumed"
        assert numbers[key].source == "given without a source in mine.yaml"
    (told,) = [record.getMessage() for record in caplog.records]
    assert told == (
        "mine.yaml: without a source, and so assumed: memory, power.idle, power.active, backward_overhead; "
        "state one as {value: NUMBER, status: measured, source: ...}"
    )
    text = "title: t\ndown: 1 Mbit/s\nup: 1 Mbit/s\nlatency: 3 ms\nradio: {status: unknown, source: s}\n"
    own("profiles/links/wire.yaml", text)
    assert link("wire").up.source == "given without a source in wire.yaml"
