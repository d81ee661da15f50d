"""A fleet's carbon record: its forms, the shipped table and users' files."""

import re
from pathlib import Path

import numpy as np
import pytest
from commands import run_command

from edgefl.core.catalogue import entries
from edgefl.core.errors import UserError
from edgefl.core.notes import passed_to
from edgefl.core.sourced import sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document
from edgefl.planning.carbon import Carbon, Making, Region, completed, shipped, table
from edgefl.planning.fleets import profile
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.runs.group import drafts

LINKS = ("wifi-pi4", "4g", "lorawan")
DEVICES = {"pixel-6": "phone", "jetson-nano": "edge-gpu"}


def whole(**settings):
    return completed(Carbon.model_validate({"regions": "DE", **settings}), LINKS, DEVICES, 18.0)


def test_every_number_of_the_table_has_a_source():
    """Regions with their year, networks, the PUE and what making devices emits; hours are like their mean."""
    found = table()
    for name, row in found["means"].items():
        region = Region.model_validate(shipped(name, hourly=False))
        assert f"{row['year']}: codecarbon" in region.source
        assert 10 < float(region.g_per_kwh) < 1000
    for name, row in found["hours"].items():
        hours = Region.model_validate(shipped(name, hourly=True))
        assert row["file"] in hours.source
        by_hour = np.array(hours.g_per_kwh.split(), dtype=float)
        assert len(by_hour) == 24
        assert by_hour.mean() == pytest.approx(found["means"][name]["mean"], rel=0.2)
    for row in (*found["network"].values(), found["pue"]):
        assert row["source"]
    for row in found["embodied"].values():
        assert all(number.source for _, number in sourced(Making.model_validate(row)))
    # A new file in profiles/links/ needs a line in the table.
    assert set(found["links"]) == set(entries("links"))
    assert set(found["links"].values()) == set(found["network"])


def test_regions_in_all_forms():
    """One, a list of equal shares, shares, records; by hour or by year, from the table or one's own."""
    metered = {"g_per_kwh": [*range(24)], "status": "measured", "source": "a meter"}
    own = {"DE": {"share": 2}, "home": {"g_per_kwh": 20}, "a": metered}
    for given, shares in (
        ("DE", {"DE": 1}),
        (["DE", "FR"], {"DE": 1, "FR": 1}),
        ({"DE": 0.2, "FR": 0.8}, {"DE": 0.2, "FR": 0.8}),
        (own, {"DE": 2, "home": 1, "a": 1}),
    ):
        found = whole(regions=given).regions
        assert {name: region.share for name, region in found.items()} == shares
        assert len(found["DE"].g_per_kwh.split()) == 24
    assert whole(hourly=False).regions["DE"].g_per_kwh == "381"
    assert found["a"].g_per_kwh.split() == [str(hour) for hour in range(24)]
    assert (found["home"].status, found["home"].source) == ("assumed", "given without a source")


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"regions": {"DE": 0}}, "at least one of the regions must have a share above 0"),
        ({"regions": {"a": {"g_per_kwh": [1, 2]}}}, "not 2"),
        ({"regions": {"a": {"g_per_kwh": "nan"}}}, "g_per_kwh 'nan': Input should be a finite"),
        ({"network": 0.1}, "0.1 is no energy per byte; write a number and a unit"),
        ({"regions": ["DE", "FR"], "server": {"power": "1 W"}}, "the server needs a region"),
        ({"embodied": "used"}, "'busy' or 'owned'"),
    ],
)
def test_what_is_wrong_is_refused(settings, what):
    settings = {"regions": "DE", **settings}
    with pytest.raises(UserError) as raised:
        validate(Carbon, settings, Document("fleet.yaml", settings))
    assert what in raised.value.what + raised.value.hint
    assert "Value error" not in raised.value.what


KNOWN = "network: {5g: mobile, others: fixed}, embodied: {devices: {sbc: {made: 1 kg, lifetime: 9 h}}}"


