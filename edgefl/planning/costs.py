"""What one round costs, as tables, see ``edgefl.planning.profile``; and what it costs that clients share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from edgefl.core.clients import Clients
from edgefl.core.corners import Interval, together
from edgefl.core.devices import Board
from edgefl.core.documents import OPTIONAL
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.merging import MergeCost
from edgefl.core.plan import Prices
from edgefl.core.scenario import Scenario
from edgefl.planning.dealing import dealt

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
    columns = {name: [row[name] for row in rows] for name in names}
    found = {name: None if None in column else sum(column) for name, column in columns.items()}
    return {**found, "intervals": {name: together(within(row, name) for row in rows) for name in found}}


def of(table: Sequence[Row], row: Row, *names: str) -> list[Row]:
    """The rows of a table that are of another's exchange and model, and have some of its names."""
    keys = "exchange", "model", *names
    return [one for one in table if all(one[key] == row[key] for key in keys)]


@dataclass(frozen=True)
class SharedLink:
    """What an exchange costs a capacity that clients share.

    Attributes:
        capacity: "server.downlink" or "server.uplink"; or "cell NAME, down" or "up".
        clients: how many clients' transfers share it: those that are asked at a time, or those of a cell.
        payload_bytes: of each; the mean over models.
        at_least_s: until all of their payloads are through, at the full rate.
        alone_s: what a transfer takes alone on its client's own link, over clients.
    """

    exchange: str
    capacity: str
    bps: float
    clients: int
    payload_bytes: float
    at_least_s: float
    alone_s: Interval


@dataclass(frozen=True)
class ForwardCounts:
    """Operations of a model's forward pass on one sample, in convolutions and matrix products.

    Both counts take a multiply-add for two.
    """

    model: str
    fvcore_flops: int
    traced_flops: int


@dataclass(frozen=True)
class Profile:
    """What one round of a scenario's run costs a client.

    A row of ``exchanges`` is a client's share of an exchange on a model, on any device: ``at``, ``every`` and
    ``everyone`` as of ``Prices``; samples and steps; bytes by part of the payload, ``down`` and ``up``; FLOPs
    by role of the kernels and by part of the model; how many kernels are started, and the bytes they move;
    the peak of memory in fp32, by use; the jobs a day of a client in the mean, if the policy alone says how
    long rounds take; and what was ``measured`` here, see ``edgefl.planning.profile``.

    A row of ``prices`` is such an exchange on a device: ``down_s``, ``work_s``, ``up_s``, in ``seconds`` all;
    of ``work_s``, what arithmetic, memory and launches bound; joules, ``price.ENERGIES`` and in all, and as
    a share of a full battery; the peak in the device's number type, its share of usable memory, and if
    that suffices. ``unknown`` is why there is no price, ``launch`` how well the device's launch overhead is
    known: its status, or "none".

    A row of ``parts`` is what a layer does, or other work; of ``part_prices`` what that, or a transfer, takes
    on a device. Seconds, and joules of the whole device meanwhile, add up to those of ``prices``.

    Attributes:
        assumed: what the figures assume about the client.
        assumptions: the unknown and assumed numbers of devices and links.
        parts, part_prices: empty if not requested.
        layers: the counts of each model's forward pass, if requested.
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
    layers: Sequence[ForwardCounts] | None = field(default=None, metadata=OPTIONAL)
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


def shared_links(
    scenario: Scenario, fleet: Fleet, links: Mapping[str, Link], works: Sequence[Row]
) -> list[SharedLink] | None:
    """What each exchange of ``Profile.exchanges`` costs what clients share; None where nothing is shared.

    Each that takes part has the mean payload of the models. Nothing is simulated: bytes over a rate is the
    least time in which all are through, in whatever order they are sent.
    """
    rates = {"down": scenario.server.downlink, "up": scenario.server.uplink}
    if not fleet.cells and not any(rates.values()):
        return None
    count, found = scenario.task.clients, list[SharedLink]()
    clients, cells = dealt(fleet, count, scenario.seed), [None, *fleet.cells]
    cell_of = np.array([cells.index(member.cell) for member in fleet.members])[clients.member]
    for name, everyone in dict.fromkeys((work["exchange"], work["everyone"]) for work in works):
        asked = (
            count
            if everyone
            else min(count, scenario.server.policy.asks(scenario.server.participants) or count)
        )
        for way, rate in rates.items():
            sizes = [sum(work[way].values()) for work in works if work["exchange"] == name]
            shares = [(f"server.{way}link", rate, asked, cell_of >= 0)] if rate else []
            for title, cell in fleet.cells.items():
                mine = cell_of == cells.index(title)
                most = min(cell.clients, int(mine.sum()))
                shares.append((f"cell {title}, {way}", getattr(cell, way).known, most, mine))
            for capacity, bps, most, mine in shares:
                own = [links[clients.link.names[place]] for place in np.unique(clients.link.place[mine])]
                alone_s = [
                    one.delay_s + 8 * size / getattr(one, f"{way}_bps")
                    for one, size in product(own, filter(None, sizes))
                ]
                if alone_s:
                    mean_bytes = sum(sizes) / len(sizes)
                    least_s, each_s = 8 * most * mean_bytes / bps, Interval(min(alone_s), max(alone_s))
                    found.append(SharedLink(name, capacity, bps, most, mean_bytes, least_s, each_s))
    return found


MARGIN = 0.2
"""The share of the traced peak that libraries may take besides.

Measured by ``edgefl profile --measure-memory`` on shipped networks in batches of 8 to 512 (torch 2.13.0 with
oneDNN, AMD EPYC, one thread): up to 16% of the traced peak, apart from what a process takes; rounded up. The
figures are in ``docs/costs.md``, with those of convolutions of one channel, which took 111%.
"""


def without_margin(room: float) -> float:
    """The largest traced peak that memory of a size holds with its margin, in bytes."""
    return room / (1 + MARGIN)


def tight(clients: Clients, table: Sequence[Prices], devices: Mapping[str, Board]) -> list[str]:
    """The admitted clients that hold an exchange, but not with its margin, in words; nothing where all do."""
    rooms = [devices[name].usable_memory_bytes for name in clients.devices]
    most = np.array([np.inf if room is None else without_margin(room) for room in rooms])
    peaks = np.max([prices.demand.peak_bytes for prices in table], axis=0)
    found = clients.admitted & (peaks[clients.kind] > most[clients.device])
    if not found.any():
        return []
    names = ", ".join(clients.devices[place] for place in np.unique(clients.device[found]))
    count = "1 client" if found.sum() == 1 else f"{found.sum():,} clients"
    return [f"memory of {count} ({names}) holds the traced peak, but not {MARGIN:.0%} more for libraries"]
