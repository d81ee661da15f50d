"""Fleets: their keys, how clients are assigned, what is inherited, and the means of samplers."""

import json
import math

import numpy as np
import pytest
from plans import link

from edgefl.core import inheriting
from edgefl.core.availability.always import Params as Always
from edgefl.core.drafts import load
from edgefl.core.draws import derive, sample, uniforms
from edgefl.core.errors import UserError
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
from edgefl.planning.dealing import by_share
from edgefl.planning.fleets import links_of
from edgefl.planning.learning import DataAccess
from edgefl.planning.plan import plan

DRAWS = 400_000
UNIFORM = uniforms(derive(0, "test"), np.arange(DRAWS))


@pytest.mark.parametrize(
    ("sampler", "mean", "low", "high"),
    [
        (Fixed(value=1.5), 1.5, 1.5, 1.5),
        (LogNormal(mu=1, sigma=0.6), math.exp(1.18), 0, math.inf),
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
    if isinstance(sampler, Pareto):
        # The share above x is (minimum / x) ** tail.
        assert (drawn > 6).mean() == pytest.approx((2 / 6) ** 4, rel=0.05)


@pytest.mark.parametrize(
    ("weights", "count", "places"),
    [([5e-324, 1e300, 0.0], 3, [1, 0, 2]), ([1e-310, 2e-310, 0.0], 2, [1, 0]), ([0.0, 0.0, 0.0], 1, [1])],
)
def test_weights_of_any_size_are_drawn_by(weights, count, places):
    drawn = sample(np.array([0.1, 0.5, 0.3]), np.array(weights), count)
    assert drawn.tolist() == places


def dealt(shares, clients, seed=1):
    members = tuple(
        FleetMember(device=f"d{index}", share=share, link="wire") for index, share in enumerate(shares)
    )
    return by_share(Fleet(members=members, links={"wire": link()}), clients, np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("shares", "clients", "expected"),
    [
        ((4, 3, 2, 1), 5, [2, 2, 1, 0]),
        # 0.6, 1.4 and 1.0: the largest remainder belongs to the first.
        ((6, 14, 10), 3, [1, 1, 1]),
        # 1/3 and 7/3 have equal remainders, which floats would make unequal.
        ((1, 7, 1), 3, [1, 2, 0]),
        ((18820, 16428, 159), 100, [53, 46, 1]),
    ],
)
def test_largest_remainder(shares, clients, expected):
    """Clients are assigned by whole shares, then by largest remainders; of equals the first listed wins."""
    assert np.bincount(dealt(shares, clients), minlength=len(shares)).tolist() == expected
    first, again, other = (dealt((1, 1), 64, seed).tolist() for seed in (0, 0, 1))
    assert sorted(first) != first == again != other


def test_like_fills_in_what_is_not_said(own):
    """The nearest layer wins, key by key, through several profiles; what leads nowhere names its file."""
    files = {"far": "title: g\nnotes: far\nmembers: []", "near": "like: far\nnotes: near"}
    files |= {"one": "like: two", "two": "like: one", "typo": "like: home-lap"}
    for name, text in files.items():
        own(f"profiles/{name}.yaml", text)

    def fleet_like(name):
        return inheriting.inherited("profiles", Document.of({"like": name, "title": "own"}, "here")).data

    assert fleet_like("near") == {"title": "own", "notes": "near", "members": []}
    with pytest.raises(UserError, match="in a cycle: one -> two -> one"):
        fleet_like("one")
    with pytest.raises(UserError, match="unknown profile 'home-lap'") as caught:
        fleet_like("typo")
    assert "typo.yaml" in caught.value.where
    assert caught.value.hint == "did you mean 'home-lab'?"
    with pytest.raises(UserError, match="unknown link 'air'\n  where: here"):
        links_of(Fleet(members=(FleetMember(device="d", link="air"),), links={"wire": link()}), "here")


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
    assert (found.availability.capacity, found.on_leave) == (15 * 3600, "pause")
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
    # What is left out, or is as if it were, is not written.
    keys = {"availability", "on_leave", "speed", "failures"}
    assert keys <= set(found.model_dump())
    for text in (MEMBERS, MEMBERS + "availability: always\nspeed: []\nfailures: {retries: 3}\n"):
        read = fleet(text)
        assert (read.availability, read.on_leave, read.speed) == (Always(), "lose", ())
        assert (read.failures, keys & set(read.model_dump())) == (Failures(), set())


SCENARIO = """\
task: {dataset: digits, clients: 4}
model: {name: mlp, hidden: [4]}
method: fedavg
fleet: {members: [{device: titan-v, link: ethernet}], availability: charging, speed: [thermal]}
"""


def test_what_devices_do_not_say_is_told():
    (draft,) = load(Document.parse(SCENARIO, "s.yaml"))
    assert plan(draft, DataAccess(need="embedded")).plan.assumed[-2:] == (
        "charging: no battery, so always available: titan-v",
        "thermal: no throttling known of titan-v",
    )
