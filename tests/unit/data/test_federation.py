from dataclasses import replace

import numpy as np
import pytest

from edgefl.core.errors import UserError
from edgefl.data import Arrays, Spec, assumed_labels, federate
from edgefl.data.partitions import by_user, classes_per_client, iid
from edgefl.data.spec import evenly

SPEC = Spec("toy", (1, 2, 2), 2, 40, 10, ("a", "b"), (0.5,), (0.25,))
IID = iid.Params().split
ONE_CLASS = classes_per_client.Params(k=1).split


def _toy():
    """40 training images whose four pixels are their own number, 10 test images numbered from 100."""
    train_y, test_y = np.arange(40) % 2, np.arange(10) % 2
    train_x, test_x = (
        np.broadcast_to(
            np.arange(start, stop, dtype=np.uint8)[:, None, None, None], (stop - start, 1, 2, 2)
        ).copy()
        for start, stop in ((0, 40), (100, 110))
    )
    return Arrays(train_x, train_y, test_x, test_y)


def test_everything_is_split():
    """Four clients of ten images each, whose class counts are counted from their labels."""
    found = federate(SPEC, _toy(), IID, 4, seed=0)
    assert found.clients == 4
    assert np.sort(np.concatenate(found.parts)).tolist() == list(range(40))
    for part, counts in zip(found.parts, found.class_counts, strict=True):
        assert np.bincount(part % 2, minlength=2).tolist() == counts.tolist()
    assert not found.assumed
    assert found.train_x[7].unique().tolist() == [7]


def test_a_missing_class_is_counted_as_0():
    """Clients of one class have a row with a 0."""
    found = federate(SPEC, _toy(), ONE_CLASS, 4, seed=0)
    assert (np.sort(found.class_counts, axis=1)[:, 0] == 0).all()
    assert (found.class_counts.sum(axis=1) == [len(part) for part in found.parts]).all()


def test_personal_tests_follow_the_clients_own_classes():
    """For n training images of a class, floor(.4 n) test images of it, without repeats while they last."""
    found = federate(SPEC, _toy(), IID, 2, seed=0, personal_test=0.4)
    for counts, test in zip(found.class_counts, found.test_parts, strict=True):
        labels = found.test_y.numpy()[test]
        assert np.bincount(labels, minlength=2).tolist() == [2 * count // 5 for count in counts]
        assert max(counts) <= 12  # so that none needs more than the 5 there are
        assert len(set(test.tolist())) == len(test) >= 7
        assert test.tolist() == sorted(test.tolist())


def test_personal_tests_are_drawn_for_each_client():
    """Two clients with 10 images of each class get different 3 of the 5 test images of a class."""
    halves = [np.arange(0, 20), np.arange(20, 40)]
    one, other = federate(SPEC, _toy(), lambda *_: halves, 2, seed=0, personal_test=0.3).test_parts
    assert len(one) == len(other) == 6
    assert one.tolist() != other.tolist()


def test_personal_tests_repeat_beyond_the_stock():
    """A single client with 20 images of each class and r = .3 needs 6 of 5: all five, and one twice."""
    test = federate(SPEC, _toy(), IID, 1, seed=0, personal_test=0.3).test_parts[0]
    assert set(test.tolist()) == set(range(10))
    assert sorted(np.bincount(test)) == [1] * 8 + [2] * 2


def test_personal_tests_may_be_empty():
    """Of 2 images of a class, .3 is none."""
    found = federate(SPEC, _toy(), IID, 20, seed=0, personal_test=0.3)
    assert all(len(test) == 0 for test in found.test_parts)
    assert found.test_parts[0].dtype == np.int64


def test_personal_tests_share_of_whole_numbers():
    """.29 of 100 images is 29, though 0.29 * 100 is 28.999... in floating point."""
    spec = Spec("toy", (1, 2, 2), 1, 100, 50, ("a",), (0.5,), (0.25,))
    assert len(federate(spec, None, IID, 1, seed=0, personal_test=0.29).test_parts[0]) == 29


def test_personal_tests_of_a_class_without_test_images():
    """A class that the test set lacks is not tested."""
    toy = _toy()
    arrays = Arrays(toy.train_x, toy.train_y, toy.test_x, np.zeros(10, dtype=np.int64))
    found = federate(SPEC, arrays, IID, 1, seed=0)
    assert len(found.test_parts[0]) == 6


def test_a_clients_personal_test_does_not_depend_on_the_others():
    """Its stream is its own: with another number of clients, client 0 draws the same for the same counts."""
    halves = [np.arange(0, 20), np.arange(20, 40)]
    thirds = [np.arange(0, 20), np.arange(20, 30), np.arange(30, 40)]
    two = federate(SPEC, _toy(), lambda *_: halves, 2, seed=3)
    three = federate(SPEC, _toy(), lambda *_: thirds, 3, seed=3)
    assert two.test_parts[0].tolist() == three.test_parts[0].tolist()


def test_the_seed_decides():
    """Same seed, same parts and tests; another seed, others."""
    one, again, other = (federate(SPEC, _toy(), IID, 2, seed=seed) for seed in (0, 0, 1))
    assert [part.tolist() for part in one.parts] == [part.tolist() for part in again.parts]
    assert [test.tolist() for test in one.test_parts] == [test.tolist() for test in again.test_parts]
    assert one.parts[0].tolist() != other.parts[0].tolist()


def test_holdout_takes_training_images_for_testing():
    """A quarter of each class leaves training and replaces the test set, which is not used."""
    found = federate(SPEC, _toy(), IID, 3, seed=0, holdout=0.25)
    train = np.sort(np.concatenate(found.parts))
    assert np.bincount(found.test_y.numpy()[found.test]).tolist() == [5, 5]
    assert np.bincount(found.train_y.numpy()[train]).tolist() == [15, 15]
    # The images are numbered, the test images from 100: none of those is touched.
    kept, held = found.train_x[train, 0, 0, 0].tolist(), found.test_x[found.test, 0, 0, 0].tolist()
    assert sorted(kept + held) == list(range(40))
    assert all(set(part) <= set(found.test) for part in found.test_parts)
    assert [image % 2 for image in held] == found.test_y.numpy()[found.test].tolist()
    assert found.test_x is found.train_x  # the pixels are held once


def test_planning_without_files():
    """No pixels, labels as balanced as the sizes allow, and marked as assumed; holdouts work as well."""
    train, test = assumed_labels(SPEC)
    assert np.bincount(train).tolist() == [20, 20]
    assert np.bincount(test).tolist() == [5, 5]
    found = federate(SPEC, None, IID, 4, seed=0, holdout=0.25)
    assert found.assumed
    assert found.train_x is None
    assert found.test_x is None
    assert found.class_counts.sum() == 30


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [np.arange(3)],
        [np.arange(3), np.array([], dtype=np.int64)],
        [np.arange(3), np.array([40])],
        [np.arange(3), [0.5, 1.5]],
        [np.arange(3), [[1], [2]]],
        [np.arange(3), None],
    ],
)
def test_a_partition_that_is_wrong(parts):
    """Too few parts, an empty part, an index out of range and no indices are errors of the partition."""
    with pytest.raises(UserError, match="the partition is invalid"):
        federate(SPEC, _toy(), lambda *_: parts, 2, seed=0)


