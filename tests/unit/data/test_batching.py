from dataclasses import replace

import numpy as np
import pytest
import torch
from batches import batches

from edgefl.core.draws import derive
from edgefl.core.errors import DataError
from edgefl.core.steps import Passes, step_sequence
from edgefl.data import Arrays, Spec
from edgefl.data.augmentations import shift
from edgefl.data.batching import normalised
from edgefl.data.federation import federate
from edgefl.data.partitions import iid
from edgefl.protocol.values import Phase

SPEC = Spec("toy", (2, 3, 3), 18, 4, ("a", "b"), (0.5, 0.25), (0.25, 0.5))
SHIFT = shift.Params(pixels=1).augment
GOLDEN = 0x9E3779B97F4A7C15


def _federation(arrays=...):
    rng = np.random.default_rng(0)
    train_x, test_x = (rng.integers(0, 256, (size, *SPEC.shape), dtype=np.uint8) for size in (18, 4))
    given = Arrays(train_x, np.arange(18) % 2, test_x, np.arange(4) % 2) if arrays is ... else arrays
    return federate(SPEC, given, iid.Params().split, 2, seed=0)


def _phase(epochs=2, **rest):
    return Phase("train", lambda carry, _: carry, Passes(epochs=epochs), **rest)


def _by_hand(federation, client):
    """The client's images as models take them, by the formula."""
    x = federation.train_x.numpy()[federation.parts[client]].astype(np.float64) / 255
    return (x - np.array([0.5, 0.25])[:, None, None]) / np.array([0.25, 0.5])[:, None, None]


def test_plain_batches_are_the_clients_images_in_order():
    """((x / 255) - mean) / std in float32, cut 4 + 5 (a rest of one is joined), the same in both passes."""
    federation = _federation()
    found = list(batches(federation, 1, _phase(data="plain"), 4, 0, augment=SHIFT))
    assert [len(batch.y) for batch in found] == [4, 5, 4, 5]
    assert found[0].x.dtype == torch.float32
    for one in (found[:2], found[2:]):
        x = torch.cat([batch.x for batch in one])
        np.testing.assert_allclose(x.numpy(), _by_hand(federation, 1), atol=1e-6)
        assert torch.cat([batch.y for batch in one]).tolist() == (federation.parts[1] % 2).tolist()


def test_images_lie_channels_last():
    """Those of one channel, too: how a batch lies decides which convolution is taken, and its last bits."""
    spec = Spec("grey", (1, 4, 3), 6, 2, ("a", "b"), (0.5,), (0.25,))
    x, y = np.zeros((6, *spec.shape), dtype=np.uint8), np.arange(6) % 2
    federation = federate(spec, Arrays(x, y, x[:2], y[:2]), iid.Params().split, 1, seed=0)
    assert next(batches(federation, 0, _phase(), 4, 0)).x.stride() == (12, 1, 3, 1)
    assert normalised(federation, np.arange(2), "test").stride() == (12, 1, 3, 1)


def _splitmix(value: int) -> int:
    """SplitMix64's output function in Python's whole numbers."""
    word = 2**64 - 1
    value &= word
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & word
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & word
    return value ^ (value >> 31)


def test_train_batches_are_shuffled_anew_in_each_pass():
    """The order is that of the samples' SplitMix64 keys: job's seed, the word shuffle and the pass."""
    federation = _federation()
    found = list(batches(federation, 0, _phase(), 4, seed=11))
    whole = _by_hand(federation, 0)
    for nth, one in enumerate((found[:2], found[2:])):
        stream = _splitmix(derive(11, "shuffle") + (nth + 1) * GOLDEN)
        order = sorted(range(9), key=lambda place: _splitmix(stream + (place + 1) * GOLDEN))
        np.testing.assert_allclose(torch.cat([batch.x for batch in one]).numpy(), whole[order], atol=1e-6)
        assert torch.cat([batch.y for batch in one]).tolist() == (federation.parts[0] % 2)[order].tolist()


@pytest.mark.parametrize("passes", [Passes(epochs=3), Passes(steps=7)])
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_batches_are_cut_as_the_costs_assume(passes, batch_size):
    phase = replace(_phase(), passes=passes)
    sizes = [len(batch.y) for batch in batches(_federation(), 0, phase, batch_size, 0)]
    assert sizes == [size for _, size in step_sequence(9, batch_size, passes)]


def test_augmentation():
    """It gets pixels in [0, 1] and is normalised afterwards; it leaves order and labels; passes differ."""
    seen, federation = [], _federation()

    def half(x, _):
        seen.append(x)
        return torch.full_like(x, 0.5)

    found = next(batches(federation, 0, _phase(), 4, 0, augment=half))
    assert 0 <= seen[0].min() < seen[0].max() <= 1
    assert seen[0].shape == (4, 2, 3, 3)
    assert found.x[:, 0].unique().tolist() == [0.0]  # (.5 - .5) / .25
    assert found.x[:, 1].unique().tolist() == [0.5]  # (.5 - .25) / .5
    labels = [
        [one.y.tolist() for one in batches(federation, 0, _phase(), 4, 5, augment=how)]
        for how in (None, SHIFT)
    ]
    assert labels[0] == labels[1]
    same = replace(federation, train_x=federation.train_x[:1].expand(18, -1, -1, -1))
    first, second = batches(same, 0, _phase(), 9, 0, augment=SHIFT)
    assert not torch.equal(first.x, second.x)


def test_views_are_stacked_in_front():
    """Two views of the same samples, differently augmented: (V, B, C, H, W) and one y."""
    found = next(batches(_federation(), 0, _phase(views=2), 9, 0, augment=SHIFT))
    assert (found.x.shape, found.y.shape) == ((2, 9, 2, 3, 3), (9,))
    assert not torch.equal(found.x[0], found.x[1])
    same = next(batches(_federation(), 0, _phase(views=2), 9, 0, augment=None))
    assert torch.equal(same.x[0], same.x[1])


def test_what_cannot_be_passed_over():
    """Data of an unknown kind, and a federation planned on assumed labels."""
    with pytest.raises(ValueError, match="'test'"):
        batches(_federation(), 0, _phase(data="test"), 4, 0)
    federation = _federation(None)
    with pytest.raises(DataError, match="planned without its files"):
        batches(federation, 0, _phase(), 4, 0)
    with pytest.raises(DataError, match="planned without its files"):
        normalised(federation, np.arange(2), "test")
