"""Fleets: their keys, how clients are assigned, what is inherited, and the means of samplers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import link

from edgefl.core import inheriting
from edgefl.core.availability.always import Params as Always
from edgefl.core.drafts import load
from edgefl.core.draws import key, sample, uniforms
from edgefl.core.errors import ScenarioError, UnknownNameError, UserError
from edgefl.core.fleet import Failures, Fleet, FleetMember
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.samplers.half_normal import Params as HalfNormal
from edgefl.core.samplers.lognormal import Params as LogNormal
from edgefl.core.samplers.pareto import Params as Pareto
from edgefl.core.samplers.shifted_exponential import Params as ShiftedExponential
from edgefl.core.samplers.uniform import Params as Uniform
from edgefl.core.speed.load import Params as Load
from edgefl.core.speed.thermal import Params as Thermal
from edgefl.core.validation import validate
from edgefl.core.yamls import RESOLVED, Document, dump
from edgefl.planning.fleets import links_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan

DRAWS = 400_000
UNIFORM = uniforms(key(0, "test"), np.arange(DRAWS))


@pytest.mark.parametrize(
    ("sampler", "mean", "low", "high"),
    [
        (Fixed(value=1.5), 1.5, 1.5, 1.5),
        (LogNormal(mu=1, sigma=0.6), math.exp(1.18), 0, math.inf),
        (LogNormal(sigma=0), 1, 1, 1),
        (HalfNormal(minimum=2, scale=3), 2 + 3 * math.sqrt(2 / math.pi), 2, math.inf),
        (Uniform(low=0.5, high=2), 1.25, 0.5, 2),
        (ShiftedExponential(minimum=1, scale=0.5), 1.5, 1, math.inf),
        (Pareto(minimum=2, tail=4), 2 * 4 / 3, 2, math.inf),
    ],
)
def test_means_are_those_of_the_formulas(sampler, mean, low, high):
    drawn = sampler.draw(UNIFORM)
    assert drawn.shape == (DRAWS,)
    assert drawn.mean() == pytest.approx(mean, rel=0.01)
    assert drawn.min() > 0
    assert low <= drawn.min() <= drawn.max() <= high


def test_the_pareto_tail_is_a_power():
    """The share above x is (minimum / x) ** tail."""
    drawn = Pareto(tail=1.2).draw(UNIFORM)
    assert (drawn > 10).mean() == pytest.approx(10**-1.2, rel=0.03)


@pytest.mark.parametrize(
    ("weights", "count", "places"),
    [([5e-324, 1e300, 0.0], 3, [1, 0, 2]), ([1e-310, 2e-310, 0.0], 2, [1, 0]), ([0.0, 0.0, 0.0], 1, [1])],
)
def test_weights_of_any_size_are_drawn_by(weights, count, places):
    """Without a warning where one is hundreds of orders of magnitude below another."""
    drawn = sample(np.array([0.1, 0.5, 0.3]), np.array(weights), count)
    assert drawn.tolist() == places


def _dealt(shares, clients, seed=1):
    members = tuple(
        FleetMember(device=f"d{index}", share=share, link="wire") for index, share in enumerate(shares)
    )
    return Fleet(members=members, links={"wire": link()}).deal(clients, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("shares", "clients", "expected"),
    [
        ((4, 3, 2, 1), 5, [2, 2, 1, 0]),
        ((1, 1, 1), 4, [2, 1, 1]),
        # 0.6, 1.4 and 1.0: the largest remainder belongs to the first.
        ((6, 14, 10), 3, [1, 1, 1]),
        # 1/3 and 7/3 have equal remainders, which floats would make unequal.
        ((1, 7, 1), 3, [1, 2, 0]),
        ((18820, 16428, 159), 100, [53, 46, 1]),
    ],
)
def test_largest_remainder(shares, clients, expected):
    """Clients are assigned by whole shares, then by largest remainders; of equals the first listed wins."""
    assert np.bincount(_dealt(shares, clients), minlength=len(shares)).tolist() == expected


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.integers(0, 200))
def test_a_deal_is_within_one_of_its_share(shares, clients):
    counts = np.bincount(_dealt(shares, clients), minlength=len(shares)).tolist()
    assert sum(counts) == clients
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - clients * share / sum(shares)) < 1


def test_a_deal_is_shuffled_by_its_generator_alone():
    first, again, other = (_dealt((1, 1), 64, seed).tolist() for seed in (0, 0, 1))
    assert sorted(first) != first == again != other


def test_a_member_needs_its_link():
    """A member's link is the fleet's own or a network class."""
    with pytest.raises(UnknownNameError, match="unknown link 'air'\n  where: here"):
        links_of(Fleet(members=(FleetMember(device="d", link="air"),), links={"wire": link()}), "here")


@pytest.fixture
def own_profiles(tmp_path, monkeypatch):
    folder = tmp_path / "profiles"
    folder.mkdir()
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))

    def write(**files):
        for name, text in files.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")

    return write


def test_like_fills_in_what_is_not_said(own_profiles):
    """The nearest layer wins, key by key, through several profiles."""
    own_profiles(grandparent="title: g\nnotes: far\nmembers: []\n", parent="like: grandparent\nnotes: near\n")
    found = inheriting.fleet(Document.of({"like": "parent", "title": "own"}, "here"), "here").data
    assert found == {"title": "own", "notes": "near", "members": []}


@pytest.mark.parametrize(
    ("one", "what", "hint"),
    [
        ("two", "in a cycle: one -> two -> one", ""),
        ("home-lap", "unknown profile 'home-lap'", "did you mean 'home-lab'?"),
    ],
)
def test_a_profile_that_leads_nowhere_is_refused(own_profiles, one, what, hint):
    """The message names the file that refers to it."""
    own_profiles(one=f"like: {one}\n", two="like: one\n")
    with pytest.raises(UserError, match=what) as caught:
        inheriting.fleet(Document.of({"like": "one"}, "here"), "here")
    assert ".yaml" in caught.value.where
    assert hint in caught.value.hint


MEMBERS = "members: [{device: raspberry-pi-4b, link: 4g}]\n"
FULL = f"""{MEMBERS}\
availability: {{name: charging, capacity: 15 Wh, zones: [-5, 1], initial: [0.5, 0.9]}}
on_leave: pause
speed:
  - {{name: thermal, onset: 2 min}}
  - load
