"""A fleet's carbon record: its forms, the shipped table and users' files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from commands import run_command

from edgefl.core.carbon import Carbon, Making, Region, completed, shipped, table
from edgefl.core.catalogue import entries
from edgefl.core.errors import UserError
from edgefl.core.sourced import sourced
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document
from edgefl.planning.carbon import with_carbon
from edgefl.planning.fleets import profile
from edgefl.planning.schema import schema

LINKS = ("wifi-pi4", "4g", "lorawan")
GUESS = {"status": "assumed", "source": "test"}
NO_LIFE = {"made": "84 kg", "lifetime": 0}
DEVICES = {"pixel-6": "phone", "jetson-nano": "edge-gpu"}


def whole(**settings):
    """A completed record, by default in Germany."""
    return completed(Carbon.model_validate({"regions": "DE", **settings}), LINKS, DEVICES, 0.0)


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


@pytest.mark.parametrize(
    ("regions", "shares"),
    [
        ("DE", {"DE": 1}),
        (["DE", "FR"], {"DE": 1, "FR": 1}),
        ({"DE": 0.25, "FR": 0.75}, {"DE": 0.25, "FR": 0.75}),
        ({"DE": {"share": 2}, "home": {"g_per_kwh": 20, "source": "my roof"}}, {"DE": 2, "home": 1}),
    ],
)
def test_regions_in_all_forms(regions, shares):
    """One, a list of equal shares, shares, records."""
    found = Carbon.model_validate({"regions": regions}).regions
    assert {name: region.share for name, region in found.items()} == shares
    assert found["DE"].g_per_kwh is None
    full = whole(regions=regions).regions
    assert {name: region.share for name, region in full.items()} == shares
    assert len(full["DE"].g_per_kwh.split()) == 24


def test_a_record_of_ones_own():
    """One number or a list of hours; what it leaves out says so."""
    given = {
        "a": {"g_per_kwh": [*range(24)], "status": "measured", "source": "a meter"},
        "b": {"g_per_kwh": 20},
    }
    found = Carbon.model_validate({"regions": given}).regions
    assert found["a"].g_per_kwh.split() == [str(hour) for hour in range(24)]
    assert (found["b"].g_per_kwh, found["b"].status) == ("20", "assumed")
    assert found["b"].source == "given without a source"


def test_the_years_mean_in_place_of_hours():
    """``hourly: false`` takes one kind of number for every region."""
    found = whole(regions=["DE", "PL"], hourly=False).regions
    assert [found["DE"].g_per_kwh, found["PL"].g_per_kwh] == ["381", "662"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"regions": "XE"}, "unknown region 'XE'"),
        ({"regions": []}, "regions should"),
        ({"regions": [1]}, "regions should"),
        ({"regions": {}}, "regions should"),
        ({"regions": {"DE": 0}}, "at least one of the regions must have a share above 0"),
        ({"regions": {"DE": -1}}, "regions.DE should"),
        ({"regions": {"a": {"g_per_kwh": [1, 2]}}}, "not 2"),
        (
            {"regions": {"a": {"g_per_kwh": "nan"}}},
            "g_per_kwh 'nan': Input should be a finite number",
        ),
        ({"regions": {"a": {"g_per_kwh": 3e7}}}, "g_per_kwh 30000000.0: Input should be less"),
        ({"regions": "DE", "grid": "nowhere.csv"}, "no file 'nowhere.csv'"),
        ({"regions": "DE", "network": "fast"}, "'fast' is not an energy per byte"),
        (
            {"regions": "DE", "network": 0.1},
            "0.1 is not an energy per byte; write a number and a unit",
        ),
        ({"regions": "DE", "network": {"4g": "1 GB"}}, "'GB' is not a unit of energy per byte; use one of"),
        ({"regions": "DE", "network": {"4g": [1]}}, "network.4g"),
        (
            {"regions": "DE", "network": {"4g": {"low": "2 Wh/GB", "value": "1 Wh/GB", **GUESS}}},
            "low must not be above value",
        ),
        (
            {"regions": "DE", "server": {"power": "200 W", "pue": 0.5}},
            "server.pue should",
        ),
        (
            {"regions": "DE", "server": {"power": {"status": "unknown", "source": "-"}}},
            "needs the values of",
        ),
        ({"regions": "DE", "server": {"power": "1e300 W"}}, "server.power should"),
        ({"regions": "DE", "network": "1e300 kWh/GB"}, "network should be"),
        ({"regions": ["DE", "FR"], "server": {"power": "1 W"}}, "the server needs a region"),
        ({"regions": "DE", "server": {"power": "1 W", "region": "XE"}}, "unknown region 'XE'"),
        ({"regions": "DE", "embodied": "used"}, "'busy' or 'owned'"),
        (
            {"regions": "DE", "embodied": {"devices": {"phone": {"made": "84 kg", "lifetime": 0}}}},
            "embodied.devices.phone.lifetime should be",
        ),
    ],
)
def test_what_is_wrong_is_refused(settings, what):
    """With a message that says what and what to do."""
    with pytest.raises(UserError) as raised:
        validate(Carbon, settings, Document("fleet.yaml", settings))
    assert what in raised.value.what + raised.value.hint
    assert "Value error" not in raised.value.what


def test_a_mistake_is_told_with_its_key(capsys):
    """On the command line: one message and status 2."""
    fleet = "fleet={like: home-lab, carbon: {regions: {DEU: 1}}}"
    status, _, err = run_command(capsys, "check", "quickstart", "--set", fleet)
    assert status == 2
    assert "error: unknown region 'DEU'\n" in err
    assert "key 'fleet.carbon'" in err
    assert "did you mean 'DE'?" in err


@pytest.mark.parametrize(
    ("carbon", "what", "key", "near"),
    [
        ("network: {wifi-pi44: fixed}", "unknown link 'wifi-pi44'", "network", "wifi-pi4"),
        (
            "embodied: {devices: {raspbery-pi-5: {made: 1 kg, lifetime: 9 h}}}",
            "unknown device or category 'raspbery-pi-5'",
            "embodied.devices",
            "raspberry-pi-5",
        ),
    ],
)
def test_numbers_of_what_there_is_not_are_refused(capsys, carbon, what, key, near):
    """A misspelled name would leave the table's number in place; others' links, and categories, are known."""
    check = ("check", "quickstart", "--set", "sweep=null", "--set")
    status, _, err = run_command(
        capsys, *check, f"fleet={{like: home-lab, carbon: {{regions: DE, {carbon}}}}}"
    )
    assert status == 2
    assert f"error: {what}\n" in err
    assert f"key 'fleet.carbon.{key}'" in err
    assert f"did you mean '{near}'?" in err
    others = "network: {5g: mobile, others: fixed}, embodied: {devices: {sbc: {made: 1 kg, lifetime: 9 h}}}"
    known = f"fleet={{like: home-lab, carbon: {{regions: DE, {others}}}}}"
    assert run_command(capsys, *check, known)[0] == 0


def test_a_wrong_file_in_a_fleet_is_named_as_a_file(capsys, tmp_path, monkeypatch):
    """``grid.csv`` looks like the key ``csv`` of ``grid``, but is none."""
    monkeypatch.chdir(tmp_path)
    csv(tmp_path, [])
    name = next(tmp_path.iterdir()).name
    fleet = f"fleet={{like: home-lab, carbon: {{regions: X, grid: {name}}}}}"
    status, _, err = run_command(capsys, "check", "quickstart", "--set", fleet)
    assert status == 2
    assert f"where: {tmp_path / name}:1\n" in err


def test_networks_go_by_the_class_of_their_links():
    """Mobile networks are mobile, others fixed, also a user's; what nobody has measured is unknown."""
    network = completed(Carbon.model_validate({"regions": "DE"}), (*LINKS, "ours"), DEVICES, 0.0).network
    assert [network[name].value for name in (*LINKS, "ours")] == [0.008, 0.108, None, 0.008]


