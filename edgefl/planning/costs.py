"""What one round costs, as tables, see ``edgefl.planning.profile``; and what it costs that clients share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from edgefl.core.corners import Interval, together
from edgefl.core.dealing import dealt
from edgefl.core.documents import OPTIONAL
from edgefl.core.draws import Floats
from edgefl.core.fleet import Fleet
from edgefl.core.layers import ModelLayers
from edgefl.core.ledger import total
from edgefl.core.link import Link
from edgefl.core.merging import MergeCost
from edgefl.core.scenario import Scenario
from edgefl.planning.limits import asked_at_once

# Of a rate: a difference below it is rounding.
_ROUNDING = 1e-9

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
        each_bps: what a client gets if all of them transfer at once, max-min fairly, over clients.
        is_full: whether they fill it then.
    """

    exchange: str
    capacity: str
    bps: float
    clients: int
    payload_bytes: float
    at_least_s: float
    alone_s: Interval
    each_bps: Interval
    is_full: bool


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
        assumed: what the figures assume about the client.
        assumptions: the unknown and assumed numbers of devices and links.
        parts, part_prices: empty if not requested.
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


def shared_links(
    scenario: Scenario, policy: Any, fleet: Fleet, links: Mapping[str, Link], works: Sequence[Row]
) -> list[SharedLink] | None:
    """What each exchange costs what clients share; None where nothing is shared.

    Those that take part are clients of all links and cells in proportion, and each has the mean payload of
    the models. Nothing is simulated: bytes over a rate is the least time in which all are through, in
    whatever order they are sent.

    Args:
        scenario: the run's.
        policy: its policy's parameters.
        fleet: its fleet.
        links: those of its members, by name.
        works: the rows of ``Profile.exchanges``.
    """
    rates = {"down": scenario.server.downlink, "up": scenario.server.uplink}
    if not fleet.cells and not any(rates.values()):
        return None
    # Groups of clients with one link in cells of one name.
    every, cells = dealt(fleet, scenario.task.clients, scenario.seed), [None, *fleet.cells]
    cell_of = np.array([cells.index(member.cell) for member in fleet.members])[every.member]
    (link, cell), counts = np.unique(np.stack([every.link.place, cell_of]), axis=1, return_counts=True)
    own, clients = [links[every.link.names[place]] for place in link], counts.astype(float)
    delay_s = np.array([one.delay_s for one in own])
    found = []
    for name, everyone in dict.fromkeys((work["exchange"], work["everyone"]) for work in works):
        asked = asked_at_once(scenario.server, policy) or scenario.task.clients
        asked = scenario.task.clients if everyone else min(scenario.task.clients, asked)
        for way, server_bps in rates.items():
            sizes = np.array([sum(work[way].values()) for work in works if work["exchange"] == name])
            own_bps = np.array([getattr(one, f"{way}_bps") for one in own])
            flows, caps = asked * clients / clients.sum(), own_bps.copy()
            capacities = [(f"server.{way}link", server_bps, asked, flows, caps)] if server_bps else []
            for place, title in enumerate(cells):
                inside = np.where(cell == place, clients, 0.0)
                if title is None or not inside.any():
                    continue
                mine, one = inside > 0, fleet.cells[title]
                bps, most = getattr(one, way).known, min(one.clients, int(inside.sum()))
                capacities.append((f"cell {title}, {way}", bps, most, most * inside / inside.sum(), own_bps))
                # As many transfer in each, so that cells of a name act as one.
                count = -(-int(inside.sum()) // one.clients)
                caps[mine] = fair(bps * count, flows[mine], np.minimum(caps[mine], bps))
            for capacity, bps, most, flows_, caps_ in capacities if sizes.any() else ():
                there = flows_ > 0
                alone_s = delay_s[there, None] + 8 * sizes[sizes > 0] / own_bps[there, None]
                each_bps = fair(bps, flows_[there], caps_[there])
                mean_bytes = float(sizes.mean())
                found.append(
                    SharedLink(
                        exchange=name,
                        capacity=capacity,
                        bps=bps,
                        clients=most,
                        payload_bytes=mean_bytes,
                        at_least_s=8 * most * mean_bytes / bps,
                        alone_s=Interval(float(alone_s.min()), float(alone_s.max())),
                        each_bps=Interval(float(each_bps.min()), float(each_bps.max())),
                        is_full=bool((flows_[there] * each_bps).sum() >= bps * (1 - _ROUNDING)),
                    )
                )
    return found


def fair(rate: float, flows: Floats, caps: Floats) -> Floats:
    """Max-min fair rates: of so many flows each, all have one rate, or their cap where that is less."""
    order = np.argsort(caps)
    count, most = flows[order], caps[order]
    left = rate - np.concatenate([[0.0], np.cumsum(count * most)[:-1]])
    levels = left / np.cumsum(count[::-1])[::-1]
    return np.minimum(caps, max(levels[levels <= most], default=math.inf))
