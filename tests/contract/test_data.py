"""Requirements of every source, partition and augmentation in the catalogue."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.data import Spec
from edgefl.data.federation import federate

PARTITIONS = list(catalogue.entries("partitions"))
AUGMENTATIONS = list(catalogue.entries("augmentations"))

# What each partition may leave out; the others share everything out.
DROPS = {"classes-per-client", "by-user"}
# What needs no more than a sample for every client.
NEVER_REFUSES = {"iid", "dirichlet-equal", "shards"}


def _rng(seed):
    return np.random.default_rng(seed)


# --- partitions


def _partitioned(name, labels, classes, clients, seed=0):
    module = catalogue.load("partitions", name)
    return module.Params().split(labels, classes, clients, _rng(seed))


@pytest.mark.parametrize("name", PARTITIONS)
@given(
    labels=st.lists(st.integers(0, 4), min_size=50, max_size=300).map(np.array),
    clients=st.integers(1, 8),
    seed=st.integers(0, 2**32),
)
def test_a_partition_is_sound(name, labels, clients, seed):
    """A sorted int64 array per client, none empty, no index twice, and all indices if none may be dropped."""
    before = labels.copy()
    try:
        parts = _partitioned(name, labels, 5, clients, seed)
    except UserError:
        assert name not in NEVER_REFUSES
        return
    assert len(parts) == clients
    assert all(part.dtype == np.int64 and len(part) for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    assert together.min() >= 0
    assert together.max() < len(labels)
    if name not in DROPS:
        assert len(together) == len(labels)
    assert (labels == before).all()


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_is_reproducible(name):
    labels = np.arange(2000) % 10
    one, again, other = ([p.tolist() for p in _partitioned(name, labels, 10, 10, seed)] for seed in (0, 0, 1))
    assert one == again
    assert one != other


@pytest.mark.parametrize("name", PARTITIONS)
def test_a_partition_refuses_more_clients_than_samples(name):
    """Eleven clients of ten samples: an error of the user's, with a hint."""
    labels, split = np.arange(10), catalogue.load("partitions", name).Params().split
    spec = Spec("ten", (1, 2, 2), 10, 10, tuple("0123456789"))
    for share, where in ((1.0, "task.clients"), (0.5, "task.share")):
        with pytest.raises(UserError, match="cannot split") as caught:
            federate(spec, None, split, 11, 0, labels=(labels, labels), share=share)
        assert caught.value.hint
        assert caught.value.where == where


# --- augmentations


def _augmented(name, x, seed=0):
    module = catalogue.load("augmentations", name)
    return module.Params().augment(x, torch.Generator().manual_seed(seed))


def _images():
    return torch.rand(32, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", AUGMENTATIONS)
@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (3, 3, 16, 24)])
def test_an_augmentation_keeps_shape_and_range(name, shape):
    """Any batch, grey or coloured, square or not: same shape and type, values in [0, 1], input untouched."""
    x = torch.rand(shape, generator=torch.Generator().manual_seed(1))
    before = x.clone()
    y = _augmented(name, x)
    assert y.shape == x.shape
    assert y.dtype == x.dtype
    assert y.min() >= -1e-6
    assert y.max() <= 1 + 1e-6
    assert torch.equal(x, before)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_an_augmentation_draws_from_its_generator_alone(name):
    """The same images for the same generator, whatever the global one did; others for another, but none."""
    x = _images()
    one = _augmented(name, x)
    torch.manual_seed(99)
    torch.rand(3)
    assert torch.equal(one, _augmented(name, x))
    assert torch.equal(one, _augmented(name, x, seed=1)) == (name == "none")
    copies = _augmented(name, x[:1].expand(32, -1, -1, -1))
    assert bool((copies != copies[:1]).any()) == (name != "none")


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_an_augmentation_treats_each_sample_alone(name):
    """Changing one sample of a batch changes no other sample's result: nothing is shared across the batch."""
    x = _images()
    changed = x.clone()
    changed[3] = 1 - changed[3]
    one, other = _augmented(name, x), _augmented(name, changed)
    kept = torch.arange(len(x)) != 3
    assert torch.allclose(one[kept], other[kept], atol=1e-6)
