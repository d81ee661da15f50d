"""The keys of a fleet that comes and goes: reading, writing, inheriting, and a run's identity."""

from __future__ import annotations

import json

import pytest

from edgefl.core.availability.always import Params as Always
from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.drafts import load
from edgefl.core.errors import ScenarioError
from edgefl.core.fleet import Failures, Fleet
from edgefl.core.speed.load import Params as Load
from edgefl.core.speed.thermal import Params as Thermal
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document, dump
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan
from edgefl.planning.schema import schema

MEMBERS = "members: [{device: raspberry-pi-4b, link: 4g}]\n"
FULL = (
    MEMBERS
    + """\
availability: {name: charging, capacity: 15 Wh, zones: [-5, 1], initial: [0.5, 0.9]}
on_leave: pause
speed:
  - {name: thermal, onset: 2 min}
  - load
failures: {crash: 0.01, crash_per_hour: 0.5, corrupt: 0.02, retries: 1, timeout: 10 min}
"""
)
SCENARIO = """\
task: {dataset: digits, clients: 4}
model: {name: mlp, hidden: [4]}
method: fedavg
fleet: {like: home-lab%s}
"""


def fleet(text):
    """A fleet of its YAML text."""
    document = Document.parse(text, "f.yaml")
    return validate(Fleet, document.data, document)


def drafted(addition):
    """A scenario on the home lab with more keys."""
    (draft,) = load(Document.parse(SCENARIO % addition, "s.yaml"))
    return draft


def test_all_keys_are_read():
    """Each key becomes its record, with units in seconds, joules and watts."""
    read = fleet(FULL)
    assert read.availability.name == "charging"
    assert read.availability.capacity == 15 * 3600
    assert read.on_leave == "pause"
    assert read.speed == (Thermal.model_validate({"onset": "120 s"}), Load())
    found = read.failures
    assert (found.crash, found.crash_per_hour, found.corrupt) == (0.01, 0.5, 0.02)
    assert (found.retries, found.timeout) == (1, 600)


def test_what_was_written_out_is_read_back():
    """Through YAML and through JSON, with amounts as plain numbers."""
    for text in (FULL, MEMBERS, MEMBERS + "availability: {name: intervals, rows: '0,1,2 1,0.1,1e5'}"):
        read = fleet(text)
        written = read.model_dump(mode="json")
        document = Document.parse(dump(written), "plan.yaml")
        again = validate(Fleet, document.data, Document("plan.yaml", document.data, context=RESOLVED))
        assert again == read
        assert Fleet.model_validate(json.loads(json.dumps(written)), context=RESOLVED) == read


def test_what_is_left_out_is_not_written():
    """A fleet that is always there, at constant speed and without failures, is written without the keys."""
    read = fleet(MEMBERS)
    assert (read.availability, read.on_leave, read.speed, read.failures) == (Always(), "lose", (), Failures())
    keys = {"availability", "on_leave", "speed", "failures"}
    assert keys & set(read.model_dump()) == set()
    assert keys <= set(fleet(FULL).model_dump())
    assert set(fleet(MEMBERS + "on_leave: finish").model_dump()) & keys == {"on_leave"}
    written_out = MEMBERS + "availability: always\nspeed: []\nfailures: {retries: 3}\n"
    assert fleet(written_out).model_dump() == read.model_dump()


@pytest.mark.parametrize(
    "addition",
    [
        ", availability: {name: markov, on: 1 h, off: 1 h}",
        ", on_leave: finish",
        ", speed: [thermal]",
        ", failures: {crash: 0.1}",
    ],
)
def test_each_key_changes_what_a_run_is(addition):
    """A scenario with a key resolves to something else, with its parameters written out."""
    plain_, other = (drafted(text).scenario.resolved() for text in ("", addition))
    assert plain_ != other
    assert plain_["fleet"] == {key: other["fleet"][key] for key in plain_["fleet"]}


