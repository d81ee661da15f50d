"""Seeds: one for each purpose, stable for ever."""

import itertools

from edgefl.core import draws


def test_a_seed_is_the_same_for_ever():
    assert draws.derive(7, "partition") == 5367100587895733490
    assert draws.derive(7, "job", client=3, exchange="train", nth=2) == 4289223983119563250
    first, again, other = (draws.generator(5, "x", client=client).random(4).tolist() for client in (1, 1, 2))
    assert first == again != other


def test_no_two_purposes_share_a_seed():
    """Roots, purposes, clients, exchanges and counts in all combinations give as many different seeds."""
    axes = (range(-2, 3), ("job", "jitter", "1job"), range(-1, 12), ("", "train", "1"), range(12))
    found = {
        draws.derive(root, purpose, client=client, exchange=exchange, nth=nth)
        for root, purpose, client, exchange, nth in itertools.product(*axes)
    }
    assert len(found) == 5 * 3 * 13 * 3 * 12
    assert all(0 <= seed < 2**63 for seed in found)
    # Digits do not run together.
    assert draws.derive(0, "x", client=1, nth=23) != draws.derive(0, "x", client=12, nth=3)
