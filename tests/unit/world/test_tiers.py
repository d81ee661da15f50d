"""TiFL's tiers, credits and probabilities, worked by hand."""

from collections import Counter

import pytest
from selecting import World, built, chosen, ended

# By time: clients 5 and 4 are the first tier, 3 and 2 the second, 1 and 0 the third.
SECONDS = [6, 5, 4, 3, 2, 1]
MEMBERS = ([4, 5], [2, 3], [0, 1])


def test_a_round_asks_one_tier_of_speed():
    """Two clients are always a whole tier, the same all through a round; every tier has its turn."""
    world = World([1] * 6, SECONDS)
    selector, found = built("tiers", world, tiers=3), set()
    beside = {0: MEMBERS[1], 1: MEMBERS[0], 2: MEMBERS[1]}
    for world.round in range(30):
        tier = MEMBERS.index(chosen(selector, 2, range(6)))
        assert chosen(selector, 2, range(6)) == MEMBERS[tier]
        (other,) = set(chosen(selector, 3, range(6))) - set(MEMBERS[tier])
        assert other in beside[tier]
        found.add(tier)
    assert found == {0, 1, 2}


def test_credits_are_paid_and_renewed():
    """With three credits each, every six rounds ask both tiers three times."""
    world = World([1] * 4, [4, 3, 2, 1])
    selector = built("tiers", world, tiers=2, credits=3)
    found = []
    for world.round in range(12):
        found.append(tuple(chosen(selector, 2, range(4))))
    for start in (0, 6):
        assert Counter(found[start : start + 6]) == {(0, 1): 3, (2, 3): 3}


def reported(selector, first, second, third):
    """Losses of the three tiers' clients; None is not reported."""
    pairs = zip(MEMBERS, (first, second, third), strict=True)
    losses = {client: loss for members, loss in pairs for client in members if loss is not None}
    rows = [(client, 0, 1) for client in losses]
    selector.observe(ended(*rows), {job: {"loss": loss} for job, loss in enumerate(losses.values())})


def test_a_tier_that_is_learned_less_gets_more():
    """Losses 0.1, 0.5 and 0.9 give 1, 2 and 3 of 6 parts, at the end of an interval."""
    world = World([1] * 6, SECONDS)
    selector, found = built("tiers", world, tiers=3, interval=2), []
    losses = [(0.1, 0.5, 0.9)] * 2 + [(0.05, 0.02, 0.01)] * 4
    for world.round in range(7):
        chosen(selector, 2, range(6))
        found.append(selector.chances * 6)
        if world.round < len(losses):
            reported(selector, *losses[world.round])
    for round_, parts in enumerate(
        ([2, 2, 2], [2, 2, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3], [3, 2, 1])
    ):
        assert found[round_] == pytest.approx(parts), round_


def test_a_tier_of_which_nothing_is_known_gets_most():
    """Losses 0.5, none and 0.1: 2, 3 and 1 of 6 parts. Without any, tiers are alike."""
    world = World([1] * 6, SECONDS)
    selector = built("tiers", world, tiers=3, interval=1)
    for world.round, losses, parts in (
        (0, None, [2, 2, 2]),
        (1, (0.5, None, 0.1), [2, 2, 2]),
        (2, None, [2, 3, 1]),
    ):
        chosen(selector, 2, range(6))
        assert selector.chances * 6 == pytest.approx(parts)
        if losses:
            reported(selector, *losses)
