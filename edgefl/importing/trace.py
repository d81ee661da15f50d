"""What a trace says of its users, whatever file it was in."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from pydantic import TypeAdapter, ValidationError

from edgefl.core.errors import UserError, short
from edgefl.core.files import sha256_of
from edgefl.core.units import show_count

TOGETHER, INDEPENDENTLY = "together", "independently"
Spans: TypeAlias = list[tuple[float, float]]
"""From when until when a user is available, in seconds, in order and apart."""


class TraceSource(NamedTuple):
    """A file of a trace, its name without folders; the repository and the licence are empty if unknown."""

    file: str
    sha256: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class RecordedUsers:
    """A trace's users, and what it says of each.

    Attributes:
        columns: a value for each user: "device", "link", "slowdown", "down" and "up" in bit/s, "latency" in
            seconds, ``Spans`` as "availability".
        ids: of the users, by which they are the same in another trace; None where it has others.
        repeat_s: after which availability repeats; None for never.
        on_leave: what the trace's own simulator makes of jobs of clients that leave; empty if unknown.
        read, dropped: what was made of it, and what of it is lost, a sentence each.
    """

    kind: str
    sources: tuple[TraceSource, ...]
    columns: Mapping[str, Sequence[Any]]
    ids: Sequence[str] | None = None
    repeat_s: float | None = None
    on_leave: str = ""
    read: Sequence[str] = ()
    dropped: Sequence[str] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def cited(self) -> str:
        """Its files as sources cite them."""
        origins = [f" ({source.origin})" if source.origin else "" for source in self.sources]
        each = zip(self.sources, origins, strict=True)
        return " and ".join(f"{source.file}, SHA-256 {source.sha256}{origin}" for source, origin in each)

    def of(self, users: Sequence[int], lost: str) -> "RecordedUsers":
        """The trace of some of its users, in this order; ``lost`` says what becomes of the others."""
        columns = {key: [values[user] for user in users] for key, values in self.columns.items()}
        ids = self.ids and [self.ids[user] for user in users]
        less = len(self) - len(set(users))
        dropped = told((less, "user", f"of {self.kind}{lost}"))
        return replace(self, ids=ids, columns=columns, dropped=(*self.dropped, *dropped))

    def sampled(self, most: int | None) -> "RecordedUsers":
        """A random sample of at most so many users: the same rows of traces of the same length."""
        if most is None or len(self) <= most:
            return self
        chosen = np.sort(np.random.default_rng(0).permutation(len(self))[:most])
        return self.of(chosen.tolist(), f": {most:,} were drawn at random")


def joined(traces: list[RecordedUsers]) -> tuple[list[RecordedUsers], str]:
    """One or two traces, and how they are dealt: together, row by row, if they are of the same users."""
    first, second = traces[0], traces[-1]
    if first is second:
        return traces, TOGETHER
    ids, place = first.ids or (), {user: index for index, user in enumerate(second.ids or ())}
    here = [index for index, user in enumerate(ids) if user in place]
    if not here:
        return traces, INDEPENDENTLY
    there = [place[ids[index]] for index in here]
    alike = first.of(here, f" not in {second.kind}"), second.of(there, f" not in {first.kind}")
    return [*alike], TOGETHER


def told(*sentences: tuple[int, str, str]) -> list[str]:
    """Sentences about so many of something, where there are any."""
    return [f"{show_count(count, what)} {rest}" for count, what, rest in sentences if count]


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    """Spans in order, those that touch or overlap as one, and none that is empty."""
    found: Spans = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        elif start < end:
            found.append((start, end))
    return found


def source_of(path: Path, origin: str = "") -> TraceSource:
    """A file that was read, with its digest."""
    # A name that is no Unicode could not be written into the profile.
    return TraceSource(path.name.encode(errors="replace").decode(), sha256_of(path), origin)


def users_of(
    path: Path, parse: Callable[[bytes], Any], kinds: Mapping[str, Any]
) -> tuple[str, dict[Any, Any]]:
    """The kind of a file's trace, by what its first user has, and what all of its users have.

    ``parse`` makes plain data of the file's content. A user of a kind has its shape, a TypedDict, or
    more; where they have none of them, and where a file cannot be read, it is a ``UserError``.
    """
    where = str(path)
    try:
        data = parse(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", where=where) from error
    except UserError as error:
        error.where = where
        raise
    except ValueError as error:  # what is wrong with a pickle is told already
        raise UserError(f"not valid JSON: {error}", where=where) from None
    first = next(iter(data.values()), None) if isinstance(data, dict) else None
    has = list(first) if isinstance(first, dict) else []
    kind = next((kind for kind, shape in kinds.items() if shape.__required_keys__ <= set(has)), None)
    if kind is None:
        known = ", or ".join(", ".join(shape.__annotations__) for shape in kinds.values())
        got = f"; got {short(', '.join(map(str, has)))}" if has else ""
        raise UserError(f"must map users to what they have, which must have {known}{got}", where=where)
    try:
        shape: Any = kinds[kind]
        return kind, TypeAdapter(dict[Any, shape]).validate_python(data, strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        what = ", ".join(short(str(one)) for one in wrong["loc"])
        raise UserError(f"user {what}: {wrong['msg']}", where=where) from None
