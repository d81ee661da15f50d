"""What a trace says of its users, whatever file it was in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from edgefl.core.draws import Floats
from edgefl.core.errors import UserError, short
from edgefl.core.files import sha256_of
from edgefl.core.poisson import Ints
from edgefl.core.units import show_bytes

# FedScale's and FLASH's are far below; a file is read as a whole.
_MOST_BYTES = 2_000_000_000


class TraceSource(NamedTuple):
    """A file of a trace.

    Attributes:
        file: its name, without folders.
        sha256: of its content, in hexadecimal.
        origin: the repository and the licence; empty if unknown.
    """

    file: str
    sha256: str
    origin: str

    def cited(self, digits: int = 64) -> str:
        """The file as sources cite it, with so many digits of its digest."""
        return f"{self.file}, SHA-256 {self.sha256[:digits]}" + (f" ({self.origin})" if self.origin else "")


class UserIntervals(NamedTuple):
    """When users are available.

    Attributes:
        user, start_s, end_s: by user and start, (rows,); a user's do not overlap.
        repeat_s: after which they repeat; None for never.
    """

    user: Ints
    start_s: Floats
    end_s: Floats
    repeat_s: float | None

    def of(self, users: Ints) -> UserIntervals:
        """Those of some users, (n,), which are numbered anew in this order."""
        first = np.searchsorted(self.user, users, "left")
        count = np.searchsorted(self.user, users, "right") - first
        # The rows of each user, one after another.
        row = np.arange(count.sum()) + np.repeat(first - (np.cumsum(count) - count), count)
        number = np.repeat(np.arange(len(users)), count)
        return UserIntervals(number, self.start_s[row], self.end_s[row], self.repeat_s)


@dataclass(frozen=True, kw_only=True)
class RecordedUsers:
    """A trace's users, and what it says of each; None for what it does not say.

    Attributes:
        kind: the kind of trace.
        sources: its files.
        ids: of the users.
        identified: whether the same identifier is the same user in another trace.
        devices, links: names in the catalogue.
        slowdown: multipliers of compute time, (users,).
        down_bps, up_bps: (users,).
        latency_s: round-trip times, (users,).
        intervals: when they are available.
        on_leave: what the trace's own simulator makes of jobs of clients that leave; empty if unknown.
        read: what was made of it, a sentence each.
        dropped: what of it is lost, a sentence each.
    """

    kind: str
    sources: tuple[TraceSource, ...]
    ids: tuple[str, ...]
    identified: bool = False
    devices: tuple[str, ...] | None = None
    links: tuple[str, ...] | None = None
    slowdown: Floats | None = None
    down_bps: Floats | None = None
    up_bps: Floats | None = None
    latency_s: Floats | None = None
    intervals: UserIntervals | None = None
    on_leave: str = ""
    read: tuple[str, ...] = ()
    dropped: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.ids)

    def cited(self, digits: int = 64) -> str:
        """Its files as sources cite them, with so many digits of their digests."""
        return " and ".join(source.cited(digits) for source in self.sources)

    def of(self, users: Ints) -> RecordedUsers:
        """The trace of some of its users, in this order, (n,); one can be there several times."""
        chosen = users.tolist()

        def of(column: Any) -> Any:
            if isinstance(column, UserIntervals):
                return column.of(users)
            if isinstance(column, tuple):
                return tuple(column[user] for user in chosen)
            return None if column is None else column[users]

        columns = ("ids", "devices", "links", "slowdown", "down_bps", "up_bps", "latency_s")
        return replace(self, **{key: of(getattr(self, key)) for key in (*columns, "intervals")})


def check_file(path: Path) -> None:
    """Checks that a file can be read as a whole.

    Raises:
        UserError: there is none, or it is too large.
    """
    try:
        if not path.is_file():
            raise UserError("no such file" if not path.exists() else "not a file", where=str(path))
        if path.stat().st_size > _MOST_BYTES:
            raise UserError(f"{path.name} is larger than {show_bytes(_MOST_BYTES)}", where=str(path))
    except OSError as error:
        raise UserError(f"cannot read {path.name}: {error.strerror}", where=str(path)) from error


def content_of(path: Path) -> bytes:
    """A file's content.

    Raises:
        UserError: it cannot be read, or is too large.
    """
    check_file(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {path.name}: {error.strerror}", where=str(path)) from error


def source_of(path: Path, origin: str = "") -> TraceSource:
    """A file that was read, with its digest."""
    # A name that is no Unicode could not be written into the profile.
    return TraceSource(path.name.encode(errors="replace").decode(), sha256_of(path), origin)


def json_of(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        UserError: it cannot be read, or is no JSON.
    """
    try:
        return from_json(content_of(path))
    except ValueError as error:
        raise UserError(f"not valid JSON: {error}", where=str(path)) from None


def users_of(data: Any, kinds: Mapping[str, type[Any]], file: str) -> tuple[str, dict[Any, Any]]:
    """The kind of a file's trace, by what its first user has, and what all of its users have.

    Args:
        data: the file's content.
        kinds: of each kind of trace, a user's shape, a TypedDict; a user may have more.
        file: its name, for messages.

    Raises:
        UserError: there are no users, or one has another shape.
    """
    if not isinstance(data, dict):
        raise UserError(f"must map users to what is recorded of them; got {_named(data)}", where=file)
    if not data:
        raise UserError("the file has no users", where=file)
    first = next(iter(data.values()))
    has = first.keys() if isinstance(first, dict) else ()
    kind = next((kind for kind, shape in kinds.items() if shape.__annotations__.keys() <= set(has)), None)
    if kind is None:
        known = ", or ".join(", ".join(shape.__annotations__) for shape in kinds.values())
        got = short(", ".join(map(str, has))) or _named(first)
        raise UserError(f"the first user must have {known}; got {got}", where=file)
    try:
        shape: Any = kinds[kind]
        return kind, TypeAdapter(dict[Any, shape]).validate_python(data, strict=True)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        user, *place = wrong["loc"]
        what = ", ".join([f"user {_named(user)}", *(short(str(one)) for one in place)])
        raise UserError(f"{what}: {wrong['msg']}; got {_named(wrong['input'])}", where=file) from None


def _named(value: Any) -> str:
    """What a value is, for messages: a text or a number may be shown, and nothing that may contain itself."""
    return short(repr(value)) if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
