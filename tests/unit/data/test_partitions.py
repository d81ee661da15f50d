import re
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from edgefl.core.errors import UserError
from edgefl.data.partitions import classes_per_client, dirichlet, dirichlet_equal, iid, shards, size_skew

CLASSES = 10
EVEN = np.arange(1000) % CLASSES  # a hundred samples of each class


def _rng(seed=0):
    return np.random.default_rng(seed)


def _sizes(parts):
    return [len(part) for part in parts]


def _counts(parts, labels, classes=CLASSES):
    return np.array([np.bincount(labels[part], minlength=classes) for part in parts])


def _shares_everything(parts, samples):
    return np.sort(np.concatenate(parts)).tolist() == list(range(samples))


labels_of_any_kind = st.lists(st.integers(0, 4), min_size=1, max_size=80).map(np.array)
seeds = st.integers(0, 2**32)


# --- iid


@settings(deadline=None)  # a loaded machine is no failure
@given(labels_of_any_kind, st.integers(1, 80), seeds)
def test_iid_cuts_equally(labels, clients, seed):
    """Everything is split into parts that differ by at most one; too many clients are refused."""
    if clients > len(labels):
        with pytest.raises(UserError, match="cannot split"):
            iid.Params().split(labels, 5, clients, _rng(seed))
        return
    parts = iid.Params().split(labels, 5, clients, _rng(seed))
    assert _shares_everything(parts, len(labels))
    assert max(_sizes(parts)) - min(_sizes(parts)) <= 1


def test_iid_mixes():
    """Labels that come sorted are mixed: with 500 samples, every client has every class."""
    assert (_counts(iid.Params().split(np.sort(EVEN), CLASSES, 2, _rng()), np.sort(EVEN)) > 0).all()


# --- dirichlet


@settings(deadline=None)
@given(labels_of_any_kind, st.integers(1, 4), st.floats(0.01, 100), seeds)
def test_dirichlet_shares_everything(labels, clients, alpha, seed):
    """Nothing is dropped or repeated, and every client has min_samples; or the settings are refused."""
    params = dirichlet.Params(alpha=alpha, min_samples=2)
    try:
        parts = params.split(labels, 5, clients, _rng(seed))
    except UserError:
        return
    assert _shares_everything(parts, len(labels))
    assert min(_sizes(parts)) >= 2


@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("alpha", [1e-9, 1e-3])
def test_dirichlet_with_a_vanishing_alpha(alpha, few):
    """Each class then goes to one client, up to the rounding of proportions near 0."""
    params = dirichlet.Params(alpha=alpha, min_samples=10)
    with patched(_FEW=few):
        counts = _counts(params.split(EVEN, CLASSES, 3, _rng()), EVEN)
    assert counts.max(axis=0).min() >= 98
    assert counts.sum() == 1000


def test_dirichlet_with_a_huge_alpha_is_nearly_iid():
    """Ten clients then have ten of each class, up to rounding, as long as none is full."""
    params = dirichlet.Params(alpha=1e6)
    counts = _counts(params.split(EVEN, CLASSES, 10, _rng()), EVEN)
    assert (abs(counts[:, :8] - 10) <= 1).all()


def test_dirichlet_gives_full_clients_nothing_more():
    """A client with n/N samples gets none of the following classes."""
    parts = dirichlet.Params(alpha=0.1).split(EVEN, CLASSES, 5, _rng())
    counts = _counts(parts, EVEN)
    held_before = np.cumsum(counts, axis=1) - counts
    assert (held_before[counts > 0] < 1000 / 5).all()


def test_dirichlet_is_more_skewed_with_a_smaller_alpha():
    """The largest class's share of a client grows as alpha falls."""

    def skew(alpha):
        counts = _counts(dirichlet.Params(alpha=alpha).split(EVEN, CLASSES, 10, _rng()), EVEN)
        return (counts.max(axis=1) / counts.sum(axis=1)).mean()

    assert skew(0.1) > skew(1.0) + 0.1 > skew(100.0) + 0.2


