"""What a selector is to the world; the files in ``edgefl.world.selectors`` make one each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from edgefl.core.arrays import Ints

Jobs: TypeAlias = np.ndarray[Any, np.dtype[np.void]]
"""Ended jobs, (n,), with the fields of a job's row."""

Scalars: TypeAlias = Mapping[int, Mapping[str, float]]
"""What training reported, by the number of the job; a job that was not trained is left out."""


class Selector(ABC):
    """Chooses clients."""

    @abstractmethod
    def select(self, count: int, candidates: Ints) -> Ints:
        """``count`` different ones of more candidates, in the order of clients."""

    def places(self, count: int, candidates: int) -> Ints | None:  # noqa: ARG002 - most look at who they are
        """The places of those chosen among so many, if who they are does not matter; None if it does."""
        return None

    def observe(self, jobs: Jobs, scalars: Scalars) -> None:  # noqa: B027 - most do not learn
        """Learns of the jobs that ended since the last call, and of what training reported of them."""
