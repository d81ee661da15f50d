"""Gradients of NumPy functions to machine precision, without automatic differentiation.

The derivative of an analytic f at x is Im f(x + ih) / h: nothing is subtracted, so that h may be 1e-30. A
loss must be written without ``abs``, conjugates and ``np.linalg``; comparisons take the real part.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

Arrays: TypeAlias = dict[str, Any]
_STEP = 1e-30


def gradient(loss: Callable[[Arrays], Any], at: Arrays) -> Arrays:
    """The gradient of a scalar loss at arrays by name."""
    found = {name: np.zeros_like(value) for name, value in at.items()}
    for name, value in at.items():
        for place in np.ndindex(value.shape):
            moved = value.astype(complex)
            moved[place] += 1j * _STEP
            found[name][place] = np.imag(loss({**at, name: moved})) / _STEP
    return found


def descended(
    loss: Callable[[Arrays, Any], Any],
    start: Arrays,
    batches: Iterable[Any],
    rate: float,
    momentum: float = 0,
) -> Arrays:
    """Gradient descent with torch's momentum, a step a batch, on loss(weights, batch)."""
    weights, speed = dict(start), {name: np.zeros_like(value) for name, value in start.items()}
    for batch in batches:
        found = gradient(lambda at, batch=batch: loss(at, batch), weights)
        for name, slope in found.items():
            speed[name] = momentum * speed[name] + slope
            weights[name] = weights[name] - rate * speed[name]
    return weights


def relu(z: Any) -> Any:
    """max(z, 0) by the real part."""
    return z * (np.real(z) > 0)


def length(z: Any, axis: Any = None) -> Any:
    """The 2-norm over an axis, or of all."""
    return np.sqrt((z * z).sum(axis=axis))


def softmax(z: Any) -> Any:
    """Over the last axis."""
    powers = np.exp(z)
    return powers / powers.sum(axis=-1, keepdims=True)


def cross_entropy(z: Any, y: Any) -> Any:
    """The mean over a batch; z (B, C), y (B,)."""
    return -np.log(softmax(z)[np.arange(len(y)), y]).mean()
