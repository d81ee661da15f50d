"""Who is asked: every selector against examples worked by hand."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plans import plan, prices
from selecting import World, built, chosen, ended, everybody

from edgefl.core import catalogue, draws
from edgefl.core.errors import ScenarioError

NAMES = tuple(catalogue.entries("selectors"))


@given(
    name=st.sampled_from(NAMES),
    count=st.integers(1, 12),
    seed=st.integers(0, 2**32),
    order=st.permutations(range(0, 26, 2)),
    data=st.lists(st.integers(0, 50), min_size=26, max_size=26),
)
def test_a_choice_is_of_different_candidates_and_of_the_seed_alone(name, count, seed, order, data):
    """Over three rounds with feedback: as many as asked for, ascending, and the same for the same seed."""
    orders = (sorted(order), sorted(order) if name == "random" else order)
    found = []
    for candidates in orders:
        seconds = 1.0 + np.arange(26) % 5
        world = World(data, seconds, battery=np.linspace(0, 1, 26), seed=seed)
        selector, picks = built(name, world), []
        for round_ in range(3):
            world.round, world.now_s = round_, float(round_)
            clients = selector.select(count, np.array(candidates))
            assert len(clients) == len(set(clients.tolist())) == count
            assert set(clients.tolist()) <= set(order)
            assert (np.diff(clients) > 0).all()
            picks.append(clients.tolist())
            if hasattr(selector, "observe"):
                jobs = ended(*((client, round_, seconds[client]) for client in clients))
                losses = {job: {"loss": 1.0 + job, "loss_rms": 2.0 + job} for job in range(count // 2)}
                selector.observe(jobs, losses)
        found.append(picks)
    assert found[0] == found[1]


def test_random_keeps_the_draw_of_a_round():
    """The first selection of a round is the seed's cohort of that round; further ones differ."""
    world = World([1] * 1000, seed=5)
    selector = built("random", world)
    for world.round in (0, 1, 2):
        rng = draws.generator(5, "cohort", nth=world.round)
        expected = sorted(rng.choice(1000, 10, replace=False).tolist())
        first, second, third = (chosen(selector, 10, everybody(world)) for _ in range(3))
        assert first == expected
        assert first != second != third != first


def test_round_robin_asks_those_first_that_waited_longest():
    """0 1 2, then 3 4 and 0; with 1 and 2 away 0 and 3, whose turns were together, and of 1 to 4 then 1."""
    world = World([1] * 5)
    selector = built("round-robin", world)
    found = []
    for world.now_s, count, candidates in (
        (0.0, 3, range(5)),
        (5.0, 3, range(5)),
        (9.0, 2, [0, 3, 4]),
        (12.0, 1, [1, 2, 3, 4]),
    ):
        found.append(chosen(selector, count, candidates))
    assert found == [[0, 1, 2], [0, 3, 4], [0, 3], [1]]


def test_round_robin_counts_turns_that_were_no_choice():
    """Client 4, which was asked at 10 s because nobody else was there, comes after 0, asked at 0 s."""
    world = World([1] * 5)
    selector = built("round-robin", world)
    assert chosen(selector, 2, range(4)) == [0, 1]
    selector.observe(ended((4, 0, 3)), {})
    world.now_s = 20.0
    assert chosen(selector, 3, range(5)) == [0, 2, 3]


def test_fastest_asks_the_fastest_and_of_equals_the_first():
    """Of 4, 2, 3, 2 and 2 seconds: clients 1 and 3; without 1, 3 and 4."""
    world = World([1] * 5, seconds=[4, 2, 3, 2, 2])
    selector = built("fastest", world)
    assert chosen(selector, 2, [0, 1, 2, 3, 4]) == [1, 3]
    assert chosen(selector, 2, [4, 3, 2, 0]) == [3, 4]
    assert chosen(selector, 4, [0, 1, 2, 3, 4]) == [1, 2, 3, 4]


def test_power_of_choice_takes_the_highest_losses_of_its_candidates():
    """With as many candidates as clients: unknown losses first, then the highest known ones."""
    world = World([1] * 6)
    selector = built("power-of-choice", world, factor=10)
    selector.observe(ended((0, 0, 1), (1, 0, 1), (2, 0, 1), (3, 0, 1)), {0: {"loss": 0.3}, 1: {"loss": 0.9},
                                                                         2: {"loss": 0.5}})  # fmt: skip
    assert chosen(selector, 4, range(6)) == [1, 3, 4, 5]
    assert chosen(selector, 2, [0, 1, 2]) == [1, 2]


def test_power_of_choice_draws_candidates_by_data():
    """With one candidate a place, a client's chance is its share of the samples: 1, 2 and 5 of 8."""
    world = World([1, 2, 5])
    selector = built("power-of-choice", world, factor=1)
    counts = Counter(chosen(selector, 1, range(3))[0] for _ in range(4000))
    for client, share in enumerate((1 / 8, 2 / 8, 5 / 8)):
        assert counts[client] / 4000 == pytest.approx(share, abs=0.03)


def test_a_sample_without_replacement_has_the_chances_of_successive_draws():
    """Weights 1, 2, 3: the pair {1, 2} comes with probability 2/6 x 3/4 + 3/6 x 2/3 = 7/12."""
    stream = draws.derive(0, "test")
    pairs = Counter(
        tuple(
            sorted(draws.sample(draws.uniforms(stream, range(3), nth, count=1)[0], np.array([1.0, 2, 3]), 2))
        )
        for nth in range(4000)
    )
    assert pairs[1, 2] / 4000 == pytest.approx(7 / 12, abs=0.03)
    assert pairs[0, 1] / 4000 == pytest.approx(1 / 6 * 2 / 5 + 2 / 6 * 1 / 4, abs=0.03)


def test_energy_goes_by_the_square_of_the_level():
    """Levels 0.4 and 0.8: 1 to 4. The client at 0.2 is spared, unless all of three are needed."""
    world = World([1] * 3, battery=[0.4, 0.2, 0.8])
    selector = built("energy-aware", world)
    counts = Counter(chosen(selector, 1, range(3))[0] for _ in range(4000))
    assert counts[1] == 0
    assert counts[2] / 4000 == pytest.approx(0.8, abs=0.03)
    world = World([1] * 4, battery=[0.1, 0.2, 0.8, 0.15])
    assert chosen(built("energy-aware", world), 2, range(4)) == [1, 2]


def test_energy_needs_batteries():
    with pytest.raises(ScenarioError, match="this fleet has none"):
        catalogue.load("selectors", "energy-aware").Params().check(plan([prices("train", 2)]))