@pytest.mark.parametrize("parts", [[[0, 5], [5, 7]], [[0, 5, 5], [7]]])
def test_a_partition_gives_no_sample_twice(parts):
    """Neither to two clients nor to one; the message has the index, and the line of the function."""
    with pytest.raises(UserError, match="the index 5 is given more than once") as caught:
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
    for part, test in zip(found.parts, found.test_parts, strict=True):
        assert not set(part.tolist()) & set(test.tolist())


def test_pooled_data_have_no_holdout():
    """Both replace the test set."""
    with pytest.raises(UserError, match="exclude each other"):
        federate(SPEC, _toy(), IID, 5, seed=0, pooled=0.2, holdout=0.2)


BY_USER = by_user.Params().split


def test_a_client_has_one_users_samples():
    """All of them; pooled, those of the test part too."""
    owners = np.arange(40) // 10, np.arange(10) % 4
    arrays = replace(_toy(), train_users=owners[0], test_users=owners[1])
    # Said by the source, or by the images, which know better.
    for given, images in ((owners, _toy()), ((evenly(40, 2), evenly(10, 2)), arrays)):
        found = federate(SPEC, images, BY_USER, 3, seed=0, users=given)
        whose = [set(owners[0][part].tolist()) for part in found.parts]
        assert [len(one) for one in whose] == [1, 1, 1]
        assert len(set.union(*whose)) == 3
        assert found.samples.tolist() == [10, 10, 10]
    pooled = federate(SPEC, arrays, BY_USER, 4, seed=0, users=owners, pooled=0.1)
    everyone = np.concatenate(owners)
    for part, test in zip(pooled.parts, pooled.test_parts, strict=True):
        assert len(set(everyone[np.concatenate([part, test])].tolist())) == 1


def test_several_users_make_a_client_and_too_few_are_refused():
    """Two each; a third client has nobody left."""
    two = by_user.Params(users_per_client=2).split
    users = evenly(40, 4), evenly(10, 4)
    assert federate(SPEC, None, two, 2, seed=0, users=users).samples.tolist() == [20, 20]
    with pytest.raises(UserError, match="need 6 users, and 4 of 4 have samples"):
        federate(SPEC, None, two, 3, seed=0, users=users)
