"""Small traces in the formats of FedScale and FLASH, and what an import makes of them."""

import csv
import json
import pickle
from pathlib import Path
from typing import Any

from edgefl.core.fleet import Fleet
from edgefl.core.yamls import Document
from edgefl.importing import Imported
from edgefl.planning.fleets import profile

CAPACITY = {
    7: {"computation": 30.0, "communication": 1000},
    8: {"computation": 60, "communication": 8000.5},
    9: {"computation": 120.0, "communication": 500.0},
}
BEHAVIOR = {
    1: {"duration": 40, "active": [10, 100], "inactive": [20, 130], "finish_time": 200, "model": "A"},
    2: {"duration": 60, "active": [0, 150], "inactive": [60], "finish_time": 200, "model": "B"},
    3: {"duration": 0, "active": [], "inactive": [], "finish_time": 200, "model": "C"},
}
STATES = {
    "0": {
        "guid": "a",
        "model": "P",
        "messages": "2020-02-03 22:00:00\twifi\n"
        "2020-02-03 22:30:00\tbattery_charged_on\n"
        "2020-02-03 23:00:00\tscreen_lock\n"
        "2020-02-03 23:30:00\t80%\n"
        "2020-02-04 06:00:00\tscreen_unlock\n"
        "2020-02-04 07:00:00\tscreen_lock\n"
        "2020-02-04 08:00:00\t4g\n",
    },
    "1": {
        "guid": "b",
        "model": "Q",
        "messages": "2020-02-04 00:00:00\tscreen_lock\n"
        "2020-02-04 01:00:00\twifi\n"
        "2020-02-04 02:00:00\tscreen_on",
    },
}
SPEEDS = {
    "b": {"down_u": 2000.0, "down_sigma": 500.0, "up_u": 1000.0, "up_sigma": 300.0},
    "z": {"down_u": 250, "down_sigma": 0, "up_u": 125, "up_sigma": 0},
}


def pickled(folder: Path, data: Any, name: str = "trace.pkl") -> Path:
    """A pickle of data."""
    path = folder / name
    path.write_bytes(pickle.dumps(data))
    return path


def written(folder: Path, data: Any, name: str = "trace.json") -> Path:
    """A JSON file of data."""
    path = folder / name
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def table(folder: Path, *lines: str, name: str = "users.csv") -> Path:
    """A CSV file of lines."""
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def record(done: Imported) -> dict[str, Any]:
    """The profile that was written, as plain data."""
    return Document.read(done.path).data


def rows(done: Imported, file: str = "users.csv") -> list[dict[str, str]]:
    """The rows of one of its tables."""
    with (done.path.parent / done.name / file).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def fleet(done: Imported, monkeypatch: Any) -> Fleet:
    """The profile as edgefl reads it, by its name."""
    monkeypatch.setenv("EDGEFL_PATH", str(done.path.parents[1]))
    return profile(done.name)
