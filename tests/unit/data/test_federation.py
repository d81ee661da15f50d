from dataclasses import replace

import numpy as np
import pytest

from edgefl.core.errors import UserError
from edgefl.data import Arrays, Spec
from edgefl.data.dataset import evenly
from edgefl.data.federation import federate
from edgefl.data.partitions import by_user, classes_per_client, iid

SPEC = Spec("toy", (1, 2, 2), 40, 10, ("a", "b"), (0.5,), (0.25,))
IID = iid.Params().split
ONE_CLASS = classes_per_client.Params(k=1).split
HALVES = [np.arange(0, 20), np.arange(20, 40)]


def _toy():
    """40 training images whose four pixels are their own number, 10 test images numbered from 100."""
    train_x, test_x = (
        np.broadcast_to(
            np.arange(start, stop, dtype=np.uint8)[:, None, None, None], (stop - start, 1, 2, 2)
        ).copy()
        for start, stop in ((0, 40), (100, 110))
    )
    return Arrays(train_x, np.arange(40) % 2, test_x, np.arange(10) % 2)


def _lists(parts):
    return [part.tolist() for part in parts]


def test_everything_is_split():
    """Class counts are those of the labels, with a 0 for a missing class; the seed decides."""
    found, again, other = (federate(SPEC, _toy(), IID, 4, seed=seed) for seed in (0, 0, 1))
    assert (found.clients, found.assumed) == (4, False)
    assert np.sort(np.concatenate(found.parts)).tolist() == list(range(40))
    assert found.train_x[7].unique().tolist() == [7]
    for one in (found, federate(SPEC, _toy(), ONE_CLASS, 4, seed=0)):
        for part, counts in zip(one.parts, one.class_counts, strict=True):
            assert np.bincount(part % 2, minlength=2).tolist() == counts.tolist()
    assert _lists(found.parts) == _lists(again.parts) != _lists(other.parts)
    assert _lists(found.test_parts) == _lists(again.test_parts)


def test_personal_tests_follow_the_clients_own_classes():
    """For n training images of a class, floor(.4 n) test images of it, without repeats while they last."""
    found = federate(SPEC, _toy(), IID, 2, seed=0, personal_test=0.4)
    for counts, test in zip(found.class_counts, found.test_parts, strict=True):
        labels = found.test_y.numpy()[test]
        assert np.bincount(labels, minlength=2).tolist() == [2 * count // 5 for count in counts]
        assert max(counts) <= 12  # so that none needs more than the 5 there are
        assert len(set(test.tolist())) == len(test) >= 7
        assert test.tolist() == sorted(test.tolist())
    one, other = federate(SPEC, _toy(), lambda *_: HALVES, 2, seed=0, personal_test=0.3).test_parts
    assert len(one) == len(other) == 6
    assert one.tolist() != other.tolist()


def test_personal_tests_at_the_edges():
    """They repeat beyond the stock, may be empty, lack classes without test images, and .29 of 100 is 29."""
    test = federate(SPEC, _toy(), IID, 1, seed=0, personal_test=0.3).test_parts[0]
    assert set(test.tolist()) == set(range(10))
    assert sorted(np.bincount(test)) == [1] * 8 + [2] * 2
    empty = federate(SPEC, _toy(), IID, 20, seed=0, personal_test=0.3).test_parts
    assert [(len(one), one.dtype) for one in empty] == [(0, np.int64)] * 20
    lacking = replace(_toy(), test_y=np.zeros(10, dtype=np.int64))
    assert len(federate(SPEC, lacking, IID, 1, seed=0).test_parts[0]) == 6
    spec = Spec("toy", (1, 2, 2), 100, 50, ("a",), (0.5,), (0.25,))
    assert len(federate(spec, None, IID, 1, seed=0, personal_test=0.29).test_parts[0]) == 29


def test_holdout_takes_training_images_for_testing():
    """A quarter of each class leaves training, drawn by the seed, and replaces the test set."""
    found, other = (federate(SPEC, _toy(), IID, 3, seed=seed, holdout=0.25) for seed in (0, 1))
    train = np.sort(np.concatenate(found.parts))
    assert np.bincount(found.test_y.numpy()[found.test]).tolist() == [5, 5]
    assert np.bincount(found.train_y.numpy()[train]).tolist() == [15, 15]
    # The images are numbered, the test images from 100: none of those is touched.
    kept, held = found.train_x[train, 0, 0, 0].tolist(), found.test_x[found.test, 0, 0, 0].tolist()
    assert sorted(kept + held) == list(range(40))
    assert all(set(part) <= set(found.test) for part in found.test_parts)
    assert [image % 2 for image in held] == found.test_y.numpy()[found.test].tolist()
    assert found.test_x is found.train_x  # the pixels are held once
    assert found.test.tolist() != other.test.tolist()


def test_planning_without_files():
    """No pixels, labels as balanced as the sizes allow, and marked as assumed; holdouts work as well."""
    found = federate(SPEC, None, IID, 4, seed=0, holdout=0.25)
    assert found.assumed
    assert found.train_x is found.test_x is None
    assert found.class_counts.sum(axis=0).tolist() == [15, 15]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ([np.arange(3)], "1 parts for 2 clients"),
        ([np.arange(3), np.array([], dtype=np.int64)], "client 1 has no images"),
        ([np.arange(3), np.array([40])], "indices of samples"),
        ([np.arange(3), [0.5, 1.5]], "indices of samples"),
        ([np.arange(3), [[1], [2]]], "indices of samples"),
        ([[0, 5], [5, 7]], "the index 5 is given more than once"),
        ([[0, 5, 5], [7]], "the index 5 is given more than once"),
    ],
)
def test_a_partition_that_is_wrong(parts, says):
    with pytest.raises(UserError, match=f"the partition is invalid: .*{says}") as caught:
        federate(SPEC, _toy(), lambda *_: parts, 2, seed=0)
    assert caught.value.where.startswith(__file__)


