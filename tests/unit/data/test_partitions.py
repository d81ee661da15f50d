"""What each partition promises of its own; what all promise is in tests/contract/test_data.py."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from edgefl.core.errors import UserError
from edgefl.data import partitions
from edgefl.data.partitions import classes_per_client, dirichlet, dirichlet_equal, iid, shards, size_skew

CLASSES = 10
EVEN = np.arange(1000) % CLASSES  # a hundred samples of each class


def _rng(seed=0):
    return np.random.default_rng(seed)


def _sizes(parts):
    return [len(part) for part in parts]


def _counts(params, labels=EVEN, clients=10, classes=CLASSES, seed=0):
    parts = params.split(labels, classes, clients, _rng(seed))
    return np.array([np.bincount(labels[part], minlength=classes) for part in parts])


labels_of_any_kind = st.lists(st.integers(0, 4), min_size=1, max_size=80).map(np.array)
seeds = st.integers(0, 2**32)


@pytest.mark.parametrize(
    "params", [iid.Params(), dirichlet_equal.Params(alpha=1e-6), dirichlet_equal.Params(alpha=50)]
)
@given(labels_of_any_kind, st.integers(1, 20), seeds)
def test_equal_sizes(params, labels, clients, seed):
    """Everything is split into parts that differ by at most one, whatever alpha."""
    if clients <= len(labels):
        parts = params.split(labels, 5, clients, _rng(seed))
        assert np.sort(np.concatenate(parts)).tolist() == list(range(len(labels)))
        assert max(_sizes(parts)) - min(_sizes(parts)) <= 1


@pytest.mark.parametrize("alpha", [1e-9, 1e-3])
def test_dirichlet_with_a_vanishing_alpha(alpha):
    """Each class then goes to one client, up to the rounding of proportions near 0."""
    counts = _counts(dirichlet.Params(alpha=alpha, min_samples=10), clients=3)
    assert counts.max(axis=0).min() >= 98
    assert counts.sum() == 1000


def test_dirichlet_follows_alpha():
    """A huge one is nearly IID: ten of each class, while no client is full; a smaller one more skewed."""
    assert (abs(_counts(dirichlet.Params(alpha=1e6))[:, :8] - 10) <= 1).all()

    def skew(alpha):
        counts = _counts(dirichlet.Params(alpha=alpha))
        return (counts.max(axis=1) / counts.sum(axis=1)).mean()

    assert skew(0.1) > skew(1.0) + 0.1 > skew(100.0) + 0.2


def test_dirichlet_gives_full_clients_nothing_more():
    """A client with n/N samples gets none of the following classes; one with less may."""
    counts = _counts(dirichlet.Params(alpha=0.1), clients=5)
    held_before = np.cumsum(counts, axis=1) - counts
    assert (held_before[counts > 0] < 1000 / 5).all()
    # Of four classes that go whole to one of two clients, each gets two: with half of all, a client is full.
    for seed in range(20):
        counts = _counts(dirichlet.Params(alpha=1e-6, min_samples=1), np.repeat(range(4), 10), 2, 4, seed)
        assert counts.sum(axis=1).tolist() == [20, 20]


@pytest.fixture
def _soon(monkeypatch):
    """No more draws than are made before whoever waits is told."""
    monkeypatch.setattr(partitions, "_MOST_DRAWS", 1000)


@pytest.mark.usefixtures("_soon")
def test_dirichlet_refuses_or_gives_up():
    """With too few samples, and after many draws; the hint names what a draw gave, and it is enough."""
    with pytest.raises(UserError, match=r"\(1000\) to give 101 clients 10 each"):
        dirichlet.Params().split(EVEN, CLASSES, 101, _rng())
    with pytest.raises(UserError, match="none of 1,000 draws") as caught:
        dirichlet.Params(alpha=1e-9).split(np.repeat([0, 1, 2], 100), 3, 4, _rng())
    assert "larger alpha" in caught.value.hint
    assert "such as" not in caught.value.hint
    ones = np.zeros(100, dtype=int)
    with pytest.raises(UserError, match="draws") as caught:
        dirichlet.Params(alpha=0.5, min_samples=12).split(ones, 1, 8, _rng())
    best = int(re.search(r"such as (\d+)", caught.value.hint)[1])
    dirichlet.Params(alpha=0.5, min_samples=best).split(ones, 1, 8, _rng())
    assert 3 < best < 12


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (dirichlet, {"alpha": 0}),
        (dirichlet, {"min_samples": 0}),
        (dirichlet_equal, {"alpha": 0}),
        (shards, {"shards_per_client": 2, "shard_size": 10}),
    ],
)
def test_wrong_parameters(kind, wrong):
    with pytest.raises(ValidationError):
        kind.Params(**wrong)


def test_dirichlet_equal_follows_alpha():
    """With a vanishing alpha the first served have one class only; with a huge one all have all."""
    skewed = _counts(dirichlet_equal.Params(alpha=1e-6), clients=20)
    assert (skewed.max(axis=1) == 50).sum() >= 10
    assert (_counts(dirichlet_equal.Params(alpha=1e6), clients=4) > 0).all()


@given(labels_of_any_kind, st.integers(1, 10), st.integers(1, 4), seeds)
def test_shards_share_everything_equally(labels, clients, each, seed):
    """Nothing is dropped or repeated, and shards differ by a sample at most."""
    try:
        parts = shards.Params(shards_per_client=each).split(labels, 5, clients, _rng(seed))
    except UserError:
        # Every sample could be a shard of its own, so only too few of them are a reason.
        assert clients * each > len(labels)
        return
    assert np.sort(np.concatenate(parts)).tolist() == list(range(len(labels)))
    size = len(labels) // (clients * each)
    assert all(each * size <= one <= each * (size + 1) for one in _sizes(parts))


def test_shards_of_the_papers():
    """McMahan et al.: MNIST by digit in 200 shards of 300; FLex&Chill: shards of 4, 5 a client."""
    images = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # of each digit
    counts = _counts(shards.Params(), np.repeat(np.arange(10), images), 100)
    assert counts.sum(axis=1).tolist() == [600] * 100
    digits = (counts > 0).sum(axis=1)
    assert (digits.max() <= 4, np.median(digits)) == (True, 2)
    counts = _counts(shards.Params(shard_size=4), clients=50)
    assert (counts.sum(axis=1) == 20).all()
    assert (counts % 4 == 0).all()


@pytest.mark.parametrize(
    ("params", "clients", "says"),
    [
        (shards.Params(shard_size=101), 20, "to give 20 clients"),
        (shards.Params(shard_size=100), 20, "to give 20 clients"),
        (shards.Params(shards_per_client=51), 20, "to give 20 clients"),
        (classes_per_client.Params(k=11), 2, "11 of 10 classes"),
        (classes_per_client.Params(k=10), 1001, "to give 1001 clients"),
        (classes_per_client.Params(k=1), 1000, "to give 1000 clients"),
        (size_skew.Params(min_samples=300), 5, "too few training samples"),
        (size_skew.Params(alpha=0.01, min_samples=199), 5, "none of 50,000 draws"),
    ],
)
def test_what_cannot_be_split(params, clients, says):
    with pytest.raises(UserError, match=says) as caught:
        params.split(EVEN, CLASSES, clients, _rng())
    assert caught.value.hint


@given(labels_of_any_kind, st.integers(1, 8), st.integers(1, 5), seeds)
def test_classes_per_client(labels, clients, k, seed):
    """No client is empty or has more than k classes; no overlap; a class is dropped whole or not at all."""
    try:
        parts = classes_per_client.Params(k=k).split(labels, 5, clients, _rng(seed))
    except UserError:
        # With a sample of each class for every client no draw could fail.
        assert (np.bincount(labels, minlength=5) < clients).any()
        return
    counts = np.array([np.bincount(labels[part], minlength=5) for part in parts])
    assert min(_sizes(parts)) >= 1
    assert ((counts > 0).sum(axis=1) <= k).all()
    assert len(np.unique(np.concatenate(parts))) == sum(_sizes(parts))
    held = counts.sum(axis=0)
    assert ((held == 0) | (held == np.bincount(labels, minlength=5))).all()


def test_size_skew_is_of_sizes_alone():
    """Sizes follow Dir(alpha): the variance of a share is (1/n)(1 - 1/n)/(n alpha + 1); classes are mixed."""
    labels, params = np.arange(10_000) % CLASSES, size_skew.Params(alpha=2.0, min_samples=1)
    draws = [_counts(params, labels, 5, seed=seed) for seed in range(300)]
    shares = np.array([counts.sum(axis=1) for counts in draws]) / len(labels)
    assert shares.var(axis=0).mean() == pytest.approx((1 / 5) * (1 - 1 / 5) / (5 * 2.0 + 1), rel=0.1)
    largest = max(draws[0], key=sum)
    assert np.abs(largest / largest.sum() - 1 / CLASSES).max() < 0.03
    assert _counts(size_skew.Params(alpha=0.5, min_samples=40), clients=5).sum(axis=1).min() >= 40
