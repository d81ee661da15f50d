"""Shards: every class is cut into pieces of one size, and each client gets the same number of pieces.

A client holds at most as many classes as it has shards, and fewer where it draws a class twice. A
shard holds one class only, unlike the cuts through sorted labels of McMahan et al. (2017).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from edgefl.core.errors import UserError
from edgefl.core.params import Strict
from edgefl.data.partitions._deal import deal, stock


class Params(Strict):
    """One of the two; two shards per client if neither is given."""

    shards_per_client: int | None = Field(
        None, ge=1, description="shards per client, each as large as possible"
    )
    shard_size: int | None = Field(
        None, ge=1, le=10**9, description="samples per shard; the shards are dealt out in equal numbers"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Params:
        if self.shards_per_client is not None and self.shard_size is not None:
            raise ValueError("give shards_per_client or shard_size, not both")
        return self


def split(
    params: Params, labels: NDArray[np.int64], classes: int, clients: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """All clients hold equally many samples, and no sample goes to two.

    The rest of a class that fills no shard is dropped, and so are the shards that are left when every client
    has its number; none are if the classes divide evenly.

    Raises:
        UserError: there are fewer shards than the clients need.
    """
    available = stock(labels, classes)
    if params.shard_size is None:
        each = params.shards_per_client or 2
        size = _largest_size(available, clients * each)
    else:
        size = params.shard_size
        each = int((available // size).sum()) // clients
    if not size or not each:
        raise UserError(
            f"too few training samples ({len(labels)}) to give {clients} clients "
            + (f"{each} shards each" if params.shard_size is None else f"a shard of {size} samples each"),
            where="task.partition",
            hint="use fewer clients, or fewer or smaller shards",
        )
    shards = rng.permutation(np.repeat(np.arange(classes), available // size))
    counts = np.zeros((clients, classes), dtype=np.int64)
    np.add.at(counts, (np.repeat(np.arange(clients), each), shards[: clients * each]), size)
    return deal(labels, counts, rng)


def _largest_size(available: NDArray[np.int64], shards: int) -> int:
    """The largest size at which the classes give that many shards; 0 if not even size 1 does."""
    size = int(available.sum()) // shards
    while size and (available // size).sum() < shards:
        size -= 1
    return size
