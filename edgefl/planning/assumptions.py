"""What the figures assume: unmeasured numbers of devices and links, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edgefl.core.devices import Board
from edgefl.core.link import Link
from edgefl.core.sourced import sourced


def assumptions(devices: Mapping[str, Board], links: Mapping[str, Link]) -> tuple[str, ...]:
    """A line for each unknown number and its consequence, and one for each record's assumed numbers."""
    return tuple(_lines(devices, links))


def _lines(devices: Mapping[str, Board], links: Mapping[str, Link]) -> Iterator[str]:
    for name, device in devices.items():
        if device.usable_memory_bytes is None:
            yield f"{name}: memory unknown, so no client with it is refused"
        if device.power.idle.value is None or device.power.active.value is None:
            yield f"{name}: power unknown, so its clients' energy is unknown"
        yield from _guesses(name, device)
    for name, link in links.items():
        if link.radio.value is None:
            yield f"link {name}: radio unknown, so its clients' energy is unknown"
        yield from _guesses(f"link {name}", link)


def _guesses(name: str, record: Board | Link) -> Iterator[str]:
    # Defaults that a file leaves out, such as a link's loss, are the model's assumptions, not the file's.
    given = [(key, number) for key, number in sourced(record) if key.split(".")[0] in record.model_fields_set]
    guesses = [key for key, number in given if number.status == "assumed"]
    if guesses:
        yield f"{name}: assumed {', '.join(guesses)}"
