"""What the clients of a fleet are: the devices, links and types of its members, or of recorded users."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from edgefl.core import draws
from edgefl.core.arrays import Floats, Ints
from edgefl.core.fleet import Fleet
from edgefl.core.units import show_count
from edgefl.core.users import Named, Users, UserTable


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
    it, any member. The fleet has the links of all clients; ``root`` is the scenario's seed.
    """
    own = UserTable() if fleet.users is None else dealt_users(fleet.users, clients, root)
    rng, members, links = draws.generator(root, "fleet"), fleet.members, tuple(fleet.links)
    member = by_share(fleet, clients, rng) if own.device is None else _alike(fleet, own.device, rng)
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
        found[whose] = by_share(fleet, len(whose), rng, _with(fleet, name))
    return found


def _of(member: Ints, names: Sequence[str]) -> Named:
    """Each client's name, which is its member's."""
    known = tuple(dict.fromkeys(names))
    return Named(np.array([known.index(name) for name in names], dtype=np.int64)[member], known)


def by_share(
    fleet: Fleet, clients: int, rng: np.random.Generator, among: Sequence[int] | None = None
) -> Ints:
    """Each client's member: shares by largest remainder, then shuffled."""
    places = range(len(fleet.members)) if among is None else among
    # Exact fractions: of equal remainders, the member listed first gets the client.
    shares = [Fraction(fleet.members[place].share) for place in places]
    exact = [share * clients / sum(shares) for share in shares]
    counts = [math.floor(count) for count in exact]
    by_remainder = sorted(range(len(shares)), key=lambda index: counts[index] - exact[index])
    for index in by_remainder[: clients - sum(counts)]:
        counts[index] += 1
    return rng.permutation(np.repeat(np.array(places, dtype=np.int64), counts))


def share_cells(fleet: Fleet, member: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Each client's cell, (clients,), -1 for none; and the cells' names, (cells,).

    Clients whose members name the same cell fill such cells in their order, which dealing shuffled.
    """
    found, names = np.full(len(member), -1, dtype=np.int64), list[str]()
    for name, cell in fleet.cells.items():
        inside = np.flatnonzero(np.array([one.cell == name for one in fleet.members])[member])
        found[inside] = len(names) + np.arange(len(inside)) // cell.clients
        names += [name] * -(-len(inside) // cell.clients)
    return found, tuple(names)


def dealt_users(users: Users, clients: int, root: int) -> UserTable:
    """What each client has of recorded users, a row each.

    Clients take the users of a random permutation, again and again if there are more clients than users.
    """
    table, turns = users.table(), np.arange(clients) % users.count
    found = {}
    for column in table.columns:
        purpose = "users" if users.dealt == "together" else f"users: {column}"
        whose = draws.generator(root, purpose).permutation(users.count)[turns]
        values = getattr(table, column)
        whole = isinstance(values, Named)
        found[column] = values._replace(place=values.place[whose]) if whole else values[whose]
    return UserTable(**found)


def assumption(users: Users, clients: int) -> str:
    """How recorded users are dealt to so many clients, as a sentence."""
    *others, last = users.table().columns
    listed = f"{', '.join(others)} and {last}" if others else f"{last} is all that is recorded"
    apart = " are dealt independently of each other"
    how = " of one user stay together" if users.dealt == "together" else apart
    turns = f" for {clients:,} clients, in turn" if clients > users.count else ""
    recorded = show_count(users.count, "recorded user")
    return f"fleet.users: {recorded}{turns}; {listed}{how if others else ''}"
