"""A run's plan, devices and links, as its directory has them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from edgefl.core.devices import AnyBoard, Board
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.plan import Plan
from edgefl.core.validation import validate
from edgefl.store.plans import read_plan
from edgefl.store.reader import Reader


class Recorded(NamedTuple):
    """What a run was planned of: its plan with its traces; its devices and links by name."""

    plan: Plan
    devices: Mapping[str, Board]
    links: dict[str, Link]


def recorded(reader: Reader) -> Recorded:
    """What a run was planned of; a ``UserError`` if that is damaged, or a component that it names is gone."""
    plan = read_plan(reader)
    return Recorded(plan, recorded_devices(reader), dict(plan.fleet.links))


@lru_cache(maxsize=1)
def recorded_devices(reader: Reader) -> Mapping[str, Board]:
    """A run's devices, by name; a ``UserError`` if ``plan.yaml`` is damaged, or a device's kind is gone."""
    document = reader.document
    devices = document.data["devices"].items()
    return {name: validate(AnyBoard, data, document, ["devices", name]) for name, data in devices}


def recorded_fleet(reader: Reader) -> Fleet:
    """The fleet that a run was planned of, with its links; a ``UserError`` if ``plan.yaml`` is damaged."""
    document = reader.document
    return validate(Fleet, document.data["fleet"], document, ["fleet"])
