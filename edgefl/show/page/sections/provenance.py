"""Where a run's figures come from: its settings, its numbers with their sources, its events, its machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from pydantic import BaseModel

from edgefl.core.carbon import numbers
from edgefl.core.fleet import Fleet
from edgefl.core.sourced import sourced
from edgefl.planning.describe import written_number
from edgefl.planning.recorded import recorded_devices, recorded_fleet
from edgefl.show.page.sections.shared import OfRuns
from edgefl.store import Reader, event_hash

# Of ``host.json``; the folder of the data says more of its user than of the figures.
_MACHINE = ("engine", "processor", "cores", "threads", "memory_bytes", "platform", "python", "libraries")


# A fleet may hold a trace of millions of rows.
_MOST_CHARACTERS = 50_000
_LINKS = re.compile(r"(?m)^links:\n(?: .*\n|\n)*")


@dataclass(frozen=True)
class Number:
    """A number of a device or a link, or of what emissions depend on.

    Attributes:
        of: "device NAME", "link NAME" or "carbon".
        name: the number's dotted name there, as `edgefl show` has it.
        value: the number with its unit and its bounds; "unknown" if neither is known.
        status: "measured", "derived", "assumed" or "unknown"; see ``Sourced``.
        source: where it was read, or the reason for an assumption.
    """

    of: str
    name: str
    value: str
    status: str
    source: str


@dataclass(frozen=True)
class FleetSources(OfRuns):
    """A fleet, of all runs that have it.

    Attributes:
        runs: their places.
        title: its own; empty if it has none.
        fleet: its members, availability and so on, as YAML; without its links, whose numbers follow.
        numbers: every number of its devices and links, and of its carbon record.
    """

    title: str
    fleet: str
    numbers: Sequence[Number]


@dataclass(frozen=True)
class Provenance:
    """Of one run.

    Attributes:
        run: its place.
        run_id: the same for equal settings.
        event_hash: the same for equal events; None where nothing has happened yet, or they are damaged.
        scenario: the resolved scenario, with all defaults, as YAML.
        assumed: a line for each assumption, in full.
        made: in one go, resumed (where, and what was different from then on) or replayed (from what).
        machine: from ``host.json``, as far as it is there: "engine" (a mapping with its name), "processor",
            "cores", "threads", "memory_bytes", "platform", "python" and "libraries" (versions by name). Empty
            while the run goes on, and where the file is missing.
    """

    run: int
    run_id: str
    event_hash: str | None
    scenario: str
    assumed: Sequence[str]
    made: str
    machine: Mapping[str, Any]


def provenance(reader: Reader, run: int) -> Provenance:
    """That of a run, whose place is ``run``.

    Raises:
        UserError: ``plan.yaml`` is damaged.
    """
    host = reader.host()
    return Provenance(
        run=run,
        run_id=reader.meta["run_id"],
        event_hash=event_hash(reader),
        scenario=_shortened(_block(reader.plan_text(), "scenario")),
        assumed=reader.meta["assumed"],
        made=_made(reader.meta),
        machine={key: host[key] for key in _MACHINE if key in host},
    )


def _made(meta: Mapping[str, Any]) -> str:
    """How a run was made, in words."""
    if replayed := meta.get("replayed"):
        return f"replayed from {replayed['name']} ({replayed['run_id']})"
    times = (
        ": ".join([f"resumed at version {one['version']}", *filter(None, ["; ".join(one["differences"])])])
        for one in meta.get("resumed", ())
    )
    return "; ".join(times) or "in one go"


def fleet_sources(reader: Reader, run: int) -> FleetSources:
    """Those of a run, whose place is ``run``.

    Raises:
        UserError: ``plan.yaml`` is damaged.
    """
    fleet = recorded_fleet(reader)
    records = {
        **{f"device {name}": device for name, device in recorded_devices(reader).items()},
        **{f"link {name}": link for name, link in fleet.links.items()},
    }
    known = [one for of, record in records.items() for one in _numbers(of, record)]
    text = _shortened(_LINKS.sub("", _block(reader.plan_text(), "fleet")))
    return FleetSources([run], fleet.title, text, [*known, *_carbon(fleet)])


def _block(plan: str, key: str) -> str:
    """What stands under one of the keys of a plan, which alone are not indented."""
    found = re.search(rf"(?m)^{key}:\n((?: .*\n|\n)*)", plan)
    return dedent(found[1]) if found else ""


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    kept, _, _ = text[:_MOST_CHARACTERS].rpartition("\n")
    return f"{kept}\n# {len(text) - len(kept):,} more characters are in plan.yaml.\n"


def _numbers(of: str, record: BaseModel) -> Iterator[Number]:
    for name, number in sourced(record):
        yield Number(of, name, written_number(name, number), number.status, number.source)


def _carbon(fleet: Fleet) -> Iterator[Number]:
    if fleet.carbon is None:
        return
    for name, region in fleet.carbon.regions.items():
        hours = numbers(region.g_per_kwh or "")
        span = " to ".join(f"{value:g}" for value in sorted({min(hours), max(hours)}))
        value = f"{span} g/kWh" + (f" in {len(hours):,} hours" if len(hours) > 1 else "")
        yield Number("carbon", f"regions.{name}", value, str(region.status), str(region.source))
    yield from _numbers("carbon", fleet.carbon)
