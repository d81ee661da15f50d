"""Disks that become full: one message, status 1, and what was committed can be read and exported."""

from __future__ import annotations

import json

import pytest
from damage import files_of_at_most

from edgefl.cli import main
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.store import is_run, read, verify

SCENARIO = {
    "name": "full",
    "task": {"dataset": "digits", "clients": 5},
    "model": {"name": "mlp", "hidden": [64]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 64},
    "fleet": "home-lab",
    "server": {"participants": 3},
}


# At 550,000 the database would end within a page of the limit. Unlike on a full disk, what was held free is
# of no use to a file that may not grow, and the run's end cannot be written.
SIZES = [100, 30_000, 90_000, 130_000, 230_000, 300_000, 580_000, 5_000_000]


@pytest.mark.parametrize(("engine", "rounds"), [("null", 900), ("loop", 20)])
def test_a_full_disk_at_any_moment(tmp_path, capsys, engine, rounds):
    """Files that may not grow, of many sizes: one message, and what is said agrees with what is kept."""
    ends = set()
    (tmp_path / "s.yaml").write_text(json.dumps(SCENARIO), encoding="utf-8")
    asked = ["--engine", engine, "--set", f"server.rounds={rounds}", "--json"]
    for size in SIZES:
        out = tmp_path / f"run-{size}"
        with files_of_at_most(size), pytest.raises(SystemExit) as ended:
            main(["run", str(tmp_path / "s.yaml"), "--out", str(out), *asked])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        assert not {path.suffix for path in out.glob("*")} & {".tmp", ".lock"}
        # Nothing is printed where nothing could be planned.
        found = json.loads(printed.out)["runs"] if printed.out else []
        ends.add((ended.value.code or 0, bool(found), found[0]["status"] if found else ""))
        if ended.value.code:
            assert "cannot write" in printed.err
        assert (out.exists(), is_run(out)) == (bool(found), bool(found))
        if found:
            with read(out) as reader:
                assert reader.meta["status"] == found[0]["status"]
                saved = reader.rows("versions")
            assert verify(out) == []
            if saved:
                assert trained(out, DataAccess()).version == max(row["version"] for row in saved)
    assert ends == {(1, False, ""), (1, True, "failed"), (0, True, "done")}