def test_every_network_class_is_classed():
    """A new file in profiles/links/ needs a line in the table."""
    assert set(table()["links"]) == set(entries("links"))
    assert set(table()["links"].values()) == set(table()["network"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("mobile", [0.108, 0.108, 0.108]),
        ("0.02 kWh/GB", [0.02, 0.02, 0.02]),
        ({"value": "5 Wh/GB", "status": "measured", "source": "a meter"}, [0.005, 0.005, 0.005]),
        ({"4g": "0.2 kWh/GB"}, [0.008, 0.2, None]),
        ({"4g": "0.2 kWh/GB", "others": "fixed"}, [0.008, 0.2, 0.008]),
        (None, [0.008, 0.108, None]),
    ],
)
def test_networks_of_ones_own(given, expected):
    """For all links, or by link."""
    network = whole(network=given).network
    assert [network[name].value for name in LINKS] == expected


def test_hardware_goes_by_category():
    """A device's own figures come before its category's; a category without any is unknown."""
    table_ = whole(embodied="busy").embodied.devices
    assert table_["pixel-6"].grams_per_s == pytest.approx(84_000 / 21_900 / 3600)
    assert table_["jetson-nano"].grams_per_s is None
    own = {
        "phone": {"made": "50 kg", "lifetime": "10000 h"},
        "jetson-nano": {"made": "9 kg", "lifetime": "100 h"},
        "edge-gpu": {"made": "1 kg", "lifetime": "1 h"},
    }
    found = whole(embodied={"hours": "owned", "devices": own}).embodied
    assert (found.hours, found.devices["pixel-6"].made.value) == ("owned", 50_000)
    assert found.devices["jetson-nano"].grams_per_s == pytest.approx(9000 / 360_000)


def test_a_server_is_where_all_clients_are():
    """A region without clients is no other place."""
    assert whole(regions={"FR": 0, "DE": 1}, server={"power": "1 W"}).server.region == "DE"


def test_what_is_read_back_is_what_was_completed():
    """A completed record needs no table and no file."""
    record = whole(
        regions={"DE": 1, "FR": 3}, server={"power": "200 W", "region": "IE"}, embodied="owned", start=7
    )
    assert Carbon.model_validate(record.model_dump(mode="json"), context=RESOLVED) == record
    assert record.regions["IE"].share == 0


