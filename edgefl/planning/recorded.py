"""A run's plan, devices and links, as its directory has them."""

from __future__ import annotations

from typing import NamedTuple

from edgefl.core.devices import KINDS, Board
from edgefl.core.link import Link
from edgefl.core.plan import Plan
from edgefl.core.validation import validate
from edgefl.store import Reader, read_plan


class Recorded(NamedTuple):
    """What a run was planned of.

    Attributes:
        plan: with its traces.
        devices: by name.
        links: by name.
    """

    plan: Plan
    devices: dict[str, Board]
    links: dict[str, Link]


def recorded(reader: Reader) -> Recorded:
    """What a run was planned of.

    Raises:
        UserError: a file or a row is damaged, or a component that it names is gone.
    """
    plan, document = read_plan(reader), reader.document()
    devices = {
        name: validate(KINDS[data["kind"]], data, document, ["devices", name])
        for name, data in document.data["devices"].items()
    }
    return Recorded(plan, devices, dict(plan.fleet.links))
