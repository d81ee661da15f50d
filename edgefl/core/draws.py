"""Random numbers: seeds of generators, and draws for many clients at once.

Each is a hash of what it is drawn for: of the run's seed, the purpose, the client and a count, and of nothing
else. So it does not depend on who else is drawn for, nor on what was drawn before; no two share a stream, and
adding a client, a round or a purpose changes no other. The hash of draws is SplitMix64's output function
(Steele, Lea and Flood 2014, Section 3).
"""

import hashlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from edgefl.core.arrays import Floats, Ints

Word: TypeAlias = Any
"""64 bits: an int, or NumPy's unsigned ones."""
GOLDEN = 0x9E3779B97F4A7C15
# What an int has beyond.
_MASK = 2**64 - 1


def mixed(value: Word) -> Word:
    """SplitMix64's output function."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def _next(word: Word, number: Word) -> Word:
    return mixed((word + (number + 1) * GOLDEN) & _MASK)


def _between(word: Word) -> Any:
    """The middle of one of 2**52 equal intervals: neither 0 nor 1."""
    return ((word >> 12) + 0.5) * 2.0**-52


def derive(root: int, purpose: str, *, client: int = -1, exchange: str = "", nth: int = 0) -> int:
    """A seed in [0, 2**63) for one purpose, or a stream for ``uniforms``.

    ``root`` is the scenario's seed, ``client`` -1 and ``exchange`` empty for none; ``nth`` counts within the
    others: that client's n-th job, a round, an epoch.
    """
    text = "\x1f".join((str(root), purpose, str(client), exchange, str(nth)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def generator(root: int, purpose: str, *, client: int = -1, nth: int = 0) -> np.random.Generator:
    """NumPy's generator on the seed that ``derive`` gives for the same arguments."""
    return np.random.default_rng(derive(root, purpose, client=client, nth=nth))


def uniforms(stream: int, clients: ArrayLike, nth: ArrayLike = 0, *, count: int = 2) -> Floats:
    """Independent draws from (0, 1), ``count`` for each client: (count, n).

    ``stream`` is what ``derive`` returned, ``clients`` are numbers (n,), ``nth`` is a count for each of them,
    such as the number of a job or of a day, or one for all.
    """
    places, counts = (np.atleast_1d(np.asarray(one)).astype(np.uint64) for one in (clients, nth))
    words = _next(_next(stream, places), counts)
    return _between(_next(words, np.arange(count, dtype=np.uint64)[:, None]))


def uniform(stream: int, client: int, nth: int, place: int = 0) -> float:
    """``uniforms(stream, client, nth)[place]``, 20 times as fast as with arrays of one."""
    return _between(_next(_next(_next(stream, client), nth), place))


def normals(uniform: Floats) -> Floats:
    """Standard normal draws (n,) from uniform ones (2, n), by Box and Muller (1958)."""
    return np.sqrt(-2.0 * np.log(uniform[0])) * np.cos(2.0 * np.pi * uniform[1])


def sample(uniform: Floats, weights: Floats, count: int) -> Ints:
    """The places of ``count`` items drawn one after another without replacement, in that order, (count,).

    An item's chance is its share of the weight of those that are left; items of weight 0 come last, each as
    likely as the others. The items of the smallest -log(u) / w are drawn (Efraimidis and Spirakis 2006,
    Algorithm A), so that the draw depends on each item's own number and not on the items' order.

    ``uniform`` has a draw from (0, 1) for each item, (n,); ``weights`` are at least 0, (n,).
    """
    clocks = -np.log(uniform)
    some = np.flatnonzero(weights > 0)
    # Divided by the largest: tiny weights must not make infinite clocks of equal rank, but where another is
    # larger by hundreds of orders of magnitude.
    with np.errstate(over="ignore", divide="ignore"):
        ranks = clocks[some] / (weights[some] / weights[some].max(initial=0.0))
    first = some[_smallest(ranks, min(count, len(some)))]
    if len(first) == count:
        return first
    rest = np.flatnonzero(~(weights > 0))
    return np.concatenate([first, rest[_smallest(clocks[rest], count - len(first))]])


def _smallest(values: Floats, count: int) -> Ints:
    """The places of the ``count`` smallest values, ascending."""
    places = np.argpartition(values, count)[:count] if count < len(values) else np.arange(len(values))
    return places[np.argsort(values[places])]
