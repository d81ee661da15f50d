"""Public images: drawn from the training set before it is split, and the same for every client."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from edgefl.core.errors import UserError
from edgefl.core.steps import Passes
from edgefl.data import Arrays, Federation, Spec, Together, batches, federate, prepared
from edgefl.data.augmentations import shift
from edgefl.data.partitions import iid
from edgefl.protocol import Phase

SPEC = Spec("toy", (2, 3, 3), 2, 40, 10, ("a", "b"), (0.5, 0.25), (0.25, 0.5))
IID = iid.Params().split
SHIFT = shift.Params(pixels=1).augment
NINE = Passes(epochs=2, samples=9)


def _arrays() -> Arrays:
    """40 training images, each of one brightness of its own."""
    x = np.broadcast_to(np.arange(40, dtype=np.uint8)[:, None, None, None], (40, *SPEC.shape)).copy()
    return Arrays(x, np.arange(40) % 2, x[:10], np.arange(10) % 2)


def _federation(clients: int = 3, public: int = 9, **settings) -> Federation:
    return federate(SPEC, _arrays(), IID, clients, seed=0, public=public, **settings)


def _phase(passes: Passes = NINE, data: str = "public") -> Phase:
    return Phase("look", lambda carry, _: carry, passes, data=data)


def brightness(images: torch.Tensor) -> list[int]:
    """The number of each image."""
    return images[:, 0, 0, 0].tolist()


def test_public_images_are_no_clients():
    """Nine different training images leave the split: together with the clients' they are all there are."""
    found = _federation()
    assert found.public_x.shape == (9, *SPEC.shape)
    assert found.public_x.dtype == torch.uint8
    public = brightness(found.public_x)
    assert sorted([*public, *np.concatenate(found.parts).tolist()]) == list(range(40))
    assert found.samples.sum() == 31


def test_public_images_have_a_stream_of_their_own():
    """They depend on the seed and their number alone; without them, the split is what it always was."""
    one = _federation()
    assert brightness(_federation(clients=5).public_x) == brightness(one.public_x)
    other = federate(SPEC, _arrays(), IID, 3, seed=1, public=9)
    assert brightness(other.public_x) != brightness(one.public_x)
    without = _federation(public=0)
    assert without.public_x is None
    plain = federate(SPEC, _arrays(), IID, 3, seed=0)
    assert [part.tolist() for part in without.parts] == [part.tolist() for part in plain.parts]


def test_held_out_images_are_not_public():
    """With a holdout, the three sets are disjoint and together everything."""
    found = _federation(holdout=0.25)
    public, train = brightness(found.public_x), np.concatenate(found.parts).tolist()
    assert sorted([*public, *train, *found.test.tolist()]) == list(range(40))
    assert (len(public), len(found.test)) == (9, 10)


def test_without_files_they_are_zeros_of_their_shape():
    """The split is the same as with files: which images are public depends on no label."""
    blank = federate(SPEC, None, IID, 3, seed=0, public=9)
    assert blank.public_x.shape == (9, *SPEC.shape)
    assert not blank.public_x.any()
    assert blank.samples.tolist() == _federation().samples.tolist()


@pytest.mark.parametrize("public", [38, 40, 1000])
def test_every_client_needs_an_image_of_its_own(public):
    """More public images than leave one for each client are refused, with the key to change."""
    with pytest.raises(UserError, match="leave one for each of 3 clients") as caught:
        _federation(public=public)
    assert caught.value.where == "task.public.samples"


def test_batches_of_public_data_are_in_order_with_their_places():
    """((x / 255) - mean) / std, cut 4 + 5 in both passes, for each client alike and never augmented."""
    found = _federation()
    for client in range(3):
        one = list(batches(found, client, _phase(), 4, client, augment=SHIFT))
        assert [batch.y.tolist() for batch in one] == [[0, 1, 2, 3], [4, 5, 6, 7, 8]] * 2
        assert all(batch.y.dtype == torch.int64 for batch in one)
        x = torch.cat([batch.x for batch in one[:2]]).double().numpy()
        images = found.public_x.double().numpy() / 255
        expected = (images - np.array([0.5, 0.25])[:, None, None]) / np.array([0.25, 0.5])[:, None, None]
        np.testing.assert_allclose(x, expected, atol=1e-6)


def test_measured_batches_are_not_augmented():
    """What ``--measure-memory`` makes of public images is what training makes of them."""
    found, generator = _federation(), torch.Generator()
    x = prepared(SPEC, _phase(), SHIFT, found.public_x[:4], generator)
    assert torch.equal(x, next(batches(found, 0, _phase(), 4, 0)).x)


def test_workers_have_the_same_public_images():
    """The tensors that processes share bring them back, bit for bit."""
    found = _federation()
    again = Federation.of_shared(SPEC, found.shared())
    assert torch.equal(again.public_x, found.public_x)
    assert again.public_x.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(found.to(torch.device("cpu")).public_x, found.public_x)
    assert found.to(torch.device("meta")).public_x.is_meta
    assert "public_x" not in _federation(public=0).shared()


@pytest.mark.parametrize(
    "phase",
    [
        _phase(Passes(epochs=1)),
        _phase(Passes(epochs=1, samples=8)),
        _phase(NINE, data="train"),
        _phase(Passes(epochs=1), data="test"),
    ],
    ids=["no number", "another number", "training data", "unknown data"],
)
def test_a_phase_says_how_many_samples_it_passes_over(phase):
    """A length that is not that of its data would be priced wrongly, and is refused, alone and stacked."""
    found = _federation()
    with pytest.raises(ValueError, match="phase 'look'"):
        batches(found, 0, phase, 4, 0)
    with pytest.raises(ValueError, match="phase 'look'"):
        Together(found, [0, 1], [phase, phase], 4, [0, 1])


def test_public_data_have_to_exist():
    """A phase on them without any is an error, not an empty phase."""
    for passes in (NINE, replace(NINE, samples=None)):
        with pytest.raises(ValueError, match="'public' data"):
            batches(_federation(public=0), 0, _phase(passes), 4, 0)