def test_a_share_is_dealt():
    """Of each class; what is left out is nobody's, and the same for every partition."""
    found = federate(SPEC, _toy(), IID, 4, seed=0, share=0.5)
    dealt = np.sort(np.concatenate(found.parts))
    assert np.bincount(dealt % 2).tolist() == [10, 10]
    other = federate(SPEC, _toy(), ONE_CLASS, 2, seed=0, share=0.5)
    assert set(np.concatenate(other.parts).tolist()) <= set(dealt.tolist())


def test_pooled_clients_test_themselves():
    """Of all 50 images, 20% of each client's own; nothing is both trained and tested on."""
    found = federate(SPEC, _toy(), IID, 5, seed=0, pooled=0.2)
    assert [len(part) for part in found.parts] == [8] * 5
    assert [len(part) for part in found.test_parts] == [2] * 5
    together = np.sort(np.concatenate([*found.parts, *found.test_parts]))
    assert together.tolist() == list(range(50))
    assert found.test.tolist() == sorted(np.concatenate(found.test_parts).tolist())
    assert found.test_x is found.train_x
    assert found.train_x[45].unique().tolist() == [105]  # the test images stand after the others
    assert found.class_counts.sum() == 40


def test_a_client_has_one_users_samples():
    split, owners = by_user.Params().split, (np.arange(40) // 10, np.arange(10) % 4)
    arrays = replace(_toy(), train_users=owners[0], test_users=owners[1])
    # Said by the source, or by the images, which know better.
    for given, images in ((owners, _toy()), ((evenly(40, 2), evenly(10, 2)), arrays)):
        found = federate(SPEC, images, split, 3, seed=0, users=given)
        whose = [set(owners[0][part].tolist()) for part in found.parts]
        assert [len(one) for one in whose] == [1, 1, 1]
        assert len(set.union(*whose)) == 3
        assert found.samples.tolist() == [10, 10, 10]
    pooled = federate(SPEC, arrays, split, 4, seed=0, users=owners, pooled=0.1)
    everyone = np.concatenate(owners)
    for part, test in zip(pooled.parts, pooled.test_parts, strict=True):
        assert len(set(everyone[np.concatenate([part, test])].tolist())) == 1


def test_several_users_make_a_client_and_too_few_are_refused():
    two, users = by_user.Params(users_per_client=2).split, (evenly(40, 4), evenly(10, 4))
    assert federate(SPEC, None, two, 2, seed=0, users=users).samples.tolist() == [20, 20]
    with pytest.raises(UserError, match="need 6 users, and 4 of 4 have samples"):
        federate(SPEC, None, two, 3, seed=0, users=users)
