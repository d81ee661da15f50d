import numpy as np

from edgefl.data import stratified


def test_stratified_holds_out_the_share_of_each_class():
    """Of 10 zeros and 4 ones, a half holds out 5 and 2; both parts are sorted and together everything."""
    labels = np.array([0] * 10 + [1] * 4)
    kept, held = stratified(labels, 0.5, np.random.default_rng(0))
    assert np.bincount(labels[held]).tolist() == [5, 2]
    assert np.sort(np.concatenate([kept, held])).tolist() == list(range(14))
    assert (np.diff(kept) > 0).all()
    assert (np.diff(held) > 0).all()


def test_stratified_draws_at_random():
    """Another generator holds out other samples; the same one the same."""
    labels = np.zeros(100, dtype=np.int64)
    one, again, other = (stratified(labels, 0.2, np.random.default_rng(seed))[1] for seed in (0, 0, 1))
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()