failures: {{crash: 0.01, crash_per_hour: 0.5, corrupt: 0.02, retries: 1, timeout: 10 min}}
"""


def fleet(text):
    document = Document.parse(text, "f.yaml")
    return validate(Fleet, document.data, document)


def test_what_was_written_out_is_read_back():
    """Through YAML and through JSON, with amounts as plain numbers."""
    found = fleet(FULL)
    assert (found.availability.name, found.availability.capacity, found.on_leave) == (
        "charging",
        15 * 3600,
        "pause",
    )
    assert found.speed == (Thermal.model_validate({"onset": "120 s"}), Load())
    numbers = {"crash": 0.01, "crash_per_hour": 0.5, "corrupt": 0.02, "retries": 1, "timeout": 600}
    assert {name: getattr(found.failures, name) for name in numbers} == numbers
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
    written_out = MEMBERS + "availability: always\nspeed: []\nfailures: {retries: 3}\n"
    assert fleet(written_out).model_dump() == read.model_dump()


SCENARIO = """\
task: {dataset: digits, clients: 4}
model: {name: mlp, hidden: [4]}
method: fedavg
fleet: {like: home-lab%s}
"""


def test_what_devices_do_not_say_is_told():
    """Who is always available, since its device has no battery, and whose throttling is unknown."""

    def assumed(addition):
        (draft,) = load(Document.parse(SCENARIO % addition, "s.yaml"))
        return plan(draft, DataAccess(need="embedded")).plan.assumed

    models = ", availability: charging, speed: [thermal], members: [{device: titan-v, link: ethernet}]"
    lines = assumed(models)
    assert lines[-2:] == (
        "charging: no battery, so always available: titan-v",
        "thermal: no throttling known of titan-v",
    )
    given_ = models.replace("charging", "{name: charging, capacity: 9 Wh}")
    assert assumed(given_.replace("[thermal]", "[{name: thermal, floor: 0.5}]")) == lines[:-2]


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
        ("failures: {timeout: 5}", "5 is not a time", ""),
        ("failures: {retries: 1000000000000000}", "failures.retries should be", ""),
        ("failures: {crahs: 0.1}", "unknown key 'crahs'", "did you mean 'crash'?"),
        ("speed: [thermall]", "unknown speed 'thermall'", "did you mean 'thermal'?"),
        ("speed: [{name: load, factor: 1e-320}]", "speed.0.factor should", ""),
        ("speed: [{name: load, length: 1 ns}]", "speed.0.length should", ""),
        ("speed: [{name: thermal, floor: 0}]", "speed.0.floor should", ""),
        ("speed: [{name: thermal, steps: 0}]", "speed.0.steps should", ""),
        ("jitter: {name: uniform, low: 2, high: 1}", "low must not be above high", ""),
    ],
)
def test_mistakes_have_one_message(line, what, hint):
    with pytest.raises(ScenarioError) as caught:
        fleet(MEMBERS + line)
    assert what in caught.value.what
    assert hint in caught.value.hint
    assert caught.value.where.startswith("f.yaml:2")
