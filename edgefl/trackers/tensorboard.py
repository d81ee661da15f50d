"""TensorBoard: event files in the run's directory; needs the extra `tensorboard`.

The step is the round. The wall time of a point is its virtual time in seconds, so that TensorBoard's relative
axis shows virtual time. Settings are hyperparameters.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from edgefl.core.params import Strict
from edgefl.trackers import TIME, End, Point, Run, check_installed

if TYPE_CHECKING:
    from torch.utils.tensorboard import FileWriter


class Params(Strict):
    """Where the event files go."""

    dir: str | None = Field(
        None, description="folder with a folder for each run; null: `tensorboard` in the run's directory"
    )


def check(params: Params) -> None:  # noqa: ARG001
    """Checks the installation.

    Raises:
        UserError: TensorBoard is not installed.
    """
    check_installed("tensorboard", "'edgefl-emulator[tensorboard]'")


def build(params: Params, run: Run) -> EventFile:
    """The run's event file, with its settings."""
    from torch.utils.tensorboard import FileWriter

    folder = run.folder / "tensorboard" if params.dir is None else Path(params.dir) / run.place
    return EventFile(FileWriter(str(folder)), run)


class EventFile:
    """An event file, written out after each call."""

    def __init__(self, file: FileWriter, run: Run) -> None:
        self._file = file
        facts = {"name": run.name, "group": run.group, "run_id": run.run_id, "seed": run.seed, **run.tags}
        rows = [f"| {key} | `{value}` |" for key, value in {**facts, "directory": run.folder}.items()]
        file.add_summary(_session(start=run.settings), walltime=0.0)
        file.add_summary(_text("run", "\n".join(["| | |", "|---|---|", *rows])), walltime=0.0)
        file.flush()

    def log(self, points: Sequence[Point]) -> None:
        """See ``Tracker.log``."""
        for point in points:
            self._add({**point.figures, f"cost/{TIME}": point.t_s}, point.round, point.t_s)
        self._file.flush()

    def finish(self, end: End) -> None:
        """See ``Tracker.finish``."""
        self._add({f"final/{key}": value for key, value in end.figures.items()}, end.round, end.t_s)
        status = f"{end.status}: {end.reason}" if end.reason else end.status
        self._file.add_summary(_text("status", status), end.round, end.t_s)
        self._file.add_summary(_session(done=end.status == "done"), end.round, end.t_s)
        self._file.close()

    def _add(self, figures: Mapping[str, float], step: int, t_s: float) -> None:
        """All figures of a step as one event: quicker than one each."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in figures.items()]
        self._file.add_summary(Summary(value=values), step, t_s)


def _text(tag: str, words: str) -> Any:
    """A text, read as Markdown."""
    from torch.utils.tensorboard.summary import text

    return text(tag, words)  # type: ignore[no-untyped-call]


def _session(*, start: Mapping[str, Any] | None = None, done: bool = False) -> Any:
    """A session of the hyperparameters' plugin: its settings, or its end.

    TensorBoard's own functions for it need TensorFlow, and torch's know only sessions that succeed.
    """
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    data = plugin_data_pb2.HParamsPluginData()
    if start is None:
        tag = metadata.SESSION_END_INFO_TAG
        data.session_end_info.status = api_pb2.STATUS_SUCCESS if done else api_pb2.STATUS_FAILURE
        data.session_end_info.end_time_secs = time.time()
    else:
        tag = metadata.SESSION_START_INFO_TAG
        data.session_start_info.start_time_secs = time.time()
        for key, value in start.items():
            _set(data.session_start_info.hparams[key], value)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata.create_summary_metadata(data))])


def _set(field: Any, value: Any) -> None:
    """Sets a value of protobuf's ``Value``."""
    if isinstance(value, bool):
        field.bool_value = value
    elif isinstance(value, int | float):
        field.number_value = value
    else:
        field.string_value = value if isinstance(value, str) else json.dumps(value)
