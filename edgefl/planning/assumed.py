"""What the numbers of devices and links assume, in full and in short."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from edgefl.core.devices import Board
from edgefl.core.fleet import Cell, Fleet
from edgefl.core.link import Link
from edgefl.core.plan import Assumption
from edgefl.core.sourced import Sourced, sourced

# Of the devices and links with assumed numbers, so many are named in short.
_NAMED = 3
# Of whose numbers `edgefl show` knows, and what stands before its owner there.
_SHOWN = {"device": "device ", "server": "device ", "link": ""}


def recorded_assumptions(
    lines: Iterable[str], devices: Iterable[str], links: Iterable[str]
) -> tuple[Assumption, ...]:
    """Those of a run's assumptions that are of some devices and links, by name.

    A record that was written out says no more which of its numbers its file left out.
    """
    names = {*(("device", name) for name in devices), *(("link", f"link {name}") for name in links)}
    return tuple(line for line in lines if isinstance(line, Assumption) and (line.kind, line.owner) in names)


def assumptions(devices: Mapping[str, Board], links: Mapping[str, Link]) -> Iterator[Assumption]:
    """One for each unknown number and its consequence, each trace, and each record's assumed numbers."""
    for name, device in devices.items():
        if device.usable_memory_bytes is None:
            yield Assumption("device", name, "memory unknown, so no client with it is refused")
        powers = (device.power.idle, device.power.active, device.power.overhead_bound)
        yield from _without_value("device", name, "power", powers)
        yield from assumed_numbers("device", name, device)
    for name, link in links.items():
        owner = f"link {name}"
        if link.trace is not None:
            follows = f"follows {link.trace.in_words()}; profile prices its means over time"
            yield Assumption("link", owner, follows)
        yield from _without_value("link", owner, "radio", [link.radio])
        yield from assumed_numbers("link", owner, link)


def of_cells(fleet: Fleet) -> Iterator[Assumption]:
    """A line for each of a fleet's cells whose rates are assumed, or in which nobody is."""
    for name, cell in fleet.cells.items():
        if all(member.cell != name for member in fleet.members):
            nobody = "no member of the fleet names it, so it limits nobody"
            yield Assumption("cell", f"cell {name}", nobody)
        else:
            yield from assumed_numbers("cell", f"cell {name}", cell)


def _without_value(kind: str, owner: str, what: str, powers: Sequence[Sourced[Any]]) -> Iterator[Assumption]:
    """What becomes of energies where one of some powers has no value."""
    if any(power.value is None for power in powers):
        bounded = "has no value, so its clients' energy has bounds alone"
        unknown = "unknown, so its clients' energy is unknown"
        are = bounded if any(power.is_interval for power in powers) else unknown
        yield Assumption(kind, owner, f"{what} {are}")


def assumed_numbers(kind: str, owner: str, record: Board | Link | Cell) -> Iterator[Assumption]:
    """A line with a record's assumed numbers; none where it has none."""
    # Defaults that a file leaves out, such as a link's loss, are the model's assumptions, not the file's; and
    # no runtime for inference has a part in a plan.
    counted = record.model_fields_set - {"inference"}
    found = [
        key for key, number in sourced(record) if number.status == "assumed" and key.split(".")[0] in counted
    ]
    if found:
        yield Assumption(kind, owner, f"assumed {', '.join(found)}", found)


def guesses(lines: Iterable[str]) -> Iterator[Assumption]:
    """Those of a plan's assumptions that list assumed numbers."""
    return (line for line in lines if isinstance(line, Assumption) and line.numbers)


def in_short(lines: Iterable[str]) -> list[str]:
    """Lines of a plan's assumptions, equal consequences on one line.

    The assumed numbers of all devices and links become one line, the last, with the command that shows them.
    """
    told: dict[str, list[str]] = {}
    shows, numbers = [], 0
    for line in dict.fromkeys(lines):
        if isinstance(line, Assumption) and line.numbers and line.kind in _SHOWN:
            numbers += len(line.numbers)
            shows.append(_SHOWN[line.kind] + line.owner)
        elif isinstance(line, Assumption):
            told.setdefault(line.consequence, []).append(line.owner)
        else:
            told[line] = []
    kept = [f"{', '.join(owners)}: {what}" if owners else what for what, owners in told.items()]
    if shows:
        more = f" and {len(shows) - _NAMED} more" if len(shows) > _NAMED else ""
        of = ", ".join(shows[:_NAMED]) + more
        are = "number is" if numbers == 1 else "numbers are"
        kept.append(f"{numbers} {are} assumed, of {of}: edgefl show {shows[0]}")
    return kept
