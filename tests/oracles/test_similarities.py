"""Similarities of representations, against their definitions in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from complex_step import gradient

from edgefl.protocol.similarities import (
    alignment,
    cosine,
    gaussian_gram,
    linear_gram,
)

# More samples than columns, and fewer; the smallest batch that has a CKA.
SHAPES = [(9, 4, 3), (5, 12, 7), (2, 3, 5)]


def linear_cka(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return alignment(linear_gram(x), linear_gram(y))


def kernel_cka(x: torch.Tensor, y: torch.Tensor, bandwidth: float) -> torch.Tensor:
    return alignment(gaussian_gram(x, bandwidth), gaussian_gram(y, bandwidth))


def drawn(n: int, *widths: int, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.normal(1.0, 2.0, (n, width)) for width in widths]


def centring(n: int) -> np.ndarray:
    return np.eye(n) - 1 / n


def cka(k, m):
    """HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)) with HSIC = tr(K H L H), as Kornblith et al. print it."""
    h = centring(len(k))

    def hsic(a, b):
        return np.trace(a @ h @ b @ h)

    return hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))


def gaussian(x, bandwidth):
    n = len(x)
    squares = np.array([[((x[i] - x[j]) ** 2).sum() for j in range(n)] for i in range(n)])
    flat = squares.flatten()
    order = np.argsort(flat.real, kind="stable")
    median = (flat[order[(n * n - 1) // 2]] + flat[order[n * n // 2]]) / 2
    return np.exp(-squares / (2 * bandwidth**2 * median))


NUMPY = {
    "linear": (linear_cka, lambda x, y: cka(x @ x.T, y @ y.T)),
    "kernel": (
        lambda x, y: kernel_cka(x, y, 0.7),
        lambda x, y: cka(gaussian(x, 0.7), gaussian(y, 0.7)),
    ),
}


def agree(ours, theirs, x, y) -> None:
    """The value, and the gradient by x."""
    live = torch.tensor(x, requires_grad=True)
    found = ours(live, torch.tensor(y))
    (slope,) = torch.autograd.grad(found, live)
    np.testing.assert_allclose(found.detach().numpy(), theirs(x, y), rtol=0, atol=1e-10)
    expected = gradient(lambda at: theirs(at["x"], y), {"x": x})["x"]
    np.testing.assert_allclose(slope.numpy(), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NUMPY)
def test_cka_is_the_normalised_independence_criterion(name: str, shape):
    """Linear and kernel CKA, and their gradients, are those of HSIC with a centring matrix."""
    agree(*NUMPY[name], *drawn(*shape))


@pytest.mark.parametrize("similarity", [linear_cka, lambda x, y: kernel_cka(x, y, 1.0), cosine])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_does_not_vary_is_not_similar(similarity, dtype):
    """A layer that is 0 for all samples has the similarity 0, and gradients are finite."""
    x = torch.zeros(4, 6, dtype=dtype, requires_grad=True)
    found = similarity(x, torch.randn(4, 6, dtype=dtype, generator=torch.Generator().manual_seed(0))).sum()
    assert found == 0
    assert torch.autograd.grad(found, x)[0].isfinite().all()