def test_dirichlet_gives_who_has_an_even_share_nothing_more():
    """The first class goes whole to one of two clients, n / N of all; the second then goes to the other."""
    available, alpha = np.array([10, 10]), 1e-6
    drawn = [dirichlet._draw(alpha, available, 2, _rng(seed)) for seed in range(20)]  # noqa: SLF001 - redraws hide it
    for counts in (*drawn, *dirichlet._drawn(alpha, available, (20, 2), _rng())):  # noqa: SLF001 - likewise
        assert counts.sum(axis=1).tolist() == [10, 10]


def test_two_shards_are_the_default():
    """As in the paper."""
    parts = [
        params.split(EVEN, CLASSES, 5, _rng())
        for params in (shards.Params(), shards.Params(shards_per_client=2))
    ]
    for one, other in zip(*parts, strict=True):
        assert np.array_equal(one, other)


def test_dirichlet_refuses_too_few_samples():
    """101 clients of 10 samples each need 1,010."""
    with pytest.raises(UserError, match=r"\(1000\) to give 101 clients 10 each"):
        dirichlet.Params().split(EVEN, CLASSES, 101, _rng())


def test_dirichlet_gives_up():
    """Three classes that each go to one client whole cannot fill 4 clients: an error, not an endless loop."""
    labels = np.repeat([0, 1, 2], 100)
    with pytest.raises(UserError, match="none of 101,000 draws") as caught:
        dirichlet.Params(alpha=1e-9).split(labels, 3, 4, _rng())
    assert "larger alpha" in caught.value.hint
    assert "such as" not in caught.value.hint


def test_dirichlet_says_what_would_have_done():
    """Of 100 samples, no draw gives each of eight clients twelve; some give all of them a few."""
    with pytest.raises(UserError, match="draws") as caught:
        dirichlet.Params(alpha=0.5, min_samples=12).split(np.zeros(100, dtype=int), 1, 8, _rng())
    best = int(re.search(r"such as (\d+)", caught.value.hint)[1])
    dirichlet.Params(alpha=0.5, min_samples=best).split(np.zeros(100, dtype=int), 1, 8, _rng())
    assert 3 < best < 12


def test_dirichlet_draws_on_where_few_draws_do():
    """At alpha 0.05, one of some ten thousand draws gives each of 100 clients ten of 50,000 samples."""
    labels = np.arange(50_000) % CLASSES
    with patched(_MORE=0), pytest.raises(UserError, match="none of 1,000 draws"):
        dirichlet.Params(alpha=0.05).split(labels, CLASSES, 100, _rng(5))
    parts = dirichlet.Params(alpha=0.05).split(labels, CLASSES, 100, _rng(5))
    assert _shares_everything(parts, 50_000)
    assert min(_sizes(parts)) >= 10


