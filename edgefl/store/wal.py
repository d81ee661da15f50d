"""Damage in SQLite's write-ahead log, ``run.sqlite-wal``, of a run that did not end or goes on.

SQLite takes the log up to the first frame whose checksum is wrong, since that is what a crash leaves, and
says nothing of commits behind it. The format is in https://www.sqlite.org/walformat.html.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_MAGIC = 0x377F0682  # and one more where checksums are of big-endian numbers
_HEADER, _FRAME = 32, 24
_SMALLEST_PAGE = 512
# A log that is being written may be seen half-written.
_TRIES, _PAUSE_S = 3, 0.02

_Words = NDArray[np.uint32]


def lost_commits(database: Path) -> bool:
    """Whether the log of a database holds a commit that SQLite will not see."""
    for attempt in range(_TRIES):
        try:
            content = database.with_name(f"{database.name}-wal").read_bytes()
        except OSError:
            return False
        if not _cut_short(content):
            return False
        if attempt < _TRIES - 1:
            time.sleep(_PAUSE_S)
    return True


def _cut_short(log: bytes) -> bool:
    """Whether there is a commit at or behind the first frame that is not as it was written."""
    if len(log) < _HEADER + _FRAME:
        return False
    magic, _, page, *_ = np.frombuffer(log[:_HEADER], ">u4").tolist()
    order = ">u4" if magic & 1 else "<u4"
    if magic & ~1 != _MAGIC or page < _SMALLEST_PAGE or page & (page - 1):
        return True
    header = np.frombuffer(log[:_HEADER], order).astype(np.uint32)
    state = _sums(header[None, :6])[0]
    if state.tolist() != np.frombuffer(log[24:_HEADER], ">u4").tolist():
        return True
    count = (len(log) - _HEADER) // (_FRAME + page)
    frames = np.frombuffer(log, np.uint8, count * (_FRAME + page), _HEADER).reshape(count, -1)
    heads = np.ascontiguousarray(frames[:, :_FRAME]).view(">u4")
    # Frames of before the log began anew have other salts.
    current = (heads[:, 2:4] == np.frombuffer(log[16:24], ">u4")).all(axis=1)
    commits = np.flatnonzero(current & (heads[:, 1] != 0))
    if not len(commits):
        return False
    upto = int(commits[-1]) + 1
    hashed = np.concatenate([frames[:upto, :8], frames[:upto, _FRAME:]], axis=1)
    sums = _sums(hashed.view(order).astype(np.uint32))
    step = _power(hashed.shape[1] // 8)
    for frame, stored in zip(sums, heads[:upto, 4:6].tolist(), strict=True):
        state = step @ state + frame
        if state.tolist() != stored:
            return True
    return not bool(current[:upto].all())


def _sums(words: _Words) -> _Words:
    """The checksum (2 numbers) of each row of an even number of words, begun at zero.

    For each pair (x, y) SQLite does s += x + t; t += y + s. That is linear modulo 2^32, so that each word
    counts by a factor that depends on its place alone.
    """
    weights = _weights(words.shape[1] // 2)
    found: _Words = np.stack([(words * row).sum(axis=1, dtype=np.uint32) for row in weights], axis=1)
    return found


@cache
def _weights(pairs: int) -> _Words:
    """(2, words): what a word adds to each of the two numbers."""
    columns = [_power(pairs - 1 - place) @ _ENTER for place in range(pairs)]
    return np.concatenate(columns, axis=1)


@cache
def _power(pairs: int) -> _Words:
    """(2, 2): what so many pairs of zeros make of the two numbers."""
    if pairs == 0:
        return np.eye(2, dtype=np.uint32)
    # Not by recursion, which would be thousands of calls deep.
    power, square, left = np.eye(2, dtype=np.uint32), _STEP, pairs
    while left:
        power = power @ square if left & 1 else power
        square, left = square @ square, left >> 1
    return power


_STEP = np.array([[1, 1], [1, 2]], dtype=np.uint32)
_ENTER = np.array([[1, 0], [1, 1]], dtype=np.uint32)
