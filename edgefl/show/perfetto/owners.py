"""What is known of a run's clients beside their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from edgefl.planning.medians import Medians
from edgefl.planning.recorded import Recorded
from edgefl.show.perfetto.packets import Arguments
from edgefl.store import Reader


class Owner(NamedTuple):
    """One client.

    Attributes:
        facts: its device, link, model and slowdown.
        bounds: what bounds its work in each exchange, by name.
    """

    facts: Arguments
    bounds: Mapping[str, str]


class Owners:
    """What is known of a run's clients beside their jobs."""

    def __init__(self, reader: Reader, known: Recorded | None) -> None:
        self._kinds = {row["kind"]: row for row in reader.rows("kinds")}
        fleet = reader.arrays(
            "SELECT kind, slowdown, admitted FROM fleet ORDER BY client",
            kind=np.int64,
            slowdown=np.float64,
            admitted=np.int64,
        )
        self._kind, self._slowdown, self._admitted = fleet["kind"], fleet["slowdown"], fleet["admitted"]
        self._reasons = {
            row["kind"]: f"refused: {row['reason'] or 'its device cannot hold ' + row['exchange']}"
            for row in reader.rows("refused_kinds")
        }
        self._bounds = [] if known is None else _bounds(known)

    def of(self, client: int) -> Owner:
        """A client's facts, and what bounds its work."""
        kind = int(self._kind[client])
        row = self._kinds[kind]
        facts = {name: row[name] for name in ("device", "link", "model")}
        slowdown = float(self._slowdown[client])
        return Owner({**facts, "slowdown": slowdown}, self._bounds[kind] if self._bounds else {})

    def about(self, client: int) -> str:
        """Its link, number type, model and samples, or why it was refused."""
        kind = int(self._kind[client])
        if not self._admitted[client]:
            return self._reasons.get(kind, "refused")
        row = self._kinds[kind]
        return f"{row['link']}, {row['dtype']}, {row['model']}, training samples: {row['samples']}"


def _bounds(known: Recorded) -> list[dict[str, str]]:
    """What bounds most of the work of each kind of client, with its share, by exchange."""
    clients, medians = known.plan.clients, Medians(known)
    found: list[dict[str, str]] = [{} for _ in range(int(clients.kind.max(initial=-1)) + 1)]
    for kind in np.unique(clients.kind[clients.admitted]).tolist():
        for place, prices in enumerate(known.plan.prices):
            bounds = medians.bounds(place, kind)
            if bounds is not None and bounds.seconds > 0:
                name, seconds = max(bounds._asdict().items(), key=lambda one: one[1])
                share = f"{100 * seconds / bounds.seconds:.0f}%"
                found[kind][prices.exchange] = f"{name.removesuffix('_s')} ({share} of the work)"
    return found
