"""What links that clients share cost a run; ``critical.shared_time`` finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Transfer(NamedTuple):
    """What a run's transfers one way take in the mean.

    Attributes:
        seconds: each, sent once.
        alone_s: on their clients' own links.
    """

    seconds: float
    alone_s: float


@dataclass(frozen=True)
class SharedTime:
    """What sharing costs a run.

    Attributes:
        share: the share of its rounds' time in which critical paths wait for others' transfers.
        download, upload: what transfers take; None without any.
    """

    share: float
    download: Transfer | None
    upload: Transfer | None
