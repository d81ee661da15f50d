"""How similar two representations of the same samples are.

x (n, d) and y (n, d') hold one row a sample, such as a layer's flattened activations in two models. All
functions are differentiable. Centred kernel alignment (CKA) is that of Kornblith et al. 2019; it needs two
samples or more, and is 0 where a representation is the same for all of them.
"""

import torch
from torch import Tensor


def linear_gram(x: Tensor) -> Tensor:
    """The Gram matrix (n, n) of x (n, d) with centred columns; ``alignment`` of two is linear CKA.

    That is ||Y^T X||_F^2 / (||X^T X||_F * ||Y^T Y||_F), since ||Y^T X||_F^2 is the sum of the elementwise
    product of X X^T and Y Y^T (Kornblith et al. 2019, section 3).
    """
    x = x - x.mean(dim=0)
    return x @ x.mT


def gaussian_gram(x: Tensor, bandwidth: float) -> Tensor:
    """A centred Gaussian kernel (n, n); ``alignment`` of two is kernel CKA.

    The kernel is exp(-d^2 / (2 * bandwidth^2 * median d^2)). d is the distance of two samples, and its median
    is over all pairs (i, j), those with i = j among them, as in the code of Kornblith et al. 2019. Gradients
    flow through the median, too.

    Args:
        bandwidth: the kernel's width as a share of the median distance.
    """
    lengths = x.square().sum(dim=1)
    squares = lengths[:, None] + lengths[None, :] - 2 * (x @ x.mT)
    gram = torch.exp(squares / (-2 * bandwidth**2 * _median(squares.flatten())).clamp(max=-_least(x)))
    rows = gram - gram.mean(dim=0)
    return rows - rows.mean(dim=1, keepdim=True)


def alignment(x: Tensor, y: Tensor) -> Tensor:
    """The cosine of the angle between two matrices (n, n), vectorised: CKA where they are centred kernels."""
    sizes = torch.linalg.vector_norm(x) * torch.linalg.vector_norm(y)
    found: Tensor = (x * y).sum() / sizes.clamp(min=_least(sizes))
    return found


def cosine(x: Tensor, y: Tensor) -> Tensor:
    """The cosine of the angle between rows, (...) for x and y (..., d); 0 where one has the length 0."""
    lengths = torch.linalg.vector_norm(x, dim=-1) * torch.linalg.vector_norm(y, dim=-1)
    found: Tensor = (x * y).sum(dim=-1) / lengths.clamp(min=_least(lengths))
    return found


def contrast(positive: Tensor, negative: Tensor) -> Tensor:
    """-log[e^p / (e^p + e^n)] of similarities p and n of the same shape, elementwise.

    It falls as p grows, and rises with n: log 2 where they are equal.
    """
    return -torch.log_softmax(torch.stack([positive, negative], dim=-1), dim=-1)[..., 0]


def _median(values: Tensor) -> Tensor:
    """The median of values (n,), the mean of the middle two where n is even."""
    # torch.median returns the lower one of two, which is 0 for the distances of two samples.
    half = values.shape[0] // 2
    smallest = torch.topk(values, half + 1, largest=False).values
    return smallest[-1] if values.shape[0] % 2 else smallest[-2:].mean()


def _least(values: Tensor) -> float:
    """What a denominator is at least, so that no gradient overflows."""
    return float(torch.finfo(values.dtype).tiny ** 0.5)
