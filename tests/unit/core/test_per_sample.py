"""Devices with a time for each sample."""

from __future__ import annotations

import pytest
from hardware import per_sample, product, step

from edgefl.core.cost import Kernel, Work

BOARD = per_sample("20 ms", training="70 ms")


def _training(batch):
    """A step with the gradients of its weights; the side of a gradient that counts samples is k."""
    forward = [product(batch, 30, 20), product(batch, 5, 30)]
    back = [
        product(30, 20, batch)._replace(role="grad-weight"),
        product(5, 30, batch)._replace(role="grad-weight"),
        product(batch, 30, 5)._replace(role="grad-input"),
    ]
    return Work.of([*forward, *back, Kernel.moving("add_", 8000)])


@pytest.mark.parametrize("batch", [1, 7, 32])
def test_time_is_that_of_the_samples(batch):
    """A step takes the training time of each sample, a pass the forward time, other work nothing."""
    clock = BOARD.clock("x", "fp32")
    assert clock.time(_training(batch)).seconds == pytest.approx(0.07 * batch)
    single = Work.of([product(batch, 5, 20), product(5, 20, batch)._replace(role="grad-weight")])
    assert clock.time(single).seconds == pytest.approx(0.07 * batch)
    assert clock.time(step(batch)).seconds == pytest.approx(0.02 * batch)
    assert clock.time(Work.of([Kernel.moving("copy_", 10**9)])).seconds == 0


def test_the_model_does_not_matter():
    """Twice the width, and a convolution over an image's places below the dense layers, take no longer."""
    clock, batch = BOARD.clock("x", "fp32"), 6
    wide = Work.of([product(batch, 60, 20), product(batch, 5, 60)])
    convolved = Work.of([product(batch * 28 * 28, 16, 9), product(batch, 10, 3136)])
    assert clock.time(wide) == clock.time(convolved) == clock.time(step(batch))


def test_a_time_must_be_positive():
    """A device that takes no time is a mistake."""
    with pytest.raises(ValueError, match="greater than 0"):
        per_sample("0 s")
