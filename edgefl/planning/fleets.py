"""Devices and fleets from their files."""

from __future__ import annotations

from edgefl.core import catalogue
from edgefl.core.device import Device
from edgefl.core.fleet import Fleet, inherited
from edgefl.core.scenario import Draft
from edgefl.core.yamls import Document, plain, validate


def device(name: str, *, where: str = "") -> Device:
    """A device by name.

    Raises:
        UserError: no file claims the name, or the file is wrong.
    """
    document = Document.read(catalogue.find("devices", name, where=where).path)
    return validate(Device, plain(document.data), document)


def profile(name: str, *, where: str = "") -> Fleet:
    """A fleet by name.

    Raises:
        UserError: no file claims the name, or the file is wrong.
    """
    document = Document.read(catalogue.find("profiles", name, where=where).path)
    return validate(Fleet, inherited(plain(document.data), document.file), document)


def fleet_of(draft: Draft) -> Fleet:
    """A scenario's fleet: its own, or the profile it names."""
    fleet = draft.scenario.fleet
    return fleet if isinstance(fleet, Fleet) else profile(fleet, where=str(draft.document.place(["fleet"])))


def devices_of(fleet: Fleet, where: str) -> dict[str, Device]:
    """The devices of a fleet's members, by name."""
    return {member.device: device(member.device, where=where) for member in fleet.members}
