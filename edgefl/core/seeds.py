"""Seeds of random draws, derived from the run's root seed and the draw's purpose.

No two draws share a stream, and adding a client, a round or a purpose changes no other draw.
"""

import hashlib

import numpy as np

_SEPARATOR = "\x1f"


def derive(root: int, purpose: str, *, client: int = -1, exchange: str = "", nth: int = 0) -> int:
    """A seed in [0, 2**63) for one purpose.

    ``root`` is the scenario's seed, ``client`` -1 and ``exchange`` empty for none; ``nth`` counts within the
    others: that client's n-th job, a round, an epoch.
    """
    text = _SEPARATOR.join((str(root), purpose, str(client), exchange, str(nth)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def generator(root: int, purpose: str, *, client: int = -1, nth: int = 0) -> np.random.Generator:
    """NumPy's generator on the seed that ``derive`` gives for the same arguments."""
    return np.random.default_rng(derive(root, purpose, client=client, nth=nth))
