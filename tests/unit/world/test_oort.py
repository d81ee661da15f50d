"""Oort's terms against its paper, each worked by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from selecting import World, built, chosen, ended

PLAIN = {"scaled": False, "clip": 1.0, "penalty": 0.0, "duration": 1.0}


def explored(world, jobs, losses, **params):
    """A selector that saw the losses of some jobs, (client, round, seconds).

    A loss of None is not reported.
    """
    selector = built("oort", world, **params)
    selector.select(1, np.arange(len(world.plan.clients)))
    known = {job: {"loss_rms": loss} for job, loss in enumerate(losses) if loss is not None}
    selector.observe(ended(*jobs), known)
    return selector


def begun(selector, world, round_):
    """The same in a later round."""
    world.round = round_
    selector.select(1, np.arange(len(world.plan.clients)))
    return selector


def test_utility_is_algorithm_1s():
    """|B| times the root mean square loss, the uncertainty, and the penalty of the one above T = 2 s."""
    world = World([10, 20, 40, 9], seconds=[1, 2, 9, 1])
    jobs = [(0, 0, 1), (1, 0, 2), (2, 1, 8)]
    selector = explored(world, jobs, [3.0, 1.0, 0.5], **PLAIN | {"duration": 0.5, "penalty": 2.0})
    begun(selector, world, 4)
    assert selector.preferred_s == 2  # of 1, 1, 2, 8: place int(4 x 0.5)
    expected = [
        10 * 3.0 + math.sqrt(0.1 * math.log(5) / 1),
        20 * 1.0 + math.sqrt(0.1 * math.log(5) / 1),
        (40 * 0.5 + math.sqrt(0.1 * math.log(5) / 2)) * (2 / 8) ** 2,
    ]
    assert selector.utility(np.arange(3)) == pytest.approx(expected)


def test_utilities_are_clipped_before_the_uncertainty_is_added():
    """Of 1 to 20, the 95% quantile is 19.05."""
    world = World([1] * 21)
    jobs = [(client, 0, 1) for client in range(20)]
    selector = explored(world, jobs, range(1, 21), **PLAIN | {"clip": 0.95})
    assert selector.utility(np.arange(20)) == pytest.approx([*range(1, 20), 19.05])


def test_scaled_utilities_lie_between_0_and_1():
    """As in the authors' code: (U - 0.999 min) / (max - 0.999 min), and the uncertainty on top of it."""
    world = World([1] * 4)
    selector = explored(world, [(0, 0, 1), (1, 0, 1), (2, 0, 1)], [2.0, 3.0, 5.0], **PLAIN | {"scaled": True})
    assert selector.utility(np.arange(3)) == pytest.approx([0.002 / 3.002, 1.002 / 3.002, 1.0])
    begun(selector, world, 1)
    more = math.sqrt(0.1 * math.log(2))
    assert selector.utility(np.array([0, 2])) == pytest.approx([0.002 / 3.002 + more, 1 + more])


def test_clients_above_the_cut_off_are_drawn_by_utility():
    """Of 100, 96 and 94 the last is below 95% of the first; the others have 100 and 96 of 196 chances."""
    selector = explored(
        World([1] * 3), [(n, 0, 1) for n in range(3)], [100.0, 96.0, 94.0], **PLAIN, explore=0.0
    )
    counts = Counter(chosen(selector, 1, range(3))[0] for _ in range(4000))
    assert counts[2] == 0
    assert counts[0] / 4000 == pytest.approx(100 / 196, abs=0.03)
    losses = [100.0, 50.0, 48.0, 47.0]
    selector = explored(World([1] * 4), [(n, 0, 1) for n in range(4)], losses, **PLAIN, explore=0.0)
    counts = Counter(client for _ in range(500) for client in chosen(selector, 2, range(4)))
    assert counts[3] == 0
    assert min(counts[client] for client in range(3)) > 100


def test_unexplored_clients_are_drawn_by_speed():
    """Of 1 s and 3 s: three to one."""
    selector = built("oort", World([1] * 2, seconds=[1, 3]))
    counts = Counter(chosen(selector, 1, range(2))[0] for _ in range(4000))
    assert counts[0] / 4000 == pytest.approx(0.75, abs=0.03)


