"""Public images: drawn from the training set before it is split, and the same for every client."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from batches import batches

from edgefl.core.steps import Passes
from edgefl.data import Arrays, Spec
from edgefl.data.augmentations import shift
from edgefl.data.batching import Together, prepared
from edgefl.data.federation import federate
from edgefl.data.partitions import iid
from edgefl.protocol import Phase

SPEC = Spec("toy", (2, 3, 3), 40, 10, ("a", "b"), (0.5, 0.25), (0.25, 0.5))
IID = iid.Params().split
SHIFT = shift.Params(pixels=1).augment
NINE = Passes(epochs=2, samples=9)


def _federation(clients=3, public=9, arrays=..., seed=0, **settings):
    """40 training images, each of one brightness of its own."""
    x = np.broadcast_to(np.arange(40, dtype=np.uint8)[:, None, None, None], (40, *SPEC.shape)).copy()
    given = Arrays(x, np.arange(40) % 2, x[:10], np.arange(10) % 2) if arrays is ... else arrays
    return federate(SPEC, given, IID, clients, seed=seed, public=public, **settings)


def _phase(passes=NINE, data="public"):
    return Phase("look", lambda carry, _: carry, passes, data=data)


def brightness(images):
    return images[:, 0, 0, 0].tolist()


@pytest.mark.parametrize("holdout", [0, 0.25])
def test_public_images_are_no_clients(holdout):
    """Nine different training images leave the split; with what is held out, all are somewhere."""
    found = _federation(holdout=holdout)
    assert (found.public_x.shape, found.public_x.dtype) == ((9, *SPEC.shape), torch.uint8)
    public, held = brightness(found.public_x), found.test.tolist() if holdout else []
    assert sorted([*public, *np.concatenate(found.parts).tolist(), *held]) == list(range(40))
    assert found.samples.sum() == 31 - len(held)


def test_public_images_have_a_stream_of_their_own():
    """They depend on seed and number alone, not on labels; without files they are zeros of their shape."""
    one = _federation()
    assert brightness(_federation(clients=5).public_x) == brightness(one.public_x)
    assert brightness(_federation(seed=1).public_x) != brightness(one.public_x)
    assert _federation(public=0).public_x is None
    blank = _federation(arrays=None)
    assert blank.public_x.shape == (9, *SPEC.shape)
    assert not blank.public_x.any()
    assert blank.samples.tolist() == one.samples.tolist()


def test_batches_of_public_data_are_in_order_with_their_places():
    """((x / 255) - mean) / std, cut 4 + 5 in both passes, for each client alike and never augmented."""
    found = _federation()
    images = found.public_x.double().numpy() / 255
    expected = (images - np.array([0.5, 0.25])[:, None, None]) / np.array([0.25, 0.5])[:, None, None]
    for client in range(3):
        one = list(batches(found, client, _phase(), 4, client, augment=SHIFT))
        assert [batch.y.tolist() for batch in one] == [[0, 1, 2, 3], [4, 5, 6, 7, 8]] * 2
        x = torch.cat([batch.x for batch in one[:2]]).double().numpy()
        np.testing.assert_allclose(x, expected, atol=1e-6)
    measured = prepared(SPEC, _phase(), SHIFT, found.public_x[:4], torch.Generator())
    assert torch.equal(measured, next(batches(found, 0, _phase(), 4, 0)).x)


@pytest.mark.parametrize(
    ("phase", "public"),
    [
        (_phase(Passes(epochs=1)), 9),
        (_phase(Passes(epochs=1, samples=8)), 9),
        (_phase(NINE, data="train"), 9),
        (_phase(NINE), 0),
        (_phase(replace(NINE, samples=None)), 0),
    ],
    ids=["no number", "another number", "training data", "none", "neither"],
)
def test_a_phase_says_how_many_samples_it_passes_over(phase, public):
    """A length that is not that of its data would be priced wrongly, and is refused, alone and stacked."""
    found = _federation(public=public)
    with pytest.raises(ValueError, match="phase 'look'"):
        batches(found, 0, phase, 4, 0)
    with pytest.raises(ValueError, match="phase 'look'"):
        Together(found, [0, 1], [phase, phase], 4, [0, 1])
