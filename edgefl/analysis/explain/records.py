"""Why rounds took as long as they did, as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.core.documents import INLINE, OPTIONAL


@dataclass(frozen=True)
class Saving:
    """What a change to a client would save.

    Attributes:
        change: the fleet's median "link", "device" or "work" in place of its own; "speed", no slowdown and
            no jitter above 1; or of what clients share, "server", "cells" or "unshared" (see
            ``critical.again``).
        to: what the client would have; empty where it is not slower than that, and nothing is saved.
        saved_s: by how many virtual seconds the round, or all rounds together, would be shorter.
        then_client: the client for which the round would wait longest then; None for a whole run.
    """

    change: str
    to: str
    saved_s: float
    then_client: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class Part:
    """A part of a critical path.

    Attributes:
        phase: "download", "compute", "upload", "waiting for clients", "timer" or "server".
        from_s, to_s: virtual seconds.
        exchange, client, device, link: of its job; None where there is none.
        lost: whether its job was lost.
        by_cause: its seconds by what bound it, those above 0; see ``critical.causes``.
    """

    phase: str
    from_s: float
    to_s: float
    exchange: str | None
    client: int | None
    device: str | None
    link: str | None
    lost: bool
    by_cause: Mapping[str, float]


@dataclass(frozen=True)
class Phase:
    """What critical paths spent in a phase.

    Attributes:
        phase: as of ``Part``; or "away", in which a job's client was not available, a phase of its own.
        seconds: all in all.
        by_cause: the same by what bound it, most first.
    """

    phase: str
    seconds: float
    by_cause: Mapping[str, float]


@dataclass(frozen=True)
class Held:
    """How much somebody held rounds up.

    Attributes:
        rounds: in how many rounds they were most of the critical path.
        seconds: of critical paths.
        phase, cause: the phase that most of that was, and what that was bound by.
    """

    rounds: int
    seconds: float
    phase: str
    cause: str


@dataclass(frozen=True)
class HeldByClient:
    """A client that held rounds up.

    Attributes:
        client, device, link: who.
        held: how much.
        savings: what changes to this client alone would save in the whole run; None where that is unknown, or
            not reckoned.
    """

    client: int
    device: str
    link: str
    held: Held = field(metadata={INLINE: Held})
    savings: Sequence[Saving] | None


@dataclass(frozen=True)
class HeldByDevice:
    """A class of devices that held rounds up.

    Attributes:
        device: its name.
        clients: how many clients have it.
        held: how much they did together.
    """

    device: str
    clients: int
    held: Held = field(metadata={INLINE: Held})


@dataclass(frozen=True)
class Round:
    """A round and what held it up most.

    Attributes:
        round: from 0; -1 before the first, the number of rounds after the last.
        in_rounds: whether it is a round; False for exchanges at the start and at the end.
        from_s: when the round before ended.
        seconds: until its last merge.
        client: the client with most of its critical path; None without one.
        client_s: how much that was.
        phase, cause: the phase of most of the path, and what that was bound by; None of a round that took no
            time.
    """

    round: int
    in_rounds: bool
    from_s: float
    seconds: float
    client: int | None
    client_s: float
    phase: str | None
    cause: str | None


@dataclass(frozen=True)
class RoundExplanation:
    """Why a round took as long as it did.

    Attributes:
        name: the run's.
        run_dir: its directory.
        of: the round.
        device, link: of its client.
        path: the critical path, in order of time.
        savings: what changes to its client in this round alone would save; None where that is unknown.
        unknown_since: what in the run depends on times, so that other times would make another run.
    """

    name: str
    run_dir: str
    of: Round = field(metadata={INLINE: Round})
    device: str | None
    link: str | None
    path: Sequence[Part]
    savings: Sequence[Saving] | None
    unknown_since: Sequence[str]


@dataclass(frozen=True)
class Explanation:
    """Why a run's rounds took as long as they did, all together.

    Attributes:
        name: the run's.
        run_dir: its directory.
        seconds: of all rounds: until the last merge.
        phases: what critical paths consist of, most first.
        clients: those that held rounds up, most first; the first five have ``savings``.
        devices: the same by device.
        savings: what each change would save if it were made to all clients, to as many merges; where
            ``unknown_since`` has something, by another run of the world (see ``critical.again``), which may
            also take longer. None where that is unknown.
        unknown_since: as in ``RoundExplanation``.
        rounds: all of them, in order.
    """

    name: str
    run_dir: str
    seconds: float
    phases: Sequence[Phase]
    clients: Sequence[HeldByClient]
    devices: Sequence[HeldByDevice]
    savings: Sequence[Saving] | None
    unknown_since: Sequence[str]
    rounds: Sequence[Round]
