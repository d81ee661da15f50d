"""SphereFed's fixed heads: C rows of width l, made of a net's random head (Section 4.1, Appendix D)."""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

# Appendix D, after Mettes et al. 2019.
_STEPS, _RATE = 10_000, 0.1


def by_qr(random: Tensor) -> Tensor:
    """Orthonormal rows: the QR factors of the random head's transpose (l x C)."""
    q, r = torch.linalg.qr(random.mT)
    # With fixed signs the factorisation is unique, whatever LAPACK chooses.
    rows: Tensor = (q * torch.sign(torch.diagonal(r))).mT
    return rows


def by_gram_schmidt(random: Tensor) -> Tensor:
    """The same rows as by QR but for rounding: each less its projections on those before it."""
    rows: list[Tensor] = []
    for row in random:
        rest = row
        for other in rows:
            rest = rest - (rest @ other) * other
        rows.append(rest / torch.linalg.vector_norm(rest))
    return torch.stack(rows)


def by_tammes(random: Tensor) -> Tensor:
    """Unit rows as far apart as 10^4 steps bring them (Mettes et al. 2019).

    SGD on the mean over rows of the largest cosine to another row; rows are normalised after each step. With
    C <= l + 1 the optimum is a simplex, where all cosines are -1 / (C - 1): the rows are not orthogonal. The
    momentum of 0.9 is left out: in the authors' code it restarts with every normalisation, so that it never
    acts. Left running, 10 rows of width 64 end at a largest cosine of -0.07 in place of -0.09; the optimum
    is -0.11.
    """
    if random.is_meta:
        return random
    points = F.normalize(random, dim=-1)
    # Rows never leave the span of the first ones, so that min(C, l) coordinates tell all about them.
    basis, coordinates = torch.linalg.qr(points.mT)
    own = coordinates.mT.contiguous().cpu()
    moved: Tensor = apart(own.numpy().tobytes(), len(own)).to(random.device) @ basis.mT
    return moved


@lru_cache(maxsize=8)
def apart(data: bytes, rows: int) -> Tensor:
    """The rows of coordinates in float64, moved apart; kept, because clients and server ask for the same."""
    points = torch.frombuffer(bytearray(data), dtype=torch.float64).view(rows, -1)
    for _ in range(_STEPS):
        nearest = (points @ points.mT).fill_diagonal_(-math.inf).argmax(dim=-1)
        gradient = points[nearest].index_add(0, nearest, points)
        points = F.normalize(points - (_RATE / rows) * gradient, dim=-1)
    return points


def at_random(random: Tensor) -> Tensor:
    """He et al. 2015: uniform on +-sqrt(6 / l), where the random head is uniform on +-sqrt(1 / l)."""
    return random * math.sqrt(6)


HEADS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "qr": by_qr,
    "gram_schmidt": by_gram_schmidt,
    "tammes": by_tammes,
    "random": at_random,
}
"""By name: the random head's weight (C, l) in float64 -> that of the fixed head."""
