"""A data set of a user's own module: what is computed for it, and what its description and load get wrong."""

from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from edgefl.core.errors import DataError, in_one_line
from edgefl.data import Arrays, Source, Spec

SPEC = Spec("toy", (1, 2, 2), 4, 2, ("a", "b"))
ARRAYS = Arrays(
    np.arange(16, dtype=np.uint8).reshape(4, 1, 2, 2),
    np.array([0, 1, 0, 1]),
    np.zeros((2, 1, 2, 2), dtype=np.uint8),
    np.array([1, 0]),
)


def _source(spec=SPEC, loaded=ARRAYS):
    return Source(spec, lambda *_, **__: loaded, "datasets/toy.py")


def _read(source):
    return source.read(None, download=False)


def test_mean_and_deviation_are_computed_where_the_spec_has_none():
    """Of the training images alone; a channel of one level is divided by 1."""
    spec, arrays = _read(_source())
    assert spec.mean == pytest.approx((7.5 / 255,))
    assert spec.std == pytest.approx((np.arange(16).std() / 255,))
    assert (arrays.train_x == ARRAYS.train_x).all()
    assert _read(_source(replace(SPEC, mean=(0.5,), std=(0.25,))))[0].mean == (0.5,)
    assert _source().facts() == replace(SPEC, mean=(0.0,), std=(1.0,))  # until images are read
    flat = replace(ARRAYS, train_x=np.full((4, 1, 2, 2), 51, dtype=np.uint8))
    found = _read(_source(loaded=flat))[0]
    assert (found.mean, found.std) == (pytest.approx((0.2,)), (1.0,))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"shape": (2, 2)}, "shape"),
        ({"shape": (1, 2.5, 2)}, "integer"),
        ({"train_size": 0}, "greater than 0"),
        ({"mean": (0.5,)}, "both none"),
        ({"mean": (0.5,), "std": (0.0,)}, "greater than 0"),
    ],
)
def test_a_description_that_contradicts_itself(changes, says):
    """What is wrong is in the one line that a component's error gets."""
    with pytest.raises(ValidationError) as caught:
        replace(SPEC, **changes)
    assert says in in_one_line(caught.value)


@pytest.mark.parametrize(
    ("loaded", "says"),
    [
        (None, "returned None instead of edgefl.data.Arrays"),
        (replace(ARRAYS, train_x=ARRAYS.train_x / 255), "images are float64"),
        (replace(ARRAYS, train_x=ARRAYS.train_x.astype(np.float32)), "images are float32"),
        (replace(ARRAYS, test_y=np.array([1.0, 0.0])), "labels float64"),
        (replace(ARRAYS, train_x=ARRAYS.train_x.transpose(0, 2, 3, 1)), r"shape \(2, 2, 1\)"),
        (replace(ARRAYS, train_y=np.array([0, 1])), "4 images and 2 labels"),
        (replace(ARRAYS, train_y=np.array([1, 2, 1, 2])), "2 classes, from 1 to 2"),
    ],
)
def test_what_load_gets_wrong(loaded, says):
    """It is said of the module's file before a tensor is made of it."""
    with pytest.raises(DataError, match=says) as caught:
        _read(_source(loaded=loaded))
    assert caught.value.where.startswith("datasets/toy.py" if loaded else __file__)
