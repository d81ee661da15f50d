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
    """Whether the log of a database may hold commits that SQLite will not see."""
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
    """Whether the log has a commit behind the last frame that SQLite will see."""
    if len(log) < _HEADER + _FRAME:
        return False
    magic, _, page, begun, *salts, _, _ = np.frombuffer(log[:_HEADER], ">u4").tolist()
    order = ">u4" if magic & 1 else "<u4"
    if magic & ~1 != _MAGIC or page < _SMALLEST_PAGE or page & (page - 1):
        return True
    state = _sums(np.frombuffer(log[:24], order).astype(np.uint32)[None])[0]
    if state.tolist() != np.frombuffer(log[24:_HEADER], ">u4").tolist():
        return True
    count = (len(log) - _HEADER) // (_FRAME + page)
    frames = np.frombuffer(log, np.uint8, count * (_FRAME + page), _HEADER).reshape(count, -1)
    heads = np.ascontiguousarray(frames[:, :_FRAME]).view(">u4")
    hashed = np.concatenate([frames[:, :8], frames[:, _FRAME:]], axis=1)
    step = _power(hashed.shape[1] // 8)
    for place, frame in enumerate(_sums(hashed.view(order).astype(np.uint32))):
        state = step @ state + frame
        head = heads[place].tolist()
        if head[2:4] != salts:
            # A log that begins anew leaves the frames of earlier ones, with the first salt of each less.
            return not 0 < (salts[0] - head[2]) % 2**32 <= begun
        if head[4:] != state.tolist():
            behind = heads[place:][(heads[place:, 2:4] == salts).all(axis=1)]
            return bool(behind[:, 1].any()) or _lost_mark(heads[place, 4:] - state, hashed.shape[1] // 8)
    return False


def _lost_mark(difference: _Words, pairs: int) -> bool:
    """Whether a frame's checksum is wrong by its second word alone, which marks a commit.

    Without a mark, a frame is what is left of changes that were taken back, as when the disk became full:
    its checksum continues that of a frame that was since overwritten.
    """
    first, second = difference * _weights(pairs)[::-1, 1]
    return bool(first == second)


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
