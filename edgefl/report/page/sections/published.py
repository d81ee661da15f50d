"""What papers claim that one method saves over another, beside what the runs' plans say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from edgefl.report.averages import Compared
from edgefl.report.settings import canonical
from edgefl.store import Reader

_WORK_SQL = """
SELECT exchange, model, device, SUM(clients) AS clients,
  SUM(work_s * clients) / SUM(clients) FILTER (WHERE work_s IS NOT NULL) AS seconds,
  IFNULL(SUM(clients) FILTER (WHERE work_s IS NOT NULL), 0) AS priced, MAX(peak_bytes) AS peak_bytes
FROM prices JOIN kinds USING (kind)
JOIN (SELECT kind, COUNT(*) AS clients FROM fleet GROUP BY kind) USING (kind)
GROUP BY exchange, model, device ORDER BY MIN(kind)
"""
_UNITS = {"latency": "s", "memory": "B"}


@dataclass(frozen=True)
class Saving:
    """What one group's method saves over another's, on one model and device.

    Attributes:
        group: the place of the claimed method's group.
        against_group: the place of the group that it is compared with.
        model: the clients' model.
        device: their device.
        saved: the share saved, negative where more is needed; None where a group has no figure, or both are
            of different clients.
        against: what it is a share of: the other group's seconds or bytes; None where it has none.
    """

    group: int
    against_group: int
    model: str
    device: str
    saved: float | None
    against: float | None


@dataclass(frozen=True)
class Claim:
    """One figure of a claim under ``published`` in the runs' scenario.

    Ours is from the runs' plans: "latency" is the mean time over clients to compute the exchange, before
    slowdown and jitter; "memory" the largest need of a client.

    Attributes:
        method: the claimed method.
        against: the method that it is compared with.
        exchange: the exchange.
        figure: "latency" or "memory".
        unit: of ``Saving.against``: "s" or "B".
        published: the largest share saved that is claimed.
        source: where it is claimed.
        note: why ours differs, as the scenario says; empty if it does not.
        ours: of all pairs of groups that differ in nothing but the two methods, and seeds.
        why: why there is none of ours, in words; empty otherwise.
    """

    method: str
    against: str
    exchange: str
    figure: str
    unit: str
    published: float
    source: str
    note: str
    ours: Sequence[Saving]
    why: str


class Work(NamedTuple):
    """An exchange's work of the clients with one model and device.

    Attributes:
        clients: how many there are.
        seconds: the mean time to compute of those that have a price; None where none has.
        priced: how many have a price: those that are not refused.
        peak_bytes: the largest need of memory.
    """

    clients: int
    seconds: float | None
    priced: int
    peak_bytes: int


class Planned(NamedTuple):
    """What a run's plan says.

    Attributes:
        claims: those of its scenario; see ``core.scenario.Published``.
        works: by exchange, model and device.
    """

    claims: Sequence[Mapping[str, Any]]
    works: Mapping[tuple[str, str, str], Work]


def planned(reader: Reader) -> Planned:
    """That of a run."""
    rows = (tuple(row.values()) for row in reader.query(_WORK_SQL))
    works = {(exchange, model, device): Work(*work) for exchange, model, device, *work in rows}
    return Planned(reader.meta.get("published", []), works)


def published(groups: Sequence[Compared], plans: Mapping[str, Planned]) -> list[Claim]:
    """The claims of the runs' scenarios.

    Args:
        groups: all groups.
        plans: of each run, by its directory.
    """
    claims = {canonical(claim): claim for plan in plans.values() for claim in plan.claims}
    return [
        _claim(claim, figure, groups, plans)
        for claim in claims.values()
        for figure in _UNITS
        if claim[figure] is not None
    ]


def _claim(
    claim: Mapping[str, Any], figure: str, groups: Sequence[Compared], plans: Mapping[str, Planned]
) -> Claim:
    method, against, exchange = claim["method"], claim["against"], claim["exchange"]
    pairs = list(_pairs(method, against, groups))
    ours = [saving for pair in pairs for saving in _savings(pair, exchange, figure, groups, plans)]
    why = ""
    if not pairs:
        why = _no_pair(method, against, groups)
    elif not ours:
        why = f"no run has an exchange {exchange!r}"
    return Claim(
        method=method,
        against=against,
        exchange=exchange,
        figure=figure,
        unit=_UNITS[figure],
        published=claim[figure],
        source=claim["source"],
        note=claim["why"],
        ours=ours,
        why=why,
    )


def _no_pair(method: str, against: str, groups: Sequence[Compared]) -> str:
    there = {one.first.method for one in groups}
    missing = [name for name in (method, against) if name not in there]
    if missing:
        return f"there is no run of {' or of '.join(missing)}"
    return f"no runs of {method} and {against} differ in nothing but their methods"


def _pairs(method: str, against: str, groups: Sequence[Compared]) -> Iterator[tuple[int, int]]:
    """The places of groups that differ in nothing but these methods, and seeds."""
    others: dict[tuple[str, str | None], list[int]] = {}
    for place, one in enumerate(groups):
        if one.first.method == against:
            others.setdefault(_rest(one), []).append(place)
    for place, one in enumerate(groups):
        if one.first.method == method:
            yield from ((place, other) for other in others.get(_rest(one), ()))


def _rest(one: Compared) -> tuple[str, str | None]:
    """All but the method and the seed."""
    settings = one.first.settings or {}
    rest = {key: value for key, value in settings.items() if not key.startswith("method.") and key != "seed"}
    return canonical(rest), one.first.fleet_id


def _savings(
    pair: tuple[int, int],
    exchange: str,
    figure: str,
    groups: Sequence[Compared],
    plans: Mapping[str, Planned],
) -> Iterator[Saving]:
    ours, theirs = ([plans[run.run_dir].works for run in groups[place].runs] for place in pair)
    # Which client has which device depends on the seed.
    for key in dict.fromkeys(key for works in theirs for key in works if key[0] == exchange):
        mine, other = ([works[key] for works in side if key in works] for side in (ours, theirs))
        if mine:
            now, before = _figure(mine, figure), _figure(other, figure)
            priced = {work.priced for work in (*mine, *other)}
            alike = figure == "memory" or len(priced) == 1
            saved = 1 - now / before if alike and now is not None and before else None
            yield Saving(*pair, model=key[1], device=key[2], saved=saved, against=before)


def _figure(works: Sequence[Work], figure: str) -> float | None:
    """A figure of works of a group's runs: the mean of their times, or their largest need."""
    if figure == "memory":
        return max(work.peak_bytes for work in works)
    known = [work.seconds for work in works if work.seconds is not None]
    return fmean(known) if len(known) == len(works) else None
