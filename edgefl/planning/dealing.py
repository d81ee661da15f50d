"""What the clients of a fleet are: the devices, links and types of its members, or of recorded users."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from edgefl.core import seeds
from edgefl.core.arrays import Floats, Ints
from edgefl.core.fleet import Fleet
from edgefl.core.users import Named, UserTable


class DealtClients(NamedTuple):
    """What each client is.

    Attributes:
        member: whose dtype and cell it has, and whatever is not recorded of users, (clients,).
        device, link, dtype: by client.
        slowdown: recorded ones, (clients,); None for none.
        user: whose recorded availability it has, (clients,).
    """

    member: Ints
    device: Named
    link: Named
    dtype: Named
    slowdown: Floats | None
    user: Ints


def dealt(fleet: Fleet, clients: int, root: int) -> DealtClients:
    """What each client is.

    Where devices are recorded, a client's member is one with its device, by their shares; where no member has
    it, any member.

    Args:
        fleet: with the links that clients have.
        clients: how many.
        root: the scenario's seed.
    """
    own = UserTable() if fleet.users is None else fleet.users.deal(clients, root)
    rng, members, links = seeds.generator(root, "fleet"), fleet.members, tuple(fleet.links)
    member = fleet.deal(clients, rng) if own.device is None else _alike(fleet, own.device, rng)
    link = own.link or _of(member, [one.link for one in members])
    # Of members that nobody is, there may be links that the fleet has not read.
    known = {name: place for place, name in enumerate(links)}
    places = np.array([known.get(name, -1) for name in link.names], dtype=np.int64)
    return DealtClients(
        member=member,
        device=own.device or _of(member, [one.device for one in members]),
        link=Named(places[link.place], links),
        dtype=_of(member, [one.dtype for one in members]),
        slowdown=own.slowdown,
        user=np.arange(clients) if own.availability is None else own.availability,
    )


class ClientKind(NamedTuple):
    """A device, the number type that it computes in and the link that it is behind."""

    device: str
    dtype: str
    link: str


def kinds(fleet: Fleet) -> list[ClientKind]:
    """The kinds of clients that a fleet can have, each once."""
    return list(
        dict.fromkeys(
            ClientKind(device or member.device, member.dtype, link or member.link)
            for device, link in _recorded(fleet)
            for member in (fleet.members[place] for place in _with(fleet, device))
        )
    )


def _recorded(fleet: Fleet) -> list[tuple[str, str]]:
    """The devices and links that are recorded of one user; "" where they are those of members."""
    table = UserTable() if fleet.users is None else fleet.users.table()
    device, link = table.device, table.link
    if fleet.users is None or device is None or link is None or fleet.users.dealt == "independently":
        return list(product(device.names if device else [""], link.names if link else [""]))
    pairs = np.unique(np.stack([device.place, link.place]), axis=1).T.tolist()
    return [(device.names[one], link.names[other]) for one, other in pairs]


def _with(fleet: Fleet, device: str) -> Sequence[int]:
    """The places of members that have a device; of all where none has it."""
    places = range(len(fleet.members))
    return [place for place in places if fleet.members[place].device == device] or places


def _alike(fleet: Fleet, device: Named, rng: np.random.Generator) -> Ints:
    """A member for each client, of those with its device."""
    found = np.zeros(len(device.place), dtype=np.int64)
    for place, name in enumerate(device.names):
        whose = np.flatnonzero(device.place == place)
        found[whose] = fleet.deal(len(whose), rng, _with(fleet, name))
    return found


def _of(member: Ints, names: Sequence[str]) -> Named:
    """Each client's name, which is its member's."""
    known = tuple(dict.fromkeys(names))
    return Named(np.array([known.index(name) for name in names], dtype=np.int64)[member], known)
