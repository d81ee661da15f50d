"""The clients of a plan, a column each."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from edgefl.core.arrays import Bools, Floats, Ints
from edgefl.core.devices import Battery, Throttling


@dataclass(frozen=True)
class Clients:
    """The clients, a column each; indices are into the names below, or into what there is by device.

    Attributes:
        kind: its row in every exchange's ``Prices``. Clients of one kind are alike in all that prices depend
            on: device, link, dtype, model and samples.
        slowdown: persistent multiplier of compute time.
        cell: -1 for none.
        user: whose recorded availability it has, where availability is recorded.
        cells: each cell's name in the fleet: clients with another index there share another such cell.
        batteries, throttling: by device; None for one that runs on mains, or does not throttle.
    """

    device: Ints
    link: Ints
    dtype: Ints
    model: Ints
    samples: Ints
    kind: Ints
    slowdown: Floats
    admitted: Bools
    cell: Ints
    user: Ints
    devices: tuple[str, ...]
    links: tuple[str, ...]
    dtypes: tuple[str, ...]
    models: tuple[str, ...]
    cells: tuple[str, ...]
    batteries: tuple[Battery | None, ...]
    throttling: tuple[Throttling | None, ...]

    def __len__(self) -> int:
        return len(self.device)

    def one_of_each_kind(self) -> "Clients":
        return self.taken(np.unique(self.kind, return_index=True)[1])

    def taken(self, places: Sequence[int] | Ints) -> "Clients":
        columns = (field.name for field in fields(self) if isinstance(getattr(self, field.name), np.ndarray))
        return replace(self, **{name: getattr(self, name)[places] for name in columns})


# The columns of ``Clients`` that are indices into names.
NAMED = ("device", "link", "dtype", "model")


def kinds_of(*columns: Ints) -> Ints:
    """Numbers the distinct rows of some columns of non-negative numbers (n,), in their order: (n,)."""
    places = [np.unique(column, return_inverse=True)[1] for column in columns]
    rows = np.ravel_multi_index(places, [int(place.max(initial=0)) + 1 for place in places])
    return np.unique(rows, return_inverse=True)[1].astype(np.int64)
