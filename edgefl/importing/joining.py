"""Which users of several traces are the same, and how many of them are taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgefl.core.errors import UserError
from edgefl.core.poisson import Ints
from edgefl.core.units import show_count
from edgefl.importing.profile import INDEPENDENTLY, TOGETHER
from edgefl.importing.trace import RecordedUsers


def joined(
    traces: list[RecordedUsers], dealt: str | None, most: int | None
) -> tuple[list[RecordedUsers], str]:
    """Traces whose users are the same, row by row, or are dealt independently; and which of these.

    Args:
        traces: one or two, as they were read.
        dealt: "together" or "independently"; None: together if the traces identify users whom they both have.
        most: of more users than so many, a random sample is taken; None for all.

    Raises:
        UserError: they are to be dealt together, and have no users in common.
    """
    if len(traces) == 1:
        return [_sampled(traces[0], most)], dealt or TOGETHER
    first, second = traces
    place = {user: index for index, user in enumerate(second.ids)}
    common = [index for index, user in enumerate(first.ids) if user in place]
    if dealt is None:
        dealt = TOGETHER if common and first.identified and second.identified else INDEPENDENTLY
    if dealt == INDEPENDENTLY:
        return [_sampled(first, most), _sampled(second, most)], dealt
    if not common:
        raise UserError(
            f"{first.kind} and {second.kind} have no users in common",
            where="--dealt",
            hint="deal them independently",
        )
    here = np.array(common)
    there = np.array([place[first.ids[index]] for index in common])
    alike = [_lacking(first, here, second.kind), _lacking(second, there, first.kind)]
    return [_sampled(one, most) for one in alike], dealt


def _lacking(trace: RecordedUsers, common: Ints, other: str) -> RecordedUsers:
    """A trace of the users whom another one has too."""
    lost = len(trace) - len(np.unique(common))
    more = (f"{show_count(lost, 'user')} of {trace.kind} not in {other}",) if lost else ()
    return replace(trace.of(common), dropped=(*trace.dropped, *more))


def _sampled(trace: RecordedUsers, most: int | None) -> RecordedUsers:
    """A random sample: the same rows of traces of the same length."""
    count = len(trace)
    if most is None or count <= most:
        return trace
    chosen = np.sort(np.random.default_rng(0).permutation(count)[:most])
    lost = f"{show_count(count - most, 'user')} of {trace.kind}: {most:,} were drawn at random"
    return replace(trace.of(chosen), dropped=(*trace.dropped, lost))