@contextmanager
def patched(**numbers):
    """Dirichlet's module with other numbers of draws."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in numbers.items():
            patch.setattr(dirichlet, name, number)
        yield


@pytest.mark.parametrize("alpha", [0.05, 0.5, 20.0])
def test_draws_made_together_are_distributed_as_single_ones(alpha):
    """The largest client and the sum of squares of the counts agree within five standard errors."""
    labels, params = np.repeat([0, 2, 3], [40, 25, 35]), dirichlet.Params(alpha=alpha, min_samples=1)

    def figures(**numbers):
        with patched(**numbers):
            counts = np.stack(
                [_counts(params.split(labels, 4, 5, _rng(seed)), labels, 4) for seed in range(600)]
            )
        return counts.sum(axis=2).max(axis=1), (counts**2).sum(axis=(1, 2))

    for one, other in zip(figures(_FEW=0, _AT_ONCE=5), figures(), strict=True):
        error = np.sqrt((one.var() + other.var()) / len(one))
        assert abs(one.mean() - other.mean()) <= 5 * error


@pytest.mark.parametrize("wrong", [{"alpha": 0}, {"alpha": -1}, {"min_samples": 0}, {"beta": 1}])
def test_dirichlet_parameters(wrong):
    """Alpha above 0, at least one sample, and nothing else."""
    with pytest.raises(ValidationError):
        dirichlet.Params(**wrong)


# --- dirichlet of equal sizes


@settings(deadline=None)
@given(labels_of_any_kind, st.integers(1, 20), st.floats(1e-6, 1e6), seeds)
def test_dirichlet_equal_shares_everything_equally(labels, clients, alpha, seed):
    """Nothing is dropped, and sizes differ by at most one, whatever alpha."""
    if clients > len(labels):
        return
    parts = dirichlet_equal.Params(alpha=alpha).split(labels, 5, clients, _rng(seed))
    assert _shares_everything(parts, len(labels))
    assert max(_sizes(parts)) - min(_sizes(parts)) <= 1


def test_dirichlet_equal_follows_alpha():
    """With a vanishing alpha the first served have one class only; with a huge one all have all."""
    skewed = _counts(dirichlet_equal.Params(alpha=1e-6).split(EVEN, CLASSES, 20, _rng()), EVEN)
    assert (skewed.max(axis=1) == 50).sum() >= 10
    even = _counts(dirichlet_equal.Params(alpha=1e6).split(EVEN, CLASSES, 4, _rng()), EVEN)
    assert (even > 0).all()


# --- shards


@settings(deadline=None)
@given(labels_of_any_kind, st.integers(1, 10), st.integers(1, 4), seeds)
def test_shards_share_everything_equally(labels, clients, each, seed):
    """Nothing is dropped or repeated, and shards differ by a sample at most."""
    try:
        parts = shards.Params(shards_per_client=each).split(labels, 5, clients, _rng(seed))
    except UserError:
        # Every sample could be a shard of its own, so only too few of them are a reason.
        assert clients * each > len(labels)
        return
    assert _shares_everything(parts, len(labels))
    size = len(labels) // (clients * each)
    assert all(each * size <= one <= each * (size + 1) for one in _sizes(parts))


@settings(deadline=None)
@given(labels_of_any_kind, st.integers(1, 10), st.integers(1, 20), seeds)
def test_shards_of_a_given_size_hold_one_class(labels, clients, size, seed):
    """All clients hold equally many shards of exactly this size; no sample goes to two."""
    try:
        parts = shards.Params(shard_size=size).split(labels, 5, clients, _rng(seed))
    except UserError:
        assert (np.bincount(labels) // size).sum() < clients
        return
    assert len(set(_sizes(parts))) == 1
    assert len(np.unique(np.concatenate(parts))) == sum(_sizes(parts))
    assert (_counts(parts, labels, 5) % size == 0).all()


def test_shards_of_evenly_divided_classes_hold_one():
    """1,000 samples, 10 clients, 2 shards each: size 50, two a class."""
    parts = shards.Params(shards_per_client=2).split(EVEN, CLASSES, 10, _rng())
    assert _shares_everything(parts, 1000)
    assert set(np.unique(_counts(parts, EVEN))) <= {0, 50, 100}


def test_shards_of_the_paper():
    """McMahan et al.: MNIST by digit in 200 shards of 300; most of 100 clients then have two digits."""
    images = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # of each digit
    labels = np.repeat(np.arange(10), images)
    parts = shards.Params(shards_per_client=2).split(labels, CLASSES, 100, _rng())
    assert _sizes(parts) == [600] * 100
    digits = (_counts(parts, labels) > 0).sum(axis=1)
    assert digits.max() <= 4
    assert np.median(digits) == 2


def test_the_samples_of_a_class_are_drawn():
    """Of a class that two clients share, neither has the first half: files may have an order."""
    parts = shards.Params(shards_per_client=1).split(np.zeros(100, dtype=np.int64), 1, 2, _rng())
    assert _sizes(parts) == [50, 50]
    assert all(10 < (part < 50).sum() < 40 for part in parts)


def test_shard_size_determines_the_number():
    """FLex&Chill's numbers over 50: 1,000 samples in shards of 4 give each of 50 clients 5."""
    parts = shards.Params(shard_size=4).split(EVEN, CLASSES, 50, _rng())
    assert _sizes(parts) == [20] * 50
    assert (_counts(parts, EVEN) % 4 == 0).all()


def test_shards_lie_across_borders_of_uneven_classes():
    """Classes of 7 and 5 in 3 shards of 4: one holds both, as cuts are at equal distances."""
    labels = np.array([0] * 7 + [1] * 5)
    parts = shards.Params(shards_per_client=1).split(labels, 2, 3, _rng())
    assert sorted(map(tuple, _counts(parts, labels, 2))) == [(0, 4), (3, 1), (4, 0)]


