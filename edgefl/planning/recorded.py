"""A run's devices and fleet, as its directory has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from edgefl.core.devices import Board, board_of
from edgefl.core.fleet import Fleet
from edgefl.core.validation import validate
from edgefl.store import Reader


@lru_cache(maxsize=1)
def recorded_devices(reader: Reader) -> Mapping[str, Board]:
    """A run's devices, by name; a ``UserError`` if ``plan.yaml`` is damaged, or a device's kind is gone."""
    document = reader.document()
    return {
        name: board_of(data, document, ["devices", name]) for name, data in document.data["devices"].items()
    }


def recorded_fleet(reader: Reader) -> Fleet:
    """The fleet that a run was planned of, with its links; a ``UserError`` if ``plan.yaml`` is damaged."""
    document = reader.document()
    return validate(Fleet, document.data["fleet"], document, ["fleet"])
