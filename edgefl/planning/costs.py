"""Tables of what one round costs; see ``edgefl.planning.profile``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from edgefl.core.corners import Interval, together
from edgefl.core.documents import OPTIONAL
from edgefl.core.layers import ModelLayers
from edgefl.core.ledger import total
from edgefl.core.merging import MergeCost
from edgefl.planning.sharing import SharedLink

Row: TypeAlias = Mapping[str, Any]
"""A row of a table: names, and figures in base units, None for unknown ones.

Under ``intervals`` are the bounds of figures that have any, by their names: where a number of the device or
the link is an interval, or an unknown power, or where the time to compute is a lower bound.
"""


def within(row: Row, name: str) -> Interval:
    """The bounds of a figure; of no width where it has none."""
    bounds: Interval | None = row.get("intervals", {}).get(name)
    return bounds or Interval.of(row[name], row[name])


def added(rows: Sequence[Row], names: Iterable[str]) -> dict[str, Any]:
    """Figures of rows added up, with their bounds; unknown if one is."""
    found = {name: total(*(row[name] for row in rows)) for name in names}
    return {**found, "intervals": {name: together(within(row, name) for row in rows) for name in found}}


@dataclass(frozen=True)
class Profile:
    """What one round of a scenario's run costs a client.

    A row of ``exchanges`` is a client's share of an exchange on a model, on any device: ``at``, ``every`` and
    ``everyone`` as of ``Prices``; samples and steps; bytes by part of the payload, ``down`` and ``up``; FLOPs
    by role of the kernels and by part of the model; how many kernels are started, and the bytes they move;
    the peak of memory in fp32, by use; the jobs a day of a client in the mean, if the policy alone says how
    long rounds take; and what was ``measured`` here, see ``edgefl.planning.measuring``.

    A row of ``prices`` is such an exchange on a device: ``down_s``, ``work_s``, ``up_s``, in ``seconds`` all;
    of ``work_s``, what arithmetic, memory and launches bound; joules by stage, as of ``Energy``, in all, and
    as a share of a full battery; the peak in the device's number type, its share of usable memory, and if
    that suffices. ``unknown`` is why there is no price, ``launch`` how well the device's launch overhead is
    known: its status, or "none".

    A row of ``parts`` is what a layer does, or other work; of ``part_prices`` what that, or a transfer, takes
    on a device. Seconds, and joules of the whole device meanwhile, add up to those of ``prices``.

    Attributes:
        scenario: the run's name.
        method: the method's.
        batch_size: of local training.
        assumed: what the figures assume about the client.
        assumptions: the unknown and assumed numbers of devices and links.
        exchanges, prices: see above.
        parts, part_prices: likewise; empty if not requested.
        layers: each model's forward pass layer by layer, if requested.
        shared: what exchanges cost the server's link and cells; None where clients share nothing.
        server: what a merge of each exchange costs the server; None where its work is free.
        server_intervals: its bounds, by exchange and figure; None where no number is open.
    """

    scenario: str
    method: str
    batch_size: int
    assumed: Sequence[str]
    assumptions: Sequence[str]
    exchanges: Sequence[Row]
    prices: Sequence[Row]
    parts: Sequence[Row] = ()
    part_prices: Sequence[Row] = ()
    layers: Sequence[ModelLayers] | None = field(default=None, metadata=OPTIONAL)
    shared: Sequence[SharedLink] | None = field(default=None, metadata=OPTIONAL)
    server: Mapping[str, MergeCost] | None = field(default=None, metadata=OPTIONAL)
    server_intervals: Mapping[str, Mapping[str, Interval]] | None = field(default=None, metadata=OPTIONAL)

    def rounds(self) -> list[Row]:
        """A client's round by model and device: bytes, peak in fp32, seconds, joules and whether that fits.

        It is all exchanges of every round.
        """
        works = [work for work in self.exchanges if (work["at"], work["every"]) == ("round", 1)]
        found = list[Row]()
        for model in dict.fromkeys(work["model"] for work in works):
            mine = [work for work in works if work["model"] == model]
            sizes = {f"{way}_bytes": sum(sum(work[way].values()) for work in mine) for way in ("down", "up")}
            sizes["peak_bytes"] = max(sum(work["peak"].values()) for work in mine)
            for rows in zip(*(of(self.prices, work) for work in mine), strict=True):
                fits = {row["fits"] for row in rows}
                held = {"fits": False if False in fits else None if None in fits else True}
                found.append({**rows[0], **sizes, **held, **added(rows, ("seconds", "joules"))})
        return found


def of(table: Sequence[Row], row: Row, *names: str) -> list[Row]:
    """The rows of a table that are of another's exchange and model, and have some of its names."""
    keys = "exchange", "model", *names
    return [one for one in table if all(one[key] == row[key] for key in keys)]
