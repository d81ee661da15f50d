"""Devices, links and fleets from their files, or as a run's directory has them."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from edgefl.core import catalogue, inheriting
from edgefl.core.availability.intervals import Params as Intervals
from edgefl.core.components import as_its_file
from edgefl.core.devices import WIDTHS, AnyBoard, Board, DType
from edgefl.core.drafts import Draft
from edgefl.core.errors import Mistakes, UserError, in_one_line, nearest
from edgefl.core.fleet import Fleet
from edgefl.core.link import Link
from edgefl.core.notes import note
from edgefl.core.validation import item_at, validate
from edgefl.core.yamls import Document
from edgefl.planning.carbon import carbon_of, with_carbon
from edgefl.planning.dealing import kinds
from edgefl.store.reader import Reader

# What stands for every device.
ALL = "all"


def device(name: str, *, where: str = "") -> Board:
    """A device by name; a ``UserError`` if no file has the name, or the file is wrong."""
    return device_of(Document.read(catalogue.find("devices", name, where=where).path))


def device_of(own: Document) -> Board:
    """The device that a file describes; its title is by default the file's name.

    Raises:
        UserError: the file, or one that it is like, is wrong.
    """
    document = inheriting.inherited("devices", own)
    try:
        found: Board = validate(AnyBoard, {"title": Path(own.file).stem, **document.data}, document)
    except UserError as error:
        if (like := own.data.get("like")) and not error.hint:
            error.hint = f"keys left out are {like}'s; null removes one"
        raise
    return inheriting.attributed(found, document, taken=True)


def profile(name: str, *, where: str = "") -> Fleet:
    """A fleet by name, as in its file; a ``UserError`` if no file has the name, or the file is wrong."""
    file = Document.read(catalogue.find("profiles", name, where=where).path)
    document = inheriting.inherited("profiles", file)
    fleet = inheriting.attributed(validate(Fleet, document.data, document), document)
    if carbon := carbon_of(fleet, document):
        fleet = with_carbon(fleet, inheriting.attributed(carbon, document.inside()["carbon"]))
    return _known_users(fleet, item_at(document.data, ["users"]), document.place(["users"]))


def link(name: str, *, where: str = "") -> Link:
    """A network class by name; a ``UserError`` if no file has the name, or the file is wrong."""
    document = Document.read(catalogue.find("links", name, where=where).path)
    return inheriting.attributed(validate(Link, document.data, document), document)


def fleet_of(draft: Draft, known: dict[str, Fleet] | None = None) -> Fleet:
    """A scenario's fleet: its own or the named profile, with all links that its members name.

    ``known`` has profiles that were read before, by name; reading one takes tens of milliseconds. A wrong
    file is a ``UserError``.
    """
    where = draft.document.place(["fleet"])
    fleet, known = draft.scenario.fleet, {} if known is None else known
    if isinstance(fleet, Fleet):
        fleet = with_carbon(fleet, carbon_of(fleet, draft.document, ["fleet"]))
        fleet = _known_users(fleet, item_at(draft.document.data, ["fleet", "users"]), where)
        if fleet.link is not None:
            where = draft.document.place(["fleet", "link"])
            members = tuple(one.model_copy(update={"link": fleet.link}) for one in fleet.members)
            users = fleet.users and fleet.users.without("link")
            fleet = fleet.model_copy(update={"members": members, "users": users, "link": None})
        return fleet.model_copy(update={"links": links_of(fleet, where)})
    if fleet not in known:
        found = profile(fleet, where=where)
        known[fleet] = found.model_copy(update={"links": links_of(found, where)})
    return known[fleet]


def _known_users(fleet: Fleet, given: Any, where: str) -> Fleet:
    """A fleet whose recorded users have names as their files spell them.

    ``where`` is the fleet's place, for messages where the users were not given by a file.
    """
    users, file, mistakes = fleet.users, item_at(given, ["file"]), Mistakes()
    where = str(catalogue.user_file(file)) if file else where
    if users is None:
        return fleet
    table = users.table()
    for column, named_, own in (("device", table.device, ()), ("link", table.link, tuple(fleet.links))):
        spelled = {}
        for name in named_.names if named_ else ():
            with mistakes.collected():
                spelled[name] = as_its_file(f"{column}s", name, own, where)
        users = users.renamed(column, spelled)
    if table.availability is not None and isinstance(fleet.availability, Intervals):
        number, most = int(table.availability.max()), int(fleet.availability.table()[-1, 0])
        if number > most:
            what = f"availability {number} is not in the intervals file, whose largest number is {most}"
            mistakes.add(UserError(what, where=where))
    mistakes.check()
    return fleet.model_copy(update={"users": users})


def links_of(fleet: Fleet, where: str) -> dict[str, Link]:
    """The links that a fleet's clients have: the fleet's own first, then network classes.

    Raises:
        UserError: a name is neither, or a file is wrong.
    """
    names = dict.fromkeys(kind.link for kind in kinds(fleet))
    return {name: fleet.links.get(name) or link(name, where=where) for name in names}


def devices_of(fleet: Fleet, where: str) -> dict[str, Board]:
    """The devices that a fleet's clients have, by name."""
    return named([kind.device for kind in kinds(fleet)], where)


def named(names: Sequence[str], where: str) -> dict[str, Board]:
    """Devices by name, each read once; "all" is every one, but for wrong files, which a note names.

    Raises:
        UserError: names are unknown, or files are wrong.
    """
    found, mistakes = dict[str, Board](), Mistakes()
    for name in catalogue.entries("devices") if ALL in names else dict.fromkeys(names):
        try:
            found[name] = device(name, where=where)
        except UserError as error:
            if ALL in names:
                note(f"device {name} is left out: {in_one_line(error)}")
            else:
                mistakes.add(error)
    mistakes.check()
    return found


def dtype_of(text: str | None) -> DType | None:
    """A number type by name, in any case; a ``UserError`` if the name is unknown."""
    if text is None:
        return None
    if text.lower() not in WIDTHS:
        raise UserError(f"unknown number type {text!r}", where="--dtype", hint=nearest(text.lower(), WIDTHS))
    return cast("DType", text.lower())


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