@pytest.mark.parametrize("given_", [{"shard_size": 101}, {"shard_size": 100}, {"shards_per_client": 51}])
def test_too_few_shards(given_):
    """Shards larger than a class, fewer than clients, or more than samples."""
    with pytest.raises(UserError, match="to give 20 clients"):
        shards.Params(**given_).split(EVEN, CLASSES, 20, _rng())


def test_shards_take_one_parameter_of_two():
    """Neither means two shards per client; both are an error."""
    assert _sizes(shards.Params().split(EVEN, CLASSES, 5, _rng())) == [200] * 5
    with pytest.raises(ValidationError, match="not both"):
        shards.Params(shards_per_client=2, shard_size=10)


# --- classes per client


@settings(deadline=None)
@given(labels_of_any_kind, st.integers(1, 8), st.integers(1, 5), seeds)
def test_classes_per_client(labels, clients, k, seed):
    """No client is empty or has more than k classes; no overlap; a class is dropped whole or not at all."""
    try:
        parts = classes_per_client.Params(k=k).split(labels, 5, clients, _rng(seed))
    except UserError:
        # With a sample of each class for every client no draw could fail.
        assert (np.bincount(labels, minlength=5) < clients).any()
        return
    counts = _counts(parts, labels, 5)
    assert min(_sizes(parts)) >= 1
    assert ((counts > 0).sum(axis=1) <= k).all()
    assert len(np.unique(np.concatenate(parts))) == sum(_sizes(parts))
    held = counts.sum(axis=0)
    assert ((held == 0) | (held == np.bincount(labels, minlength=5))).all()


def test_classes_are_split_equally():
    """Each class's holders have equally many of it, up to one; with k = 3, every client has three classes."""
    parts = classes_per_client.Params(k=3).split(EVEN, CLASSES, 20, _rng())
    counts = _counts(parts, EVEN)
    assert ((counts > 0).sum(axis=1) == 3).all()
    for column in counts.T:
        holders = column[column > 0]
        assert holders.max() - holders.min() <= 1


def test_classes_per_client_refuses_too_many_classes():
    """Eleven of ten classes."""
    with pytest.raises(UserError, match="11 of 10 classes"):
        classes_per_client.Params(k=11).split(EVEN, CLASSES, 2, _rng())


def test_classes_per_client_refuses_too_many_clients():
    """1,001 clients of 1,000 samples, and five of one class with four samples."""
    with pytest.raises(UserError, match="to give each of 1001 clients"):
        classes_per_client.Params(k=10).split(EVEN, CLASSES, 1001, _rng())
    with pytest.raises(UserError, match="to give each of 5 clients"):
        classes_per_client.Params(k=1).split(np.zeros(4, dtype=np.int64), 1, 5, _rng())


# --- size skew


def test_size_skew_is_of_sizes_alone():
    """Sizes follow Dir(alpha): the variance of a share is (1/n)(1 - 1/n)/(n alpha + 1); classes are mixed."""
    clients, alpha = 5, 2.0
    params = size_skew.Params(alpha=alpha, min_samples=1)
    labels = np.arange(10_000) % CLASSES
    draws = [params.split(labels, CLASSES, clients, _rng(seed)) for seed in range(300)]
    shares = np.array([_sizes(parts) for parts in draws]) / len(labels)
    expected = (1 / clients) * (1 - 1 / clients) / (clients * alpha + 1)
    assert shares.var(axis=0).mean() == pytest.approx(expected, rel=0.1)
    largest = max(draws[0], key=len)
    mixed = np.bincount(labels[largest], minlength=CLASSES) / len(largest)
    assert np.abs(mixed - 1 / CLASSES).max() < 0.03


def test_size_skew_keeps_the_least_size_or_says_so():
    """Drawn again until it holds; refused where no draw does."""
    parts = size_skew.Params(alpha=0.5, min_samples=40).split(EVEN, CLASSES, 5, _rng())
    assert min(_sizes(parts)) >= 40
    with pytest.raises(UserError, match="too few training samples"):
        size_skew.Params(min_samples=300).split(EVEN, CLASSES, 5, _rng())
    with pytest.raises(UserError, match="none of 10,000 draws"):
        size_skew.Params(alpha=0.01, min_samples=199).split(EVEN, CLASSES, 5, _rng())
