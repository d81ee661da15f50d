"""Why rounds took as long as they did, as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.core.documents import INLINE


@dataclass(frozen=True)
class Part:
    """A part of a critical path.

    Attributes:
        phase: "download", "compute", "upload", "waiting for clients", "timer" or "server".
        from_s, to_s: virtual seconds.
        exchange, client, device, link: of its job; None where there is none.
        lost: whether its job was lost.
        by_cause: its seconds by what bound it, those above 0; see ``causes``.
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
        savings: as of ``Explanation``, if changes were made to this client alone; None for all but the first
            few, too.
    """

    client: int
    device: str
    link: str
    held: Held = field(metadata={INLINE: Held})
    savings: Mapping[str, float] | None


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
        path: the critical path, in order of time.
    """

    name: str
    run_dir: str
    of: Round = field(metadata={INLINE: Round})
    path: Sequence[Part]


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
        savings: by how many virtual seconds the run would make as many merges sooner, by the change that is
            made to all clients, or to what they share (see ``again``); below 0 where it would take longer.
            None where that is unknown.
        unsaved: why it is unknown: "size", the run is too long to run its clock so often, or "world", more
            than times would change; None where it is known.
        unknown_since: what in the run depends on times, so that other times make another run.
        rounds: all of them, in order.
    """

    name: str
    run_dir: str
    seconds: float
    phases: Sequence[Phase]
    clients: Sequence[HeldByClient]
    devices: Sequence[HeldByDevice]
    savings: Mapping[str, float] | None
    unsaved: str | None
    unknown_since: Sequence[str]
    rounds: Sequence[Round]
