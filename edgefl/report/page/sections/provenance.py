"""Where a run comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.store import Reader


@dataclass(frozen=True)
class Provenance:
    """Of one run.

    Attributes:
        run: its place.
        scenario: the resolved scenario as YAML.
        assumed: a line for each assumption.
        sources: numbers of devices and links: of, name, value, status, source.
        event_hash: the same for the same events.
        machine: engine, machine, libraries.
    """

    run: int
    scenario: str
    assumed: Sequence[str]
    sources: Sequence[Mapping[str, Any]]
    event_hash: str
    machine: Mapping[str, Any]


def provenance(reader: Reader, run: int) -> list[Provenance]:
    """Those of a run, whose place is ``run``."""
    del reader, run
    return []
