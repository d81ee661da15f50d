"""What the shipped scenarios do: every event of theirs, and the accuracies that they end with.

An event list stands here as its number of rows, its totals and its SHA-256, over every column at nine
significant digits; ``test_traces.py`` has short lists in full, for a difference that can be read. Accuracies
are real training on the reference engine. They are equal on the processor and the torch that recorded them;
elsewhere kernels round differently, and a few test images may fall on the other side.
"""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from mixed import MIXED
from nightly import mostly

from edgefl.runs.group import run

SCENARIOS = {name: name for name in ("quickstart", "stragglers", "temperature")} | {"mixed": MIXED}
COLUMNS = (
    "seq", "t_s", "kind", "exchange", "round", "client", "job", "version",
    "seconds", "down_bytes", "up_bytes", "flops", "joules", "tail_j", "idle_j",
)  # fmt: skip
RECORD = Path(__file__).with_name("behaviour.json")
LEARNED = ("accuracies", "losses")
# Of digits' 359 test images.
ELSEWHERE = 0.03


def _text(value):
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _behaviour(one):
    """A run as plain data: its events in short, and each model's last accuracy."""
    events = one.table("events")
    lines = [" ".join(_text(row[name]) for name in COLUMNS) for row in events]
    return {
        "events": len(events),
        "sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "t_s": float(f"{events[-1]['t_s']:.9g}"),
        **{name: sum(row[name] for row in events) for name in ("down_bytes", "up_bytes", "flops")},
        "joules": float(f"{sum(row['joules'] or 0.0 for row in events):.9g}"),
        "accuracies": {row["model"]: row["accuracy"] for row in one.table("evaluations")},
        "losses": {row["model"]: row["loss"] for row in one.table("evaluations")},
    }


def _processor():
    return f"torch {torch.__version__.split('+')[0]}, {torch.backends.cpu.get_cpu_capability()}"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_events(scenario, tmp_path):
    """Who did what, when, at what cost, by the clock alone: as recorded."""
    result = run(SCENARIOS[scenario], engine="null", offline=True, out=tmp_path / "out")
    record = json.loads(RECORD.read_text(encoding="utf-8"))[scenario]
    for one in result.runs:
        now = _behaviour(one)
        assert {key: now[key] for key in now if key not in LEARNED} == {
            key: record[one.name][key] for key in now if key not in LEARNED
        }


# All of quickstart is trained in half a minute.
@pytest.mark.parametrize("scenario", mostly(SCENARIOS, ("mixed",)))
def test_behaviour(scenario, request, tmp_path):
    """Who did what, when, at what cost, and what was learned in the end: as recorded."""
    result = run(SCENARIOS[scenario], engine="loop", offline=True, out=tmp_path / "out")
    assert not result.failed
    now = {one.name: _behaviour(one) for one in result.runs}
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if request.config.getoption("--bless"):
        record |= {"processor": _processor(), scenario: now}
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    expected = record[scenario]
    if record["processor"] != _processor():
        for name, one in now.items():
            for learned in LEARNED:
                close = pytest.approx(expected[name].pop(learned), abs=ELSEWHERE)
                assert one.pop(learned) == close
    assert now == expected
