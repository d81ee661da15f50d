"""What groups of runs spent, by part of the payload, by phase and by ending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from edgefl.analysis.usage import Moved, Spent
from edgefl.show.averages import Compared, mean
from edgefl.show.intervals import energy_of
from edgefl.show.summary import Summary


@dataclass(frozen=True)
class Ending:
    """What jobs with one ending cost; see ``usage.Spent``.

    Attributes:
        jobs: how many there are.
        bytes: their traffic in both directions.
        flops: their operations.
        client_s: client-seconds.
        joules: of clients whose energy is known in full; None if there is none.
    """

    jobs: float
    bytes: float
    flops: float
    client_s: float
    joules: float | None


@dataclass(frozen=True)
class Costs:
    """Means over those of a group's runs that have the figure.

    Attributes:
        group: its place.
        bytes_by_part: bytes "down" and "up" by part of the payload, of transfers that were completed; empty
            if nothing was sent.
        joules_by_phase: joules by "receive", "compute", "transmit", "tail" and "idle"; empty if no energy is
            known.
        waiting_joules: at idle power while uploads wait to be merged, no part of the energy; None if unknown.
        energy_of: of how many clients the energy is, and what all clients' may be; empty where it is of all.
        endings: by "merged" (useful), "late", "lost" and "cut" (wasted).
    """

    group: int
    bytes_by_part: Mapping[str, Mapping[str, float]]
    joules_by_phase: Mapping[str, float]
    waiting_joules: float | None
    energy_of: str
    endings: Mapping[str, Ending]


def costs(groups: Sequence[Compared]) -> list[Costs]:
    """The costs of each group."""
    return [_costs(place, one) for place, one in enumerate(groups)]


def _costs(group: int, one: Compared) -> Costs:
    of = partial(_mean, one)
    return Costs(
        group=group,
        bytes_by_part={
            part: {way: of(partial(_moved, part=part, way=way)) for way in Moved._fields}
            for part in _keys(run.bytes_by_part for run in one.runs)
        },
        joules_by_phase={
            phase: of(partial(_phase, phase=phase))
            for phase in _keys(run.joules_by_phase for run in one.runs)
        },
        waiting_joules=mean(one, lambda run: run.waiting_joules),
        energy_of=energy_of(one),
        endings={ending: _ending(one, ending) for ending in one.first.spent},
    )


def _keys(mappings: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(key for each in mappings for key in each))


def _mean(one: Compared, figure: Callable[[Summary], float | None]) -> float:
    """The mean of a figure that one of the runs has."""
    found = mean(one, figure)
    if found is None:
        raise AssertionError("no run has the figure")
    return found


def _moved(run: Summary, part: str, way: str) -> int | None:
    return getattr(run.bytes_by_part.get(part), way, None)


def _phase(run: Summary, phase: str) -> float | None:
    return run.joules_by_phase.get(phase)


def _ending(one: Compared, ending: str) -> Ending:
    def of(figure: Callable[[Spent], float]) -> float:
        return _mean(one, lambda run: figure(run.spent[ending]))

    return Ending(
        jobs=of(lambda spent: spent.jobs),
        bytes=of(lambda spent: spent.bytes),
        flops=of(lambda spent: spent.flops),
        client_s=of(lambda spent: spent.client_s),
        joules=mean(one, lambda run: run.spent[ending].joules),
    )
