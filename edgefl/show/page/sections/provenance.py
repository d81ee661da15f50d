"""Where a run's figures come from: its settings, its numbers with their sources, its events, its machine."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from edgefl.core.fleet import Fleet
from edgefl.core.host import version
from edgefl.core.sourced import sourced
from edgefl.core.yamls import RESOLVED, dump
from edgefl.planning.carbon import Carbon
from edgefl.planning.describe import written_number
from edgefl.planning.fleets import recorded_devices, recorded_fleet
from edgefl.show.page.frames import shared
from edgefl.show.page.records import PageTable, Read, Section, TableCell, Told, once, shortened
from edgefl.show.values import setting_text

# Of ``host.json``; the folder of the data says more of its user than of the figures. It is missing while the
# run goes on.
_MACHINE = ("engine", "processor", "cores", "threads", "memory_bytes", "platform", "python", "libraries")
# A fleet may hold a trace of millions of rows.
_MOST_CHARACTERS = 50_000
# Runs whose events and machines are seen at once.
_FEW = 12


class RunOrigin(NamedTuple):
    """Where one run's figures come from.

    Attributes:
        told: in words: the hash of its events, the same for equal events; how it was made, in one go, resumed
            (where, and what was different from then on) or replayed (from what); and its machine.
        texts: by what they are: the scenario with all defaults, as YAML, and a line for each assumption.
        fleet: its members, availability and so on, as YAML; without its links, whose numbers are listed.
        numbers: every number of its devices, its links and its carbon record: (of, name, value with its unit
            and its bounds, status, source).
    """

    told: tuple[str, str, str]
    texts: Mapping[str, str]
    fleet: str
    numbers: Sequence[tuple[str, str, str, str, str]]


def section(told: Told, read: Sequence[RunOrigin]) -> Section:
    """The origins of all runs; fleets and numbers that they share once."""
    texts: dict[str, str] = {}
    rows = []
    for head, one in zip(told.runs, read, strict=True):
        name, folder = shortened(head.summary.name), head.summary.run_dir
        of = f"{name} ({folder})" if folder else name
        texts |= {f"{title} {of}": text for title, text in one.texts.items()}
        rows.append(list(map(TableCell, (of, *one.told))))
    head_of = ["run", "hash of its events", "made", "machine"]
    tables = [
        PageTable("Each run's events and the machine that ran it", head_of, rows, folded=len(rows) > _FEW)
    ]
    for runs, text in shared((place, one.fleet) for place, one in enumerate(read)):
        texts[f"Fleet of {once(told.runs[run].summary.name for run in runs)}"] = text
    if found := dict.fromkeys(number for one in read for number in one.numbers):
        caption = "Where the numbers of devices and links come from"
        head_of = ["of", "number", "value", "status", "source"]
        tables.append(
            PageTable(caption, head_of, [list(map(TableCell, number)) for number in found], folded=True)
        )
    facts = {"made by": f"edgefl {version()}"}
    return Section("provenance", "Provenance", facts=facts, tables=tables, texts=texts)


def read(one: Read) -> RunOrigin:
    """That of a run.

    Raises:
        UserError: its plan is damaged.
    """
    reader = one.run.reader
    host, fleet, plan = reader.host(), recorded_fleet(reader), reader.document.data
    records = {
        **{f"device {name}": device for name, device in recorded_devices(reader).items()},
        **{f"link {name}": link for name, link in fleet.links.items()},
    }
    machine = ", ".join(f"{key} {setting_text(host[key])}" for key in _MACHINE if key in host)
    texts = {"Resolved scenario of": _shortened(dump(plan["scenario"]))}
    if assumed := reader.meta["assumed"]:
        texts["Assumed by"] = "\n".join(assumed)
    return RunOrigin(
        told=(reader.event_hash() or "unknown", _made(reader.meta), machine or "unknown"),
        texts=texts,
        fleet=_shortened(dump({key: value for key, value in plan["fleet"].items() if key != "links"})),
        numbers=[*(each for of, record in records.items() for each in _numbers(of, record)), *_carbon(fleet)],
    )


def _made(meta: Mapping[str, Any]) -> str:
    if replayed := meta.get("replayed"):
        return f"replayed from {replayed['name']} ({replayed['run_id']})"
    times = (
        ": ".join([f"resumed at version {one['version']}", *filter(None, ["; ".join(one["differences"])])])
        for one in meta.get("resumed", ())
    )
    return "; ".join(times) or "in one go"


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    kept, _, _ = text[:_MOST_CHARACTERS].rpartition("\n")
    return f"{kept}\n# {len(text) - len(kept):,} more characters are in plan.yaml.\n"


def _numbers(of: str, record: BaseModel) -> Iterator[tuple[str, str, str, str, str]]:
    for name, number in sourced(record):
        yield of, name, written_number(name, number), number.status, number.source


def _carbon(fleet: Fleet) -> Iterator[tuple[str, str, str, str, str]]:
    if fleet.carbon is None:
        return
    carbon = Carbon.model_validate(fleet.carbon, context=RESOLVED)
    for name, region in carbon.regions.items():
        hours = list(map(float, (region.g_per_kwh or "").split()))
        span = " to ".join(f"{value:g}" for value in sorted({min(hours), max(hours)}))
        value = f"{span} g/kWh" + (f" in {len(hours):,} hours" if len(hours) > 1 else "")
        yield "carbon", f"regions.{name}", value, str(region.status), str(region.source)
    yield from _numbers("carbon", carbon)