@pytest.mark.parametrize(
    ("known", "wrong", "what", "key"),
    [
        ("regions: DE", "regions: DEU", "region 'DEU'", ".regions"),
        ("5g:", "5gg:", "link '5gg'", ".network"),
        ("sbc:", "sbk:", "device or category 'sbk'", ".embodied.devices"),
    ],
)
def test_a_name_of_what_there_is_not_is_told_with_its_key(capsys, known, wrong, what, key):
    fleet = f"fleet={{like: home-lab, carbon: {{regions: DE, {KNOWN}}}}}"
    check = ("check", "quickstart", "--set", "sweep=null", "--set")
    status, _, err = run_command(capsys, *check, fleet.replace(known, wrong))
    assert status == 2
    assert f"error: unknown {what}\n" in err
    assert f"key 'fleet.carbon{key}." in err
    assert f"did you mean '{known.split()[-1].strip(':')}'?" in err
    assert run_command(capsys, *check, fleet)[0] == 0


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("mobile", [0.108, 0.108, 0.108]),
        ({"value": "5 Wh/GB", "status": "measured", "source": "a meter"}, [0.005, 0.005, 0.005]),
        ({"4g": "0.2 kWh/GB", "others": "fixed"}, [0.008, 0.2, 0.008]),
        (None, [0.008, 0.108, None]),
    ],
)
def test_networks_for_all_links_or_by_link(given, expected):
    """By default mobile networks are mobile, others fixed; what nobody has measured is unknown."""
    network = whole(network=given).network
    assert [network[name].value for name in LINKS] == expected


def test_hardware_goes_by_category():
    """A device's own figures come before its category's; a category without any is unknown."""
    found = whole(embodied="busy").embodied.devices
    assert found["pixel-6"].grams_per_s == pytest.approx(84_000 / 21_900 / 3600)
    assert found["jetson-nano"].grams_per_s is None
    one, other = {"made": "9 kg", "lifetime": "100 h"}, {"made": "1 kg", "lifetime": "1 h"}
    own = {"phone": one, "jetson-nano": one, "edge-gpu": other}
    found = whole(embodied={"hours": "owned", "devices": own}).embodied
    assert (found.hours, found.devices["pixel-6"].made.value) == ("owned", 9_000)
    assert found.devices["jetson-nano"].grams_per_s == pytest.approx(9000 / 360_000)


def test_what_is_read_back_is_what_was_completed():
    server = {"power": "200 W", "region": "IE"}
    record = whole(regions={"DE": 1, "FR": 3}, server=server, embodied="owned", start=7)
    assert Carbon.model_validate(record.model_dump(mode="json"), context=RESOLVED) == record
    assert record.regions["IE"].share == 0
    assert whole(regions={"FR": 0, "DE": 1}, server={"power": "1 W"}).server.region == "DE"


def test_the_clock_begins_where_availability_does():
    assert [whole().start, whole(start=0).start, whole(start=3).start] == [18, 0, 3]
    assert planned("regions: DE", "city-phones-at-night").plan.fleet.carbon["start"] == 18.0


def planned(carbon, profile="home-lab"):
    task = {"dataset": "digits", "clients": 4, "samples": 9}
    document = Document.parse(f"carbon: {{{carbon}}}\nlike: {profile}", "fleet.yaml")
    (draft,) = drafts({"task": task, "model": "mlp", "method": "fedavg", "fleet": document.data})
    return plan(draft, DataAccess())


def test_a_run_is_the_same_however_it_is_written():
    """In other units, other forms; what is another number is another run."""
    found = [
        planned(f"regions: {regions}, server: {{power: {power}}}").run_id
        for regions, power in (("DE", "200 W"), ("[DE]", "0.2 kW"), ("{DE: 1}", "200 W"), ("DE", "201 W"))
    ]
    assert found[0] == found[1] == found[2] != found[3]


def test_a_profiles_number_without_a_source_is_noted(tmp_path, monkeypatch):
    (tmp_path / "profiles").mkdir()
    text = "title: x\nlike: home-lab\ncarbon: {regions: DE, server: {power: 200 W}}\n"
    (tmp_path / "profiles" / "mine.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    said: list[str] = []
    with passed_to(said.append):
        found = profile("mine").carbon
    assert found["server"]["power"]["source"].endswith("in mine.yaml")
    assert any("mine.yaml: without a source" in one for one in said)


def test_the_page_lists_every_key():
    page = (Path(__file__).parents[3] / "docs" / "carbon.md").read_text(encoding="utf-8")
    keys = re.findall(r"^\| `(\w+)` \| (?:required|`|by link)", page, flags=re.MULTILINE)
    assert set(keys) == set(Carbon.model_fields)
    for name in table()["links"]:
        assert f"`{name}`" in page
