"""Summaries and profiles as tables that fit a terminal of 100 columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from edgefl.core.units import show_bytes, show_flops, show_joules, show_seconds

# So many runs stand beside each other; more go into further tables.
ABREAST = 4
MISSING = "-"

Row = tuple[str, Callable[[dict[str, Any]], str]]


def comparison(runs: Sequence[dict[str, Any]]) -> RenderableType:
    """Runs beside each other, a figure a row; see ``edgefl.report.summary``."""
    if len({run["name"] for run in runs}) < len(runs):
        runs = [{**run, "name": f"{run['name']}\n{_group(run)}, seed {run['seed']}"} for run in runs]
    blocks = [runs[start : start + ABREAST] for start in range(0, len(runs), ABREAST)]
    failed = [_unfinished(run) for run in runs if run["status"] != "done"]
    return Group(*(_block(block) for block in blocks), *failed)


def _group(run: dict[str, Any]) -> str:
    """The folder that tells runs of one name apart."""
    folder = Path(run["run_dir"])
    return folder.parent.name if re.match(r"\d\d-", folder.name) else folder.name


def _unfinished(run: dict[str, Any]) -> Text:
    name = run["name"].replace("\n", ", ")
    if run["status"] == "failed":
        return Text(f"{name} failed: {run['reason']}", style="red")
    how = "was interrupted" if run["status"] == "interrupted" else "is still running, or was killed"
    return Text(f"{name} {how}: these are its figures so far", style="yellow")


def _block(runs: Sequence[dict[str, Any]]) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("", no_wrap=True)
    for run in runs:
        table.add_column(run["name"], justify="right", overflow="fold")
    for label, cell in _rows(runs):
        table.add_row(label, *(cell(run) for run in runs))
    return table


def _rows(runs: Sequence[dict[str, Any]]) -> Iterator[Row]:
    yield from _work(runs)
    yield "accuracy, global", lambda run: _accuracy(run, "global")
    yield "accuracy, personal", lambda run: _accuracy(run, "personal")
    if any(_shares(run) for run in runs):
        yield "  of clients", _shares
    after = next((run["after_rounds"] for run in runs if run["after_rounds"]), None)
    if after and any(one["before"] is not None for run in runs for one in run["accuracy"].values()):
        yield f"  before {after}, both", _before
    yield "virtual time", lambda run: show_seconds(run["virtual_s"])
    yield "bytes down", lambda run: show_bytes(run["down_bytes"])
    yield "bytes up", lambda run: show_bytes(run["up_bytes"])
    parts = list(dict.fromkeys(part for run in runs for part in run["bytes_by_part"]))
    for part in parts:
        yield f"  {part}, down / up", lambda run, part=part: _part(run, part)  # type: ignore[misc]
    yield "work of all clients", lambda run: show_flops(run["flops"])
    yield "energy of all clients", _energy
    if any(run["joules"] for run in runs):
        yield "  compute / radio / tail / idle", _phases
    yield "peak device memory", lambda run: show_bytes(run["peak_bytes"]) if run["peak_bytes"] else MISSING
    if any(run["refused"] for run in runs):
        yield "clients refused", lambda run: f"{run['refused']} of {run['clients']}"
    targets = {run["target"]["accuracy"] for run in runs if run["target"]}
    if targets:
        one = f"{targets.pop():.0%}" if len(targets) == 1 else "its target"
        if one == "its target":
            yield "target", lambda run: f"{run['target']['accuracy']:.0%}" if run["target"] else MISSING
        yield f"time to {one}, global", lambda run: _target(run, "global", "t_s", show_seconds)
        yield f"time to {one}, personal", lambda run: _target(run, "personal", "t_s", show_seconds)
        yield f"bytes to {one}, personal", lambda run: _target(run, "personal", "bytes", show_bytes)
        yield f"energy to {one}, personal", _energy_to_target
    yield "most rounds waited for", _waited
    yield "host time", lambda run: show_seconds(run["host_s"]) if run["host_s"] is not None else MISSING


def _work(runs: Sequence[dict[str, Any]]) -> Iterator[Row]:
    """What runs learned on what, where that is not the same for all: their figures are of other work then."""
    rows: list[Row] = [
        ("data", lambda run: run["dataset"] or MISSING),
        ("model", lambda run: ", ".join(run["models"])),
        ("clients", lambda run: str(run["clients"])),
    ]
    for label, cell in rows:
        if len({cell(run) for run in runs}) > 1:
            yield label, cell


def _accuracy(run: dict[str, Any], model: str) -> str:
    found = run["accuracy"].get(model)
    if found is None:
        return MISSING
    spread = f" ±{found['spread']:.1%}" if found.get("spread") is not None else ""
    return f"{found['value']:.1%}{spread}"


def _shares(run: dict[str, Any]) -> str:
    """Whose personal accuracies the mean is over, where that is not all trained clients."""
    found = run["accuracy"].get("personal")
    if found is None or (found["clients"] == run["clients"] and not found["untrained"]):
        return ""
    return f"{found['clients']} of {run['clients']}, {found['untrained']} untrained"


def _before(run: dict[str, Any]) -> str:
    values = [run["accuracy"].get(model) for model in ("global", "personal")]
    shown = [f"{one['before']:.1%}" for one in values if one and one.get("before") is not None]
    return " / ".join(shown) or MISSING


def _part(run: dict[str, Any], part: str) -> str:
    both = run["bytes_by_part"].get(part)
    return f"{show_bytes(both['down'])} / {show_bytes(both['up'])}" if both else MISSING


def _energy(run: dict[str, Any]) -> str:
    return energy(run["joules"], run["energy_known"], run["energy_clients"])


def _phases(run: dict[str, Any]) -> str:
    if not run["joules"]:
        return MISSING
    phases = run["joules_by_phase"]
    radio = phases.get("receive", 0.0) + phases.get("transmit", 0.0)
    shares = [phases.get("compute", 0.0), radio, phases["tail"], phases["idle"]]
    return " / ".join(f"{share / run['joules']:.0%}" for share in shares)


def energy(joules: float | None, known: int, clients: int) -> str:
    """An energy that says whose it is, where it is not everybody's."""
    if joules is None:
        return "unknown"
    return show_joules(joules) + ("" if known == clients else f" ({known} of {clients} clients)")


