"""What a run's jobs emitted and used, by client: sums over their rows.

A stage's joules are spread evenly from its beginning to its end, and emit what the grid of the client's
region emits in the mean in that time; so does its traffic's network energy. So do those of a radio's tail,
from the end of the transfer that it follows until it is over, whichever job is charged with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from edgefl.analysis.run import Run
from edgefl.core.carbon import Carbon, dealt
from edgefl.core.draws import Floats
from edgefl.core.intensity import Intensities, grams
from edgefl.core.plan import Ints
from edgefl.core.repricing import Taken
from edgefl.store import read_prices

_B_PER_GB = 1e9


class Whom(NamedTuple):
    """The clients, a column each, and the names that the columns refer to."""

    region: Ints
    link: Ints
    device: Ints
    admitted: Floats
    links: Sequence[str]
    devices: Sequence[str]

    @classmethod
    def read(cls, run: Run, carbon: Carbon) -> Whom:
        """Those of a run, dealt to the record's regions."""
        kind = run.clients.kind
        names = {key: list(dict.fromkeys(row[key] for row in run.kinds)) for key in ("link", "device")}
        places = {
            key: np.array([known.index(row[key]) for row in run.kinds], dtype=np.int64)[kind]
            for key, known in names.items()
        }
        region = dealt(carbon, len(kind), run.reader.meta["seed"])
        admitted = run.clients.admitted.astype(float)
        return cls(region, **places, admitted=admitted, links=names["link"], devices=names["device"])


class Sums(NamedTuple):
    """Sums over each client's jobs, (clients,).

    Attributes:
        jobs: how many.
        devices_g: of their energy; NaN where one is unknown.
        traffic: gigabytes times g/kWh.
        busy_s: receiving, working and sending.
        waiting_g: of their energy while they wait for the server; NaN where one is unknown.
    """

    jobs: Floats
    devices_g: Floats
    traffic: Floats
    busy_s: Floats
    waiting_g: Floats


def sums_of(
    run: Run,
    corners: Sequence[Iterator[tuple[slice, Taken]]],
    whom: Whom,
    grid: Intensities,
    until: Sequence[float],
) -> list[list[Sums]]:
    """The sums over what was over at given times, by time: the run's own, then one at each corner.

    Hours are those of the run everywhere, at which its jobs began and ended.

    Args:
        run: the run.
        corners: what they took at corners of the devices' and links' numbers; see ``Repriced.by_job``.
        whom: the clients.
        grid: the intensities.
        until: the times.
    """
    clients = len(whom.region)
    own = [Sums(*(np.zeros(clients) for _ in Sums._fields)) for _ in until]
    sums = [
        [one, *(one._replace(devices_g=np.zeros(clients), busy_s=np.zeros(clients)) for _ in corners)]
        for one in own
    ]
    for (places, spans, joules), *ends in zip(_charged(run), *corners, strict=True):
        some = run.repriced.taken(places)
        ends_s = [end_s for _, end_s in spans]
        per_kwh = [grid.mean(whom.region[some.client], *span) for span in spans]
        gigabytes = (moved / _B_PER_GB for moved in (some.down_bytes, 0 * some.down_bytes, some.up_bytes))
        busy_s = some.receive_s, some.work_s, some.transmit_s
        ways = [(joules[:-1], busy_s), *(((*at.stage_j, *at.tail_j), at.busy_s) for _, at in ends)]
        # Of which sums, of which way, how much, and when it was over.
        amounts: list[tuple[str, int, Floats, Floats]] = [
            ("jobs", 0, np.ones(len(some.client)), some.dispatched_s),
            ("waiting_g", 0, grams(joules[-1], per_kwh[-1]), ends_s[-1]),
            *(("traffic", 0, one * per_kwh[place], ends_s[place]) for place, one in enumerate(gigabytes)),
        ]
        for way, (drawn_j, lasted_s) in enumerate(ways):
            amounts += [
                ("devices_g", way, grams(one, per_kwh[place]), ends_s[place])
                for place, one in enumerate(drawn_j)
            ]
            amounts += [("busy_s", way, one, ends_s[place]) for place, one in enumerate(lasted_s)]
        for t_s, each in zip(until, sums, strict=True):
            for name, way, values, end_s in amounts:
                over, total = end_s <= t_s, getattr(each[way], name)
                total += np.bincount(some.client[over], weights=values[over], minlength=clients)
    return sums


def _charged(run: Run) -> Iterator[tuple[slice, list[tuple[Floats, Floats]], list[Floats]]]:
    """When a run's jobs drew energy, from and to, and how much; some jobs at a time.

    Of the stages; of the tails before the first transfer, between the two and open in the end; and of
    waiting.
    """
    rows, jobs = run.jobs, run.repriced
    settled_s, settled_j = np.full(len(rows), np.nan), np.zeros(len(rows))
    last = np.searchsorted(rows.job, run.tails["job"])
    settled_s[last], settled_j[last] = run.tails["t_s"], run.tails["joules"]
    joules = [
        rows.receive_j + rows.receive_idle_j,
        rows.work_j + rows.work_idle_j,
        rows.transmit_j + rows.transmit_idle_j,
        rows.earlier_tail_j,
        rows.work_tail_j,
        settled_j,
        rows.waiting_j,
    ]
    received_s, worked_s, arrived_s = (
        np.where(np.isnan(one), jobs.ended_s, one) for one in (jobs.received_s, jobs.worked_s, jobs.arrived_s)
    )
    moved_s = np.where(jobs.transmit_s > 0, arrived_s, received_s)
    first_s = np.where(jobs.receive_s > 0, jobs.dispatched_s, worked_s)
    # A client's radio is the same in every exchange.
    tail_s = read_prices(run.reader)[0].tail_s[jobs.kind]

    def tail(since_s: Floats, until_s: Floats) -> tuple[Floats, Floats]:
        # NaN cuts none short.
        return since_s, np.fmin(since_s + tail_s, until_s)

    spans = [
        (jobs.dispatched_s, received_s),
        (received_s, worked_s),
        (worked_s, arrived_s),
        tail(np.where(jobs.earlier < 0, first_s, moved_s[jobs.earlier]), first_s),
        tail(received_s, worked_s),
        tail(moved_s, settled_s),
        (arrived_s, jobs.ended_s),
    ]
    for places in jobs.chunks():
        yield (
            places,
            [(start_s[places], end_s[places]) for start_s, end_s in spans],
            [one[places] for one in joules],
        )