def test_a_changed_trace_changes_the_run_id(tmp_path, monkeypatch):
    """The id follows the file's content, and not its name."""
    monkeypatch.chdir(tmp_path)
    ids = []
    for name, end in (("a.csv", 60), ("b.csv", 60), ("a.csv", 61)):
        (tmp_path / name).write_text(f"client,start_s,end_s\n0,0,{end}\n", encoding="utf-8")
        draft = drafted(f", availability: {{name: intervals, file: {name}}}")
        assert isinstance(draft.scenario.fleet.availability, Intervals)
        ids.append(plan(draft, DataAccess(need="embedded")).run_id)
    assert ids[0] == ids[1] != ids[2]


def test_what_devices_do_not_say_is_told():
    """Who is always available, since its device has no battery, and whose throttling is unknown."""
    models = ", availability: charging, speed: [thermal], members: [{device: titan-v, link: ethernet}]"
    lines = plan(drafted(models), DataAccess(need="embedded")).plan.assumed
    assert lines[-2:] == (
        "charging: no battery, so always available: titan-v",
        "thermal: no throttling known of titan-v",
    )
    assert not any("throttling" in line or "battery" in line for line in lines[:-2])
    given = models.replace("charging", "{name: charging, capacity: 9 Wh}").replace(
        "[thermal]", "[{name: thermal, floor: 0.5}]"
    )
    assert plan(drafted(given), DataAccess(need="embedded")).plan.assumed == lines[:-2]


def test_a_profile_keeps_them_for_those_like_it(tmp_path, monkeypatch):
    """A fleet has its profile's keys, and replaces those that it sets itself."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "phones.yaml").write_text("like: home-lab\n" + FULL.split("\n", 1)[1], "utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    text = SCENARIO.replace("home-lab%s", "phones, failures: {crash: 0.2}, availability: always")
    (draft,) = load(Document.parse(text, "s.yaml"))
    found = draft.scenario.fleet
    assert found.on_leave == "pause"
    assert found.availability == Always()
    assert found.failures == Failures(crash=0.2)
    assert [one.name for one in found.speed] == ["thermal", "load"]


@pytest.mark.parametrize(
    ("line", "what", "hint"),
    [
        (
            "on_leave: loose",
            "should be 'lose', 'pause', 'finish' or 'check-at-end'; got 'loose'",
            "did you mean 'lose'?",
        ),
        ("failures: {crash: 1.5}", "failures.crash should", ""),
        ("failures: {corrupt: 1}", "failures.corrupt should be less than 1; got 1", ""),
        ("failures: {timeout: 0 s}", "failures.timeout should", ""),
        ("failures: {timeout: 5}", "5 is not a time", ""),
        ("failures: {crahs: 0.1}", "unknown key 'crahs'", "did you mean 'crash'?"),
        ("speed: [thermall]", "unknown speed 'thermall'", "did you mean 'thermal'?"),
        ("speed: [{name: thermal, flor: 0.5}]", "unknown key 'flor'", "did you mean 'floor'?"),
        ("availability: {name: markov, on: 1 h, of: 1 h}", "'off' is missing", ""),
        ("availability: {name: diurnal, pek: 1}", "unknown key 'pek'", "did you mean 'peak'?"),
        ("availability: {name: charging, days: 1e-9}", "days should", ""),
        ("availability: {name: charging, hours: 0.01}", "hours should", ""),
        ("availability: {name: markov, on: 1 us, off: 1 s}", "on should", ""),
        ("failures: {retries: 1000000000000000}", "failures.retries should be", ""),
        ("speed: [{name: load, factor: 1e-320}]", "speed.0.factor should", ""),
        ("speed: [{name: thermal, floor: 0}]", "speed.0.floor should", ""),
        ("speed: [{name: load, length: 1 ns}]", "speed.0.length should", ""),
    ],
)
def test_mistakes_have_one_message(line, what, hint):
    """What is wrong, where, and the nearest valid name."""
    with pytest.raises(ScenarioError) as caught:
        fleet(MEMBERS + line)
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert caught.value.where.startswith("f.yaml:2")


def test_editors_offer_them():
    """The schema has the kinds, with the parameters of each of their files."""
    definitions = schema()["$defs"]
    assert "charging" in definitions["availability"]["anyOf"][0]["enum"]
    assert definitions["speed"]["anyOf"][0]["enum"] == ["load", "thermal"]
    assert {"availability", "on_leave", "speed", "failures"} <= set(definitions["Fleet"]["properties"])
