"""Why a round, or a whole run, took as long as it did, for terminals."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rich.console import Group, RenderableType

from edgefl.analysis.explain.explain import (
    Explanation,
    HeldByClient,
    HeldByDevice,
    PathRound,
    RoundExplanation,
)
from edgefl.core.units import show_count, show_seconds, show_share
from edgefl.show.table import MISSING, Column, Line, Table

_SHOWN, _ROUNDS, _CAUSES, _COLUMNS = 5, 3, 3, 2
# Shares of a path that are not shown.
_LEAST = 0.005
# Of a whole, what sums in another order may differ by.
_ROUNDING = 1e-9
_CAUSE = {
    "rate": "link rate", "latency": "latency", "loss": "packet loss", "sharing": "shared link",
    "repeats": "repeated uploads",
    "compute": "arithmetic", "memory": "memory", "launch": "kernel launches", "slowdown": "slowdown",
    "jitter": "jitter", "speed": "changing speed", "away": "client away",
    "unavailable": "no client available", "timer": "the policy's timer", "server": "the server's work",
}  # fmt: skip
_WAITING = {
    "timer": "waiting for the policy's timer",
    "server": "waiting for the server to merge",
    "away": "waiting while the client was away",
    "waiting for clients": "waiting for clients",
}
_CHANGE = {
    "link": "median link",
    "device": "median device",
    "work": "median work",
    "slowdown": "no slowdown",
    "jitter": "no jitter",
}
_OF_SHARED = {
    "server": "server link twice as fast",
    "cells": "cells twice as fast",
    "unshared": "unshared links",
}


def shown(found: Explanation | RoundExplanation) -> RenderableType:
    """The sentence, and the tables behind it."""
    first = Line(said(found), "bold")
    if isinstance(found, RoundExplanation):
        return Group(first, Line(), _round(found)) if found.path else first
    return Group(first, Line(), *_run(found)) if found.phases else first


def said(found: Explanation | RoundExplanation) -> str:
    """The answer in a sentence."""
    if isinstance(found, RoundExplanation):
        took = f"{found.name}: {_title(found.of)} took {show_seconds(found.of.seconds)}"
        return took if found.of.phase is None else f"{took}: {_held_up(found)}"
    count = sum(one.in_rounds for one in found.rounds)
    outside = "" if count == len(found.rounds) else " and the exchanges outside of them"
    took = f"{found.name}: {show_count(count, 'round')}{outside} took {show_seconds(found.seconds)}"
    if not found.phases:
        return took
    first, rest = found.phases[0], ""
    if found.devices:
        most = found.devices[0]
        rest = f", {show_share(most.seconds / found.seconds)} for clients on {most.device}"
    share = show_share(first.seconds / found.seconds)
    best, saved_s = max((found.savings or {}).items(), key=lambda one: one[1], default=("", 0.0))
    if saved_s > _ROUNDING * found.seconds:
        whose = "" if best in _OF_SHARED else " for all"
        rest += f"; {(_CHANGE | _OF_SHARED)[best]}{whose} would save {show_share(saved_s / found.seconds)}"
    return f"{took}: {share} of it {_mostly_text(first.phase, next(iter(first.by_cause)))}{rest}"


def _title(one: PathRound) -> str:
    if one.in_rounds:
        return f"round {one.round}"
    return f"what came {'before' if one.round < 0 else 'after'} the rounds"


def _held_up(found: RoundExplanation) -> str:
    one = found.of
    phase, cause = one.phase or "", one.cause or ""
    if one.client is None or phase in {"timer", "waiting for clients", "server"}:
        spent_s = sum(part.to_s - part.from_s for part in found.path if part.phase == phase)
        return f"{show_share(spent_s / one.seconds)} of it {_mostly_text(phase, cause)}"
    mine = [part for part in found.path if part.client == one.client]
    lost = ", whose job was lost" if any(part.lost for part in mine) else ""
    who = f"client {one.client} ({mine[0].device}, {mine[0].link}){lost}"
    return f"{show_share(one.client_s / one.seconds)} of it for {who}, mostly {_mostly_text(phase, cause)}"


def _mostly_text(phase: str, cause: str) -> str:
    return _WAITING.get(phase) or f"{phase} ({_CAUSE[cause]})"


def _run(found: Explanation) -> Iterator[RenderableType]:
    whole_s = found.seconds
    columns = [
        Column("critical path", "phase"),
        Column("time", "seconds", show_seconds),
        Column("share", lambda row: show_share(row.seconds / whole_s)),
        Column("bound by", "by_cause", _bound_by, left=True),
    ]
    yield Table(columns, found.phases)
    if found.devices:
        own = Column("device", "device", left=True), Column("clients", "clients", "{:,}".format)
        yield from _held(found.devices, own, whole_s)
        who = Column("client", "client"), own[0], Column("link", "link", left=True)
        yield from _held(found.clients, who, whole_s)
    yield Line()
    yield from _saved_in_run(found)
    if len(found.rounds) > 1:
        yield Line()
        longest = sorted(found.rounds, key=lambda one: -one.seconds)[:_ROUNDS]
        whose = ("" if one.client is None else f", client {one.client}" for one in longest)
        each = (
            f"{_title(one)} ({show_seconds(one.seconds)}{who})"
            for one, who in zip(longest, whose, strict=True)
        )
        yield Line(f"longest: {', '.join(each)}; see one with --round", "dim")


def _held(
    rows: Sequence[HeldByClient | HeldByDevice], who: Sequence[Column], whole_s: float
) -> Iterator[RenderableType]:
    columns = [
        *who,
        Column("rounds", "rounds", "{:,}".format),
        Column("time", "seconds", show_seconds),
        Column("share", lambda row: show_share(row.seconds / whole_s)),
        Column("mostly", lambda row: _mostly_text(row.phase, row.cause), left=True),
    ]
    yield Line()
    yield Table(columns, rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield Line(f"  and {len(rows) - _SHOWN:,} more; --json has all", "dim")


def _saved_in_run(found: Explanation) -> Iterator[RenderableType]:
    since = ", ".join(found.unknown_since)
    if found.savings is None:
        why = f"other times make another run ({since})" if since else "the clock alone makes another run"
        why = "the run is too long to run its clock for each change" if found.unsaved == "size" else why
        yield Line(f"savings are unknown: {why}", "dim")
        return
    sides = {"for all clients": found.savings}
    sides |= {f"for client {one.client}": one.savings for one in found.clients[:_COLUMNS] if one.savings}
    names = _CHANGE | _OF_SHARED
    savings = partial(_saved, whole_s=found.seconds)
    columns = (Column(head, partial(savings, saved=saved)) for head, saved in sides.items())
    yield Table([Column("all rounds would save with", names.__getitem__), *columns], found.savings)
    if since:
        yield Line(f"to as many merges: other times make another run ({since})", "dim")


def _saved(change: str, saved: Mapping[str, float], whole_s: float) -> str:
    if change not in saved:
        return MISSING
    seconds = saved[change]
    if abs(seconds) <= _ROUNDING * whole_s:
        return "nothing"
    text = f"{show_seconds(abs(seconds))} ({show_share(abs(seconds) / whole_s)})"
    return text if seconds > 0 else f"{text} longer"


def _round(found: RoundExplanation) -> Table:
    one = found.of
    columns = [
        Column("critical path", "phase"),
        Column("client", "client", left=True),
        Column("device", lambda part: part.device or None, left=True),
        Column("from", lambda part: show_seconds(part.from_s - one.from_s)),
        Column("time", lambda part: show_seconds(part.to_s - part.from_s)),
        Column("share", lambda part: show_share((part.to_s - part.from_s) / one.seconds)),
        Column("bound by", lambda part: _bound_by(part.by_cause) + " (lost)" * part.lost, left=True),
    ]
    return Table(columns, [part for part in found.path if part.to_s - part.from_s >= _LEAST * one.seconds])


def _bound_by(by_cause: Mapping[str, float]) -> str:
    total_s = sum(by_cause.values())
    most = [(cause, seconds / total_s) for cause, seconds in by_cause.items() if seconds >= _LEAST * total_s]
    if len(most) == 1:
        return _CAUSE[most[0][0]]
    return ", ".join(f"{_CAUSE[cause]} {show_share(share)}" for cause, share in most[:_CAUSES])