def test_a_share_of_epsilon_explores():
    """Half of two is one of each kind; half of one is either, half of the time."""
    selector = explored(World([1] * 4), [(0, 0, 1), (1, 0, 1)], [1.0, 1.0], explore=0.5)
    found = [chosen(selector, 2, range(4)) for _ in range(50)]
    assert all(first < 2 <= second for first, second in found)
    alone = [chosen(selector, 1, range(4))[0] for _ in range(2000)]
    assert sum(client < 2 for client in alone) / 2000 == pytest.approx(0.5, abs=0.04)


def test_either_kind_stands_in_for_the_other():
    """Epsilon 0 with too few explored clients, and epsilon 1 with too few unexplored ones."""
    for explore in (0.0, 1.0):
        selector = explored(World([1] * 4), [(0, 0, 1), (1, 0, 1)], [1.0, 1.0], explore=explore)
        assert len(chosen(selector, 3, range(4))) == 3


def test_epsilon_decays_to_its_least():
    """0.9, 0.9 x 0.98, and 0.2 in the end."""
    world = World([1] * 5)
    selector = built("oort", world)
    found = [begun(selector, world, round_).epsilon for round_ in (0, 1, 200)]
    assert found == pytest.approx([0.9, 0.882, 0.2])


@pytest.mark.parametrize(("later", "preferred_s"), [(4.0, 3.0), (5.0, 1.0), (6.0, 1.0)])
def test_the_pacer_relaxes_the_preferred_duration(later, preferred_s):
    """Two rounds a window: 5 + 5, then 5 + ``later``; T rises from 1 to 3 s if that fell."""
    world = World([1] * 4, seconds=[1, 2, 3, 4])
    selector = built("oort", world, window=2, duration=0.0, duration_step=0.5)
    for round_, loss in enumerate((5.0, 5.0, 5.0, later)):
        world.round = round_
        client = chosen(selector, 1, range(4))[0]
        assert selector.preferred_s == 1
        selector.observe(ended((client, round_, client + 1)), {0: {"loss_rms": loss}})
    assert begun(selector, world, 4).preferred_s == preferred_s


def test_the_last_duration_counts():
    """Predicted 1 s and took 5: T, the slowest's here, is 5. A job that did not arrive changes nothing."""
    world = World([1] * 2)
    selector = explored(world, [(0, 0, 5), (1, 0, math.nan)], [1.0, None], duration=0.99)
    assert begun(selector, world, 1).preferred_s == 5


def test_clients_that_were_asked_too_often_are_barred():
    """After two picks client 0 is not asked again, as long as there are others; at most 30% are barred."""
    selector = explored(World([1] * 5), [(0, 0, 1)], [9.0], picks=2, explore=0.0)
    assert chosen(selector, 1, range(5)) == [0]
    selector.observe(ended((0, 0, 1)), {0: {"loss_rms": 9.0}})
    assert chosen(selector, 4, range(5)) == [1, 2, 3, 4]
    jobs = [(client, 0, 1) for client in (0, 0, 0, 1, 1, 2, 3, 4)]
    selector = explored(World([1] * 5), jobs, [1.0] * 8, picks=2, explore=0.0)
    counts = Counter(client for _ in range(50) for client in chosen(selector, 1, range(5)))
    assert not counts[0]
    assert counts[1]


def test_losses_that_are_unknown_are_the_mean_of_those_known():
    """1 before any; then a client without losses has its samples times the others' mean, 3."""
    selector = explored(World([10, 20, 7]), [(0, 0, 1), (1, 0, 1)], [None, None], **PLAIN)
    assert selector.utility(np.arange(2)) == pytest.approx([10, 20])
    selector = explored(World([10, 20, 7]), [(0, 0, 1), (1, 0, 1), (2, 0, 1)], [2.0, None, 4.0], **PLAIN)
    assert selector.utility(np.arange(3)) == pytest.approx([20, 60, 28])


def test_exchanges_with_all_clients_teach_nothing():
    """They leave clients unexplored, unlike jobs of clients that were asked because there were no others."""
    world = World([1] * 4)
    selector = explored(world, [(0, 0, 1)], [5.0], **PLAIN, explore=0.0)
    selector.observe(ended((1, 0, 1), (2, 0, 1), exchange=1), {0: {"loss_rms": 99.0}})
    assert chosen(selector, 1, range(4)) == [0]
    selector.observe(ended((3, 0, 1)), {0: {"loss_rms": 99.0}})
    assert chosen(selector, 1, range(4)) == [3]