def test_the_clock_begins_where_availability_does():
    """Unless carbon says otherwise."""
    record = Carbon.model_validate({"regions": "DE"})
    assert completed(record, LINKS, DEVICES, 18.0).start == 18.0
    for start in (0, 3):
        own = Carbon.model_validate({"regions": "DE", "start": start})
        assert completed(own, LINKS, DEVICES, 18.0).start == start


def test_a_fleet_that_charges_at_night_begins_when_it_does():
    """``availability`` says when, in hours."""
    fleet = profile("city-phones-at-night").model_copy(update={"carbon": Carbon(regions={"DE": Region()})})
    assert with_carbon(fleet, {}).carbon.start == 18.0


def rows(region="X", hours=24, value=100):
    return [f"{region},{hour},{value}" for hour in range(hours)]


def csv(tmp_path, lines, header="region,hour,g_per_kwh"):
    path = tmp_path / "grid.csv"
    content = lines if isinstance(lines, bytes) else "\n".join([header, *lines]).encode()
    path.write_bytes(content)
    return path


def test_a_users_file_comes_before_the_table(tmp_path):
    """Its regions are kept with the record, which needs the file no more."""
    path = csv(tmp_path, [*rows("X"), "", "DE, 0, 7.5"])
    found = whole(regions=["X", "DE", "FR"], grid=str(path))
    assert [len(region.g_per_kwh.split()) for region in found.regions.values()] == [24, 1, 24]
    assert found.regions["DE"].g_per_kwh == "7.5"
    assert found.regions["DE"].source == f"the user's file {path}"
    assert found.grid is None


def test_the_servers_region_may_be_the_files(tmp_path):
    """Also where no client is; neither has a region that nobody knows."""
    path = csv(tmp_path, ["X,0,5", "Y,0,6"])
    record = whole(regions="X", grid=str(path), server={"power": "1 W", "region": "Y"})
    assert (record.regions["Y"].g_per_kwh, record.regions["Y"].share) == ("6", 0)
    settings = {"regions": "Z", "grid": str(path)}
    with pytest.raises(UserError, match="unknown region 'Z'"):
        validate(Carbon, settings, Document("fleet.yaml", settings))


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        (b"", 1, "the first line must be region,hour,g_per_kwh"),
        (b"region;hour;g_per_kwh\n", 1, "the first line must be"),
        (["X,0"], 2, "'X,0' must be region,hour,g_per_kwh"),
        (["X,0,1,2"], 2, "must be region,hour,g_per_kwh"),
        ([",0,1"], 2, "region '': String should have at least 1 character"),
        ([*rows(hours=3), "X,4,1"], 5, "the next hour of X must be 3"),
        (["X,1,1"], 2, "the next hour of X must be 0"),
        (["X,0,nan"], 2, "g_per_kwh 'nan': Input should be a finite number"),
        (["X,0,-1"], 2, "g_per_kwh '-1': Input should be greater"),
        (["X,0,1e9"], 2, "g_per_kwh '1e9': Input should be less"),
        (rows(hours=23), 24, "give 1 intensity, or one for each hour of up to 3,660 whole days, not 23"),
        ([], 1, "there are no rows"),
        (["X,0,lots"], 2, "g_per_kwh 'lots': Input should be"),
    ],
)
def test_a_wrong_line_of_a_file_is_named(tmp_path, lines, line, what):
    """By file and line."""
    path = csv(tmp_path, lines)
    with pytest.raises(UserError) as raised:
        Carbon.model_validate({"regions": "X", "grid": str(path)})
    assert what in str(raised.value)
    assert raised.value.where == f"{path}:{line}"


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (b"region,hour,g_per_kwh\nX,0,\xff\n", "it is not UTF-8 text"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, lines, what):
    """Where no line is to blame."""
    path = csv(tmp_path, lines)
    with pytest.raises(UserError) as raised:
        Carbon.model_validate({"regions": "X", "grid": str(path)})
    assert what in str(raised.value)
    assert raised.value.where == str(path)


def test_a_number_may_be_an_interval():
    """Bounds of the network's energy are kept."""
    given = {"low": "0.005 kWh/GB", "high": "0.02 kWh/GB", "status": "assumed", "source": "test"}
    kept = whole(network=given).network["4g"]
    assert (kept.low, kept.value, kept.high) == (0.005, None, 0.02)


def test_editors_are_told_every_form():
    """The schema has the short forms, which validation reads."""
    found = schema()["$defs"]["Carbon"]["properties"]
    assert {"type": "string"} in found["regions"]["anyOf"]
    assert {"enum": ["busy", "owned"], "type": "string"} in found["embodied"]["anyOf"]
    assert {"type": "string"} in found["network"]["anyOf"]


def test_the_page_lists_every_key():
    """docs/carbon.md's table of keys is the record's."""
    page = (Path(__file__).parents[3] / "docs" / "carbon.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \| (?:required|`|by link)", page, flags=re.MULTILINE)) == set(
        Carbon.model_fields
    )
    for name in table()["links"]:
        assert f"`{name}`" in page
