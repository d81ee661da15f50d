"""What of a run a timeline shows, and in which file: which run, which clients, the time of which rounds."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgefl.analysis.explain.path import rounds_of
from edgefl.analysis.run import Run
from edgefl.core.arrays import Bools, Ints
from edgefl.core.errors import UserError
from edgefl.show.page.html import stem_of
from edgefl.show.table import listed
from edgefl.store.folders import runs_in

SUFFIXES = (".pftrace", ".perfetto-trace")

MOST_JOBS = 200_000
"""A trace has no more jobs, of up to eight events each: about 100 MB, which a browser opens in seconds."""

MOST_CLIENTS = 10_000
"""Likewise: a trace has no more clients' tracks."""

_MOST_NAMED = 6
_RANGE = re.compile(r"\s*(\d{1,12})\s*(?:-\s*(\d{1,12}))?\s*")


def timeline_name(folder: Path) -> str:
    """The name of a run's timeline."""
    return f"{stem_of(folder)}.pftrace"


def run_of(folder: Path) -> Path:
    """The directory of the only run of a group, or of a run.

    Raises:
        UserError: there are none, or several.
    """
    runs = runs_in(folder)
    if len(runs) > 1:
        names = listed([run.relative_to(folder).as_posix() for run in runs], _MOST_NAMED)
        what, hint = f"{folder} holds {len(runs)} runs: {names}", f"choose one, such as {runs[0]}"
        raise UserError(what, where=str(folder), hint=hint)
    return runs[0]


@dataclass(frozen=True)
class TimelineChoice:
    """What is asked for.

    Attributes:
        clients: ranges of client numbers, first and last; None for all that had a job.
        rounds: the first and the last round, from 0; None for the whole run.

    Raises:
        UserError: no client is named, or the first of a range is negative or above the last.
    """

    clients: Sequence[tuple[int, int]] | None = None
    rounds: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if self.clients is not None and not self.clients:
            raise UserError("no clients are named", where="clients", hint="leave them out for all")
        for where, ranges in (("clients", self.clients or ()), ("rounds", filter(None, [self.rounds]))):
            for first, last in ranges:
                if not 0 <= first <= last:
                    raise UserError(f"{first} to {last} is not a range of numbers from 0", where=where)

    @classmethod
    def parse(cls, clients: str | None, rounds: str | None) -> "TimelineChoice":
        """From texts such as "0,3,7-12" and "2-5".

        Raises:
            UserError: one is something else.
        """
        named = None if clients is None else clients.split(",")
        return cls(
            None if named is None else [_round_range(one, "--clients", "0,3,7-12") for one in named],
            None if rounds is None else _round_range(rounds, "--rounds", "2-5"),
        )


def _round_range(text: str, where: str, example: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text)
    if found is None:
        what = f"{text.strip()!r} is not a number or a range"
        raise UserError(what, where=where, hint=f"try {where} {example}")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise UserError(f"{text.strip()!r}: the last number is below the first", where=where)
    return first, last


class Window(NamedTuple):
    """A span of virtual time in seconds; jobs that are under way at its ends are shown as a whole."""

    from_s: float = -math.inf
    to_s: float = math.inf

    def holds(self, t_s: float) -> bool:
        return self.from_s < t_s <= self.to_s

    def jobs(self, run: Run) -> Bools:
        """Which jobs are under way in it, (n,)."""
        begin_s = run.jobs.dispatched_s
        found: Bools = (begin_s < self.to_s) & ((run.until_s > self.from_s) | (begin_s >= self.from_s))
        return found


def window_of(choice: TimelineChoice, run: Run) -> Window:
    """The time of the rounds that are asked for, from the last merge before to their own last merge.

    Raises:
        UserError: the run has no such rounds.
    """
    if choice.rounds is None:
        return Window()
    rounds, (first, last) = rounds_of(run), choice.rounds
    inside = run.in_rounds[run.merges.exchange[rounds.first]]
    found = np.flatnonzero(inside & (rounds.number >= first) & (rounds.number <= last))
    if not len(found):
        has = (
            f"the run's rounds are 0 to {rounds.number[inside][-1]}"
            if inside.any()
            else "the run has no rounds yet"
        )
        to = f" to {last}" if last > first else ""
        raise UserError(f"there is no round {first}{to}", where="--rounds", hint=has)
    return Window(rounds.from_s[found[0]].item(), rounds.to_s[found[-1]].item())


def clients_of(run: Run, choice: TimelineChoice, window: Window, note: Callable[[str], None]) -> Ints:
    """The clients that are shown, ascending.

    Where their jobs are too many and nobody was chosen, they are some of them, evenly spaced, with a note.

    Raises:
        UserError: the run has no such client, or those that were chosen have too many jobs.
    """
    clients, counts = np.unique(run.jobs.client[window.jobs(run)], return_counts=True)
    if choice.clients is not None:
        asked = _asked(len(run.known), choice.clients)
        clients, counts = asked, counts[np.isin(clients, asked)]
    jobs = int(counts.sum())
    if jobs <= MOST_JOBS and len(clients) <= MOST_CLIENTS:
        return clients
    many = (
        f"{jobs:,} jobs of {len(clients):,} clients are too many for one trace, which has {MOST_JOBS:,} of "
        f"{MOST_CLIENTS:,} at most"
    )
    # However few are shown, the first one is among them.
    if choice.clients is not None or int(counts[0]) > MOST_JOBS:
        raise UserError(many, where="--clients", hint="choose fewer --clients or --rounds")
    step = max(-(-jobs // MOST_JOBS), -(-len(clients) // MOST_CLIENTS))
    while counts[::step].sum() > MOST_JOBS:
        step += 1
    shown = clients[::step]
    few = f"{len(shown):,} of {len(clients):,} clients are shown"
    note(f"{many}: {few}; choose with --clients or --rounds")
    return shown


def _asked(count: int, ranges: Sequence[tuple[int, int]]) -> Ints:
    for _, last in ranges:
        if last >= count:
            hint = f"the run's clients are 0 to {count - 1}"
            raise UserError(f"there is no client {last}", where="--clients", hint=hint)
    return np.unique(np.concatenate([np.arange(first, last + 1) for first, last in ranges]))
