"""What the numbers of devices and links assume, in full and in short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from edgefl.core.devices import Board
from edgefl.core.fleet import Cell, Fleet
from edgefl.core.link import Link
from edgefl.core.sourced import Sourced, sourced

# Of the devices and links with assumed numbers, so many are named in short.
_NAMED = 3


def assumptions(devices: Mapping[str, Board], links: Mapping[str, Link]) -> tuple[str, ...]:
    """A line for each unknown number and its consequence, each trace, and each record's assumed numbers."""
    return tuple(_lines(devices, links))


# What ``assumptions`` says of a record.
_OF_RECORD = re.compile(
    r"(?P<who>(link )?\S+): (assumed .+|follows .+|(memory|power|radio) (unknown|has no value), so .+)"
)


def recorded_assumptions(
    lines: Iterable[str], devices: Iterable[str], links: Iterable[str]
) -> tuple[str, ...]:
    """Those of a run's assumptions that are of some devices and links, by name.

    A record that was written out says no more which of its numbers its file left out.
    """
    names = {*devices, *(f"link {link}" for link in links)}
    found = ((line, _OF_RECORD.fullmatch(line)) for line in lines)
    return tuple(line for line, match in found if match and match["who"] in names)


def _lines(devices: Mapping[str, Board], links: Mapping[str, Link]) -> Iterator[str]:
    for name, device in devices.items():
        if device.usable_memory_bytes is None:
            yield f"{name}: memory unknown, so no client with it is refused"
        powers = (device.power.idle, device.power.active, device.power.overhead_bound)
        yield from _without_value(f"{name}: power", powers)
        yield from guesses(name, device)
    for name, link in links.items():
        if link.trace is not None:
            yield f"link {name}: follows {link.trace.in_words()}; profile prices its means over time"
        yield from _without_value(f"link {name}: radio", [link.radio])
        yield from guesses(f"link {name}", link)


def of_cells(fleet: Fleet) -> Iterator[str]:
    """A line for each of a fleet's cells whose rates are assumed, or in which nobody is."""
    for name, cell in fleet.cells.items():
        if all(member.cell != name for member in fleet.members):
            yield f"cell {name}: no member of the fleet names it, so it limits nobody"
        else:
            yield from guesses(f"cell {name}", cell)


def _without_value(what: str, powers: Sequence[Sourced[Any]]) -> Iterator[str]:
    """What becomes of energies where one of some powers has no value."""
    if any(power.value is None for power in powers):
        if any(power.is_interval for power in powers):
            yield f"{what} has no value, so its clients' energy has bounds alone"
        else:
            yield f"{what} unknown, so its clients' energy is unknown"


def guesses(name: str, record: Board | Link | Cell) -> Iterator[str]:
    """A line with a record's assumed numbers; none where it has none."""
    # Defaults that a file leaves out, such as a link's loss, are the model's assumptions, not the file's; and
    # no runtime for inference has a part in a plan.
    counted = record.model_fields_set - {"inference"}
    given = [(key, number) for key, number in sourced(record) if key.split(".")[0] in counted]
    if keys := [key for key, number in given if number.status == "assumed"]:
        yield f"{name}: assumed {', '.join(keys)}"


_GUESSED = re.compile(r"(?P<kind>link )?(?P<name>\S+): assumed (?P<numbers>.+)")
_CONSEQUENCE = re.compile(r"(?P<name>(link )?\S+): (?P<what>\w+ (unknown|has no value), so .+)")


def in_short(lines: Iterable[str]) -> list[str]:
    """Lines of a plan's assumptions with those of ``assumptions`` in short.

    All assumed numbers become one line, with the command that shows them; so do equal consequences.
    """
    kept, shows, numbers = [], [], 0
    consequences: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        if guessed := _GUESSED.fullmatch(line):
            numbers += guessed["numbers"].count(",") + 1
            shows.append(f"{'link' if guessed['kind'] else 'device'} {guessed['name']}")
        elif found := _CONSEQUENCE.fullmatch(line):
            consequences.setdefault(found["what"], []).append(found["name"])
        else:
            kept.append(line)
    kept += [f"{', '.join(names)}: {what}" for what, names in consequences.items()]
    if shows:
        more = f" and {len(shows) - _NAMED} more" if len(shows) > _NAMED else ""
        of = ", ".join(shows[:_NAMED]) + more
        are = "number is" if numbers == 1 else "numbers are"
        kept.append(f"{numbers} {are} assumed, of {of}: edgefl show {shows[0]}")
    return kept
