"""The quickstart's event traces, line by line: a change of any price or draw shows as a diff."""

import json

import pytest

from edgefl.runs.group import run

FIELDS = ("seq", "t_s", "kind", "exchange", "round", "client", "job", "version")
CHARGES = ("seconds", "down_bytes", "up_bytes", "flops", "joules")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("golden") / "quickstart"
    small = ["server.rounds=2", "server.participants=4"]
    result = run("quickstart", overrides=small, engine="null", offline=True, out=out)
    return {one.name: one for one in result.runs}


def _line(row):
    """An event as one JSON object; charges of zero are left out, floats keep nine significant digits."""
    shown = {name: row[name] for name in FIELDS}
    shown |= {name: row[name] for name in CHARGES if row[name] != 0}
    return json.dumps(
        {name: float(f"{value:.9g}") if isinstance(value, float) else value for name, value in shown.items()}
    )


@pytest.mark.parametrize("name", ["fedavg", "spherefed", "fedclassavg"])
def test_trace(runs, golden, name):
    """Two rounds of four participants happen as recorded: who, when, and at what cost."""
    lines = [_line(row) for row in runs[name].table("events")]
    golden(f"quickstart-{name}.jsonl", "".join(f"{line}\n" for line in lines))