def _energy_to_target(run: dict[str, Any]) -> str:
    found = run["target"]["personal"] if run["target"] else None
    return energy(found["joules"], found["energy_known"], found["energy_clients"]) if found else MISSING


def _target(run: dict[str, Any], model: str, key: str, show: Callable[[float], str]) -> str:
    found = run["target"][model] if run["target"] else None
    return show(found[key]) if found and found[key] is not None else MISSING


def _waited(run: dict[str, Any]) -> str:
    if not run["waited_for"]:
        return MISSING
    first = run["waited_for"][0]
    return f"client {first['client']}, {first['rounds']}x\n{first['device']}"


def named(title: str, rows: Sequence[tuple[str, ...]], heads: Sequence[str]) -> Table:
    """A plain table of texts."""
    table = Table(title=title or None, title_justify="left", show_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def checked(runs: Sequence[Any]) -> Table:
    """Dry runs, one a row; see ``edgefl.runs.dry``."""
    heads = ("scenario", "run", "clients", "refused", "rounds", "virtual time", "bytes", "energy")
    rows = [
        (
            run.scenario,
            run.name,
            str(run.clients),
            str(run.refused),
            str(run.rounds),
            show_seconds(run.ledger.t_s),
            show_bytes(run.ledger.down_bytes + run.ledger.up_bytes),
            energy(run.ledger.joules, run.ledger.energy_known, len(run.ledger.seen)),
        )
        for run in runs
    ]
    return named("", rows, heads)
