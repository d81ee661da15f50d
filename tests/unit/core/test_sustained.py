"""A device's battery and throttling as they are read from its file."""

from __future__ import annotations

import re

import pytest
from plans import sourced

from edgefl.core import catalogue
from edgefl.core.corners import Corner, at_corner
from edgefl.core.devices import Battery, Roofline, Throttling
from edgefl.core.errors import UserError
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document, dump

CURVE = {"after": "3 min", "over": "60 s", "to": 0.7, "recovery": "4 min"}


def read(record, **numbers):
    """A record of sourced numbers."""
    return record.model_validate({name: sourced(value) for name, value in numbers.items()})


def test_a_battery_has_what_its_file_says():
    """Capacity, the power that arrives in the battery after losses, and the level at which work ends."""
    battery = read(Battery, capacity="10 Wh", charge_power="5 W", charge_efficiency=0.8, cut_off=0.25)
    assert (battery.capacity_j, battery.fill_w, battery.cut_off_level) == (36_000, pytest.approx(4), 0.25)
    lossless = read(Battery, capacity="10 Wh", charge_power="5 W")
    assert (lossless.fill_w, lossless.cut_off_level) == (5, None)
    no_share = read(Battery, capacity="10 Wh", charge_power="5 W", charge_efficiency=None)
    assert no_share.fill_w == 5
    unknown = read(Battery, capacity=None, charge_power=None, cut_off=None)
    assert (unknown.capacity_j, unknown.fill_w, unknown.cut_off_level) == (None, None, None)


@pytest.mark.parametrize(("record", "low_is_cheap"), [
    (Battery, {"capacity": False, "charge_power": False, "charge_efficiency": False, "cut_off": True}),
    (Throttling, {"after": False, "over": False, "to": False, "recovery": True}),
])  # fmt: skip
def test_which_end_of_an_interval_is_cheap(record, low_is_cheap):
    """Much energy and power, late and slight throttling; a low cut-off and a short recovery."""
    units = {"capacity": " Wh", "charge_power": " W", "after": " s", "over": " s", "recovery": " s"}
    plain = {"charge_efficiency": (0.5, 0.6, 0.7), "cut_off": (0.1, 0.2, 0.3), "to": (0.5, 0.6, 0.7)}
    given = {
        name: {
            key: f"{value}{units[name]}" if name in units else value
            for key, value in zip(("low", "value", "high"), plain.get(name, (5, 6, 7)), strict=True)
        }
        | {"status": "assumed", "source": "test"}
        for name in low_is_cheap
    }
    own = record.model_validate(given)
    cheap = at_corner(own, Corner.CHEAP)
    for name, low in low_is_cheap.items():
        number = getattr(own, name)
        assert getattr(cheap, name).value == (number.low if low else number.high)


def test_a_number_alone_is_a_capacity():
    """A file that gives the battery's energy alone is read as before."""
    assert Battery.model_validate(sourced("17.8 Wh")) == read(Battery, capacity="17.8 Wh")
    assert Battery.model_validate(sourced(None)) == read(Battery, capacity=None)


@pytest.mark.parametrize("record", [
    read(Battery, capacity="10 Wh"),
    read(Battery, capacity="10 Wh", charge_power="5 W", charge_efficiency=0.8, cut_off=0.25),
    read(Throttling, **CURVE),
])  # fmt: skip
def test_what_was_written_out_is_read_back(record):
    """Through YAML, with amounts as plain numbers, as in a run's plan."""
    document = Document.parse(dump(record.model_dump(mode="json")), "plan.yaml")
    again = Document("plan.yaml", document.data, context=RESOLVED)
    assert validate(type(record), document.data, again) == record


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("battery: =3 m", "'m' is not a unit of energy"),
        ("battery: {capacity: =0 Wh}", "battery.capacity.value should be greater than 0"),
        ("battery: {capacity: =3 Wh, cut_of: =0.2}", "unknown key 'cut_of'"),
        ("battery: {capacity: =3 Wh, cut_off: =1}", "battery.cut_off.value should"),
        ("throttling: {to: =0.7}", "'after' is missing"),
        (
            "throttling: {after: =3 s, over: {status: unknown, source: x}, to: =0.7, recovery: =9 s}",
            "leave out throttling where a number is unknown, here over",
        ),
    ],
)
def test_mistakes_have_one_message(line, what):
    """What is wrong, at the line of the device's file."""
    text = catalogue.find("devices", "titan-v").path.read_text(encoding="utf-8")
    line = re.sub("=([^,}]+)", r"{value: \1, status: assumed, source: x}", line)
    document = Document.parse(f"{text}\n{line}\n", "phone.yaml")
    with pytest.raises(UserError) as caught:
        validate(Roofline, document.data, document)
    mistakes = [caught.value, *caught.value.others]
    assert any(what in one.what for one in mistakes)
    assert mistakes[0].where.startswith(f"phone.yaml:{text.count(chr(10)) + 2}")
