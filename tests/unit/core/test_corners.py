"""Numbers that are intervals, and the two corners of a device whose numbers are."""

from __future__ import annotations

from typing import Any

import pytest
from plans import device

from edgefl.core.carbon import Making
from edgefl.core.catalogue import entries
from edgefl.core.corners import Corner, at_corner, corners, has_interval
from edgefl.core.devices import Battery, Roofline, Systolic
from edgefl.core.link import Link
from edgefl.core.sourced import Costs, sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import Document

_AT = {"status": "assumed", "source": "for this test"}


def _device(**numbers: Any) -> Roofline:
    document = Document.read(entries("devices")["raspberry-pi-4b"].path)
    data = {**document.data, **{key: value for key, value in numbers.items() if key != "active"}}
    if "active" in numbers:
        data["power"] = {**data["power"], "active": numbers["active"]}
    return validate(Roofline, data, document)


def test_a_capacity_is_cheap_where_it_is_high_and_an_overhead_where_it_is_low():
    """The cheap corner has high rates and low overheads; the costly corner the other ends."""
    device = _device(
        memory_bandwidth={"low": "1 GB/s", "value": "2 GB/s", "high": "4 GB/s", **_AT},
        launch_overhead={"low": "10 ms", "value": "20 ms", "high": "40 ms", **_AT},
    )
    cheap, costly = at_corner(device, Corner.CHEAP), at_corner(device, Corner.COSTLY)
    assert (cheap.memory_bandwidth.value, costly.memory_bandwidth.value) == (4e9, 1e9)
    assert (cheap.launch_overhead.value, costly.launch_overhead.value) == (0.01, 0.04)


def test_a_number_without_a_bound_keeps_its_value():
    """A one-sided interval is open at its value."""
    device = _device(launch_overhead={"value": "20 ms", "high": "40 ms", **_AT})
    assert at_corner(device, Corner.CHEAP).launch_overhead.value == 0.02
    assert at_corner(device, Corner.COSTLY).launch_overhead.value == 0.04


def test_an_upper_bound_alone_is_enough():
    """A power limit has no value; what draws at most so much draws at least nothing."""
    device = _device(active={"high": "15 W", **_AT})
    assert device.power.active.value is None
    assert at_corner(device, Corner.CHEAP).power.active.value == 0.0
    assert at_corner(device, Corner.COSTLY).power.active.value == 15.0


def test_an_unknown_rate_stays_unknown():
    """Nothing bounds a rate of which nothing is known; a power is at least 0."""
    unknown = {"status": "unknown", "source": "not found"}
    device = _device(memory_bandwidth=unknown, active=unknown)
    for corner in Corner:
        assert at_corner(device, corner).memory_bandwidth.value is None
    assert at_corner(device, Corner.CHEAP).power.active.value == 0.0
    assert at_corner(device, Corner.COSTLY).power.active.value is None


def test_at_a_corner_a_number_has_a_value_or_is_unknown():
    """None is an interval, and its status says which it is."""
    unknown = {"status": "unknown", "source": "not found"}
    for own in (_device(), _device(active=unknown), _device(active={"high": "15 W", **_AT})):
        for corner in Corner:
            for _, number in sourced(at_corner(own, corner)):
                assert not number.is_interval
                assert (number.value is None) == (number.status == "unknown")


def test_the_outermost_kind_of_a_number_counts():
    """Seconds cost more, but those of a lifetime, over which a making is spread, less."""
    assert Making.model_fields["lifetime"].annotation.costs() is Costs.LESS


def test_only_what_changes_a_price_makes_corners():
    """An unknown power does; of an unknown capacity, neither corner knows more."""
    unknown = Battery.model_validate({"status": "unknown", "source": "not found"})
    assert corners(device().model_copy(update={"battery": unknown})) is None
    assert corners(device(active=None)) is not None


def test_whole_radios_have_corners():
    """A radio's power model is one number with its source; an interval has two whole models."""
    path = entries("links")["4g"].path
    document = Document.read(path)
    radio = document.data["radio"]["value"]
    low = {**radio, "base": "0.5 W", "tail": "0.06 W"}
    data = {**document.data, "radio": {"low": low, "high": radio, **_AT}}
    link = validate(Link, data, document)
    assert at_corner(link, Corner.CHEAP).radio.known.base == 0.5
    assert at_corner(link, Corner.COSTLY).radio.known.base == link.radio.high.base


@pytest.mark.parametrize(
    ("bounds", "what"),
    [
        ({"low": "3 GB/s", "value": "2 GB/s"}, "low must not be above value"),
        ({"value": "2 GB/s", "high": "1 GB/s"}, "value must not be above high"),
        ({"low": "3 GB/s", "high": "1 GB/s"}, "low must not be above high"),
    ],
)
def test_bounds_are_in_order(bounds, what):
    """Low <= value <= high, as far as they are given."""
    with pytest.raises(Exception, match=what):
        _device(memory_bandwidth={**bounds, **_AT})


def test_an_interval_without_an_effect_is_refused():
    """An array's rows change cycles either way, so that corners would not bound them."""
    document = Document.read(entries("devices")["vc707-systolic"].path)
    data = {**document.data, "rows": {"low": 16, "value": 32, "high": 64, **_AT}}

    with pytest.raises(Exception, match="cannot be an interval"):
        validate(Systolic, data, document)


def test_bounds_that_are_absent_are_not_written():
    """A number without bounds is written as it was before there were any."""
    written = _device(launch_overhead={"value": "20 ms", **_AT}).model_dump(mode="json")
    assert written["launch_overhead"] == {"value": 0.02, **_AT}
    (up, latency) = ({"value": value, **_AT} for value in ("1 Mbit/s", "1 s"))
    radio = {"value": {"base": "1 W"}, **_AT}
    plain = {"title": "x", "down": up, "up": up, "latency": latency, "radio": radio}
    document = Document.read(entries("links")["4g"].path)
    assert not has_interval(validate(Link, plain, document))
    assert has_interval(validate(Link, {**plain, "latency": {"high": "2 s", **latency}}, document))


def test_memory_is_no_interval():
    """It admits or refuses a client, so bounds of it would have no effect."""
    with pytest.raises(Exception, match="cannot be an interval"):
        _device(memory={"low": "2 GB", "value": "4 GB", **_AT})
