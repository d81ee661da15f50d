"""Shards: the samples, sorted by class, are cut into pieces, and each client gets the same number of them.

McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data" (AISTATS 2017),
section 3: MNIST sorted by digit, 200 shards of 300 images, two for each of 100 clients. Every sample is in a
shard. Shards differ by one sample where their number does not divide that of the samples, and a shard holds
several classes where it lies across a border between them.

With ``shard_size``, every shard has this size and holds one class. The rest of a class that fills no shard is
left out, and so are the shards that are left when every client has its number.
"""

import numpy as np
from pydantic import Field, model_validator

from edgefl.core.arrays import Ints
from edgefl.data.partitions import Partition, TooFewError, deal


class Params(Partition):
    shards_per_client: int | None = Field(None, ge=1, description="shards per client, cut from all samples")
    shard_size: int | None = Field(
        None, ge=1, le=10**9, description="samples per shard; the shards are dealt out in equal numbers"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "Params":
        if self.shards_per_client is not None and self.shard_size is not None:
            raise ValueError("give shards_per_client or shard_size, not both")
        return self

    def split(self, labels: Ints, classes: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """No sample goes to two clients, and with ``shards_per_client`` each goes to one."""
        # A shard is its number of samples of each class.
        available = np.bincount(labels, minlength=classes)
        if self.shard_size is None:
            each = self.shards_per_client or 2
            number, ends = min(clients * each, len(labels)), np.cumsum(available)
            cuts = np.arange(number + 1) * len(labels) // number
            shards = np.diff(np.clip(cuts[:, None], ends - available, ends), axis=0)
        else:
            size = self.shard_size
            each = int((available // size).sum()) // clients
            shards = np.repeat(np.eye(classes, dtype=np.int64) * size, available // size, axis=0)
        if not each or len(shards) < clients * each:
            what = f"{each} shards" if self.shard_size is None else f"a shard of {size} samples"
            raise TooFewError(labels, clients, what, "use fewer clients, or fewer or smaller shards")
        dealt = rng.permutation(len(shards))[: clients * each]
        return deal(labels, shards[dealt].reshape(clients, each, classes).sum(axis=1), rng)
