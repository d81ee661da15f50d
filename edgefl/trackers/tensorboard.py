"""TensorBoard: event files in the run's directory; needs the extra `tensorboard`.

The step is the round. The wall time of a point is its virtual time in seconds, so that TensorBoard's relative
axis shows virtual time. Settings are hyperparameters.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from edgefl.core.host import needs
from edgefl.trackers import Began, Callbacks, End, Progress, TrackerParams

# What was recorded can be seen after so long.
_FLUSH_S = 5


class Params(TrackerParams):
    dir: str | None = Field(
        None, description="folder with a folder for each run; null: `tensorboard` in the run's directory"
    )

    def build(self) -> Callbacks:
        return TensorBoard(self)


class TensorBoard(Callbacks):
    """An event file for each run."""

    def __init__(self, params: Params) -> None:
        needs("tensorboard", "tracking needs")
        self._dir = params.dir

    def began(self, run: Began) -> None:
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        folder = run.folder / "tensorboard"
        if self._dir is not None:
            folder = Path(self._dir) / run.folder.resolve().relative_to(run.group_folder.resolve().parent)
        self._file: Any = SummaryWriter(str(folder), flush_secs=_FLUSH_S)
        settings = {key: _plain(value) for key, value in run.settings.items()}
        _, start, self._success = hparams(settings, {})  # type: ignore[no-untyped-call]
        self._file.file_writer.add_summary(start, walltime=0.0)  # type: ignore[attr-defined]
        rows = [f"| {key} | `{value}` |" for key, value in {"name": run.name, **run.facts}.items()]
        self._file.add_text("run", "\n".join(["| | |", "|---|---|", *rows]), walltime=0.0)

    def told(self, so_far: Progress) -> None:
        self._add("so_far", so_far.new, so_far.round, so_far.t_s)

    def ended(self, end: End) -> None:
        self._add("final", end.figures(), end.round, end.t_s)
        status = f"{end.status}: {end.reason}" if end.reason else end.status
        self._file.add_text("status", status, end.round, walltime=end.t_s)
        if end.status == "done":
            self._file.file_writer.add_summary(self._success, end.round, end.t_s)
        self._file.close()

    def _add(self, part: str, figures: Mapping[str, float], step: int, t_s: float) -> None:
        for key, value in figures.items():
            self._file.add_scalar(f"{part}/{key}", float(value), step, walltime=t_s)


def _plain(value: Any) -> bool | float | str:
    """A setting as TensorBoard knows them."""
    return value if isinstance(value, bool | int | float | str) else json.dumps(value)
