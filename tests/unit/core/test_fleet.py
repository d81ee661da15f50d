"""Fleets: how clients are assigned, and the means of samplers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import link

from edgefl.core import inheriting
from edgefl.core.draws import key, sample, uniforms
from edgefl.core.errors import UnknownNameError, UserError
from edgefl.core.fleet import Fleet, FleetMember
from edgefl.core.samplers.fixed import Params as Fixed
from edgefl.core.samplers.half_normal import Params as HalfNormal
from edgefl.core.samplers.lognormal import Params as LogNormal
from edgefl.core.samplers.pareto import Params as Pareto
from edgefl.core.samplers.shifted_exponential import Params as ShiftedExponential
from edgefl.core.samplers.uniform import Params as Uniform
from edgefl.core.yamls import Document
from edgefl.planning.fleets import links_of

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
    """Each sampler's mean over many draws is the one its docstring gives, and its support is respected."""
    drawn = sampler.draw(UNIFORM)
    assert drawn.shape == (DRAWS,)
    assert drawn.mean() == pytest.approx(mean, rel=0.01)
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert drawn.min() > 0


def test_the_pareto_tail_is_a_power():
    """The share above x is (minimum / x) ** tail."""
    drawn = Pareto(tail=1.2).draw(UNIFORM)
    assert (drawn > 10).mean() == pytest.approx(10**-1.2, rel=0.03)


def _fleet(*shares):
    members = tuple(
        FleetMember(device=f"d{index}", share=share, link="wire") for index, share in enumerate(shares)
    )
    return Fleet(members=members, links={"wire": link()})


def _counts(shares, clients):
    dealt = _fleet(*shares).deal(clients, np.random.default_rng(1))
    return np.bincount(dealt, minlength=len(shares)).tolist()


@pytest.mark.parametrize(
    ("shares", "clients", "expected"),
    [
        ((4, 3, 2, 1), 20, [8, 6, 4, 2]),
        ((4, 3, 2, 1), 5, [2, 2, 1, 0]),
        ((1, 1, 1), 4, [2, 1, 1]),
        ((1, 1, 1), 2, [1, 1, 0]),
        # 0.6, 1.4 and 1.0: the largest remainder belongs to the first.
        ((6, 14, 10), 3, [1, 1, 1]),
        # 1/3 and 7/3 have equal remainders, which floats would make unequal.
        ((1, 7, 1), 3, [1, 2, 0]),
        ((18820, 16428, 159), 100, [53, 46, 1]),
        ((5,), 3, [3]),
    ],
)
def test_largest_remainder(shares, clients, expected):
    """Clients are assigned by whole shares, then by largest remainders; of equals the first listed wins."""
    assert _counts(shares, clients) == expected


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=6), st.integers(0, 200))
def test_a_deal_is_within_one_of_its_share(shares, clients):
    """Every client gets a member, and no member's count is a whole client away from its exact share."""
    counts = _counts(shares, clients)
    assert sum(counts) == clients
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - clients * share / sum(shares)) < 1


def test_a_deal_is_shuffled_by_its_generator_alone():
    """The same generator gives the same assignment, another one another."""
    first, again, other = (_fleet(1, 1).deal(64, np.random.default_rng(seed)).tolist() for seed in (0, 0, 1))
    assert first == again != other
    assert first != sorted(first)


def test_a_member_needs_its_link():
    """A member's link is the fleet's own or a network class; other names are refused, with a list of all."""
    with pytest.raises(UnknownNameError, match="unknown link 'air'\n  where: here"):
        links_of(Fleet(members=(FleetMember(device="d", link="air"),), links={"wire": link()}), "here")


def test_uniform_bounds_are_ordered():
    """A lower bound above the upper one is refused."""
    with pytest.raises(ValueError, match="low must not be above high"):
        Uniform(low=2, high=1)


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
    assert inheriting.fleet(Document.of({"like": "parent", "title": "own"}, "here"), "here").data == {
        "title": "own",
        "notes": "near",
        "members": [],
    }


def test_profiles_in_a_cycle_are_refused(own_profiles):
    """Profiles that inherit from each other are an error that shows the cycle, not a recursion."""
    own_profiles(one="like: two\n", two="like: one\n")
    with pytest.raises(UserError, match="in a cycle: one -> two -> one"):
        inheriting.fleet(Document.of({"like": "one"}, "here"), "here")


def test_like_a_profile_that_is_not_there(own_profiles):
    """The message names the file that refers to the unknown profile."""
    own_profiles(one="like: home-lap\n")
    with pytest.raises(UserError) as caught:
        inheriting.fleet(Document.of({"like": "one"}, "here"), "here")
    assert "unknown profile 'home-lap'" in str(caught.value)
    assert "one.yaml" in caught.value.where
    assert caught.value.hint == "did you mean 'home-lab'?"


@pytest.mark.parametrize(
    ("weights", "count", "places"),
    [
        ([5e-324, 1e300, 0.0], 3, [1, 0, 2]),
        ([5e-324, 1e300, 1.0], 2, [1, 2]),
        ([1e-310, 2e-310, 0.0], 2, [1, 0]),
        ([0.0, 0.0, 0.0], 1, [1]),
    ],
)
def test_weights_of_any_size_are_drawn_by(weights, count, places):
    """Without a warning where one is hundreds of orders of magnitude below another."""
    drawn = sample(np.array([0.1, 0.5, 0.3]), np.array(weights), count)
    assert drawn.tolist() == places
