"""What trackers recorded, read back from their files in one form, and a tracker that writes JSON lines."""

import json
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

# A tracker of a user's own: one JSON array for each call.
JOURNAL = '''
"""Journal: each call, as a line of JSON."""

import json
from pathlib import Path

import edgefl
from edgefl.trackers import TrackerParams


class Params(TrackerParams):
    file: str

    def build(self):
        return Journal(self.file)



class Journal(edgefl.Callbacks):
    def __init__(self, file):
        self.file = Path(file)

    def write(self, *items):
        with self.file.open("a") as file:
            file.write(json.dumps(items) + "\\n")

    def began(self, run):
        self.write("began", run.name, run.group, run.run_id, run.seed, run.tags["method"])

    def told(self, so_far):
        self.write("told", so_far.what, so_far.round, so_far.t_s, dict(so_far.new))

    def ended(self, end):
        self.write("ended", end.status, end.reason, end.round, end.t_s, dict(end.figures()))
'''


def journal(file: Path) -> list[list[Any]]:
    """The calls that a journal has."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def own_tracker(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str, name: str = "mine") -> Path:
    """Puts a user's tracker on EDGEFL_PATH."""
    file = folder / "own" / "trackers" / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(code, "utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(folder / "own"))
    return file


@dataclass
class Recorded:
    """A run as a tracker has it."""

    status: str
    told: str
    facts: dict[str, str]
    settings: dict[str, Any]
    final: dict[str, float] = field(default_factory=dict)
    charts: dict[str, list[tuple[int, float, float]]] = field(default_factory=dict)

    def add(self, name: str, point: tuple[int, float, float]) -> None:
        """Adds a value to a chart, or to the final figures."""
        group, _, key = name.partition("/")
        if group == "final":
            self.final[key] = point[2]
        elif group == "so_far":
            self.charts.setdefault(key, []).append(point)


def tensorboard(folder: Path) -> Recorded:
    """What TensorBoard reads in a folder of event files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import metadata

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    plugin = events.PluginTagToContent("hparams")
    start = metadata.parse_session_start_info_plugin_data(plugin[metadata.SESSION_START_INFO_TAG])
    words = {
        tag: events.Tensors(f"{tag}/text_summary")[0].tensor_proto.string_val[0].decode()
        for tag in ("run", "status")
    }
    rows = [line.strip("| ").split(" | ") for line in words["run"].splitlines()[2:]]
    settings = {key: getattr(each, each.WhichOneof("kind")) for key, each in start.hparams.items()}
    done = metadata.SESSION_END_INFO_TAG in plugin
    status = "STATUS_SUCCESS" if done else ""
    found = Recorded(status, words["status"], {key: value.strip("`") for key, value in rows}, settings)
    for tag in events.Tags()["scalars"]:
        for event in events.Scalars(tag):
            found.add(tag, (event.step, event.wall_time, event.value))
    return found


def mlflow(uri: str, name: str) -> Recorded:
    """The run of a name in an MLflow store."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiments = {one.experiment_id: one.name for one in client.search_experiments()}
    (run,) = [one for one in client.search_runs(list(experiments)) if one.info.run_name == name]
    facts = {key.removeprefix("edgefl."): value for key, value in run.data.tags.items()}
    told = ": ".join(facts.pop(key) for key in ("status", "reason") if key in facts)
    facts |= {"name": run.info.run_name, "experiment": experiments[run.info.experiment_id]}
    found = Recorded(run.info.status, told, facts, run.data.params)
    for key in run.data.metrics:
        for metric in client.get_metric_history(run.info.run_id, key):
            found.add(key, (metric.step, (metric.timestamp - run.info.start_time) / 1000, metric.value))
    return found


def wandb_records(file: Path) -> Iterator[Any]:
    """The records of a W&B file: a log of LevelDB's format, with a header of W&B's own.

    Blocks of 32 KiB hold pieces, each of a checksum (4 bytes), a length (2) and a type (1: whole, first,
    middle, last); the header counts as part of the first block.
    """
    from wandb.proto import wandb_internal_pb2

    content, header, block = file.read_bytes(), 7, 32 * 1024
    assert content.startswith(b":W&B")
    whole, last = 1, 4
    place, data = header, b""
    while place + header <= len(content):
        if block - place % block < header:
            place += block - place % block
            continue
        length, kind = struct.unpack("<HB", content[place + 4 : place + header])
        data += content[place + header : place + header + length]
        place += header + length
        if kind in {whole, last}:
            yield wandb_internal_pb2.Record.FromString(data)
            data = b""


def _finished(file: Path) -> list[Any]:
    """The records of a W&B file, once W&B's own process has written the last of them."""
    from google.protobuf import message

    until = time.monotonic() + 30
    while True:
        with suppress(message.DecodeError):
            found = list(wandb_records(file))
            if any(record.WhichOneof("record_type") == "exit" for record in found):
                return found
        assert time.monotonic() < until, "W&B has not ended its file"
        time.sleep(0.05)


def _items(items: Any) -> dict[str, Any]:
    return {one.key or ".".join(one.nested_key): json.loads(one.value_json) for one in items}


def wandb(folder: Path) -> Recorded:
    """The one offline run in a folder."""
    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    found = Recorded("", "", {}, {})
    summary: dict[str, Any] = {}
    for record in _finished(file):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            found.settings |= {one.key: json.loads(one.value_json) for one in record.run.config.update}
            found.facts |= {"name": record.run.display_name, "group": record.run.run_group}
            found.facts |= {"project": record.run.project, "entity": record.run.entity}
            found.facts["tags"] = " ".join(record.run.tags)
        elif kind == "history":
            values = _items(record.history.item)
            for name in values.keys() - {name for name in values if name.startswith("_")}:
                found.add(name, (values["round"], values["virtual_s"], values[name]))
        elif kind == "summary":
            summary |= _items(record.summary.update)
        elif kind == "metric":
            found.facts[f"x of {record.metric.name or record.metric.glob_name}"] = record.metric.step_metric
        elif kind == "exit":
            found.status = str(record.exit.exit_code)
    found.settings.pop("_wandb", None)
    own = [key for key in found.settings if key.startswith("edgefl.")]
    found.facts |= {key.removeprefix("edgefl."): str(found.settings.pop(key)) for key in own}
    found.told = ": ".join(filter(None, (summary.get("status"), summary.get("reason"))))
    found.final = {key.removeprefix("final/"): value for key, value in summary.items() if "final/" in key}
    return found
