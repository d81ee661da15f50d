"""By user: a client's samples are one user's, or several users', as they were collected.

LEAF (Caldas et al. 2018) splits FEMNIST by writer; FLex&Chill, Table 5, trains 36 writers drawn from 712.
"""

import numpy as np
from pydantic import Field

from edgefl.core.arrays import Ints
from edgefl.core.errors import UserError
from edgefl.data.partitions import Partition, held


class Params(Partition):
    BY_USERS = True

    users_per_client: int = Field(1, ge=1, description="users whose samples a client has, drawn at random")

    def split(self, owners: Ints, users: int, clients: int, rng: np.random.Generator) -> list[Ints]:
        """All samples of the users that are drawn; the others' are left out."""
        each = self.users_per_client
        present, user = np.unique(owners, return_inverse=True)
        needed, there = clients * each, len(present)
        if needed > there:
            raise UserError(
                f"{clients} clients of {each} each need {needed} users, and {there} of {users} have samples",
                where="task.partition",
                hint="use fewer clients, or fewer users per client",
            )
        client = np.full(there, clients)
        client[rng.permutation(there)[:needed]] = np.repeat(np.arange(clients), each)
        return held(client[user], clients)
