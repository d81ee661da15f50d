"""Weights & Biases: a run of a project, grouped by the scenario; needs the extra `wandb`.

Nothing is sent unless `mode` or the environment variable WANDB_MODE is `online`; `wandb sync` sends the files
of an offline run later. The metrics `round` and `virtual_s` can be x-axes; `round` is the default.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from edgefl.core.errors import UserError
from edgefl.core.host import needs
from edgefl.trackers import Began, Callbacks, End, Progress, TrackerParams

if TYPE_CHECKING:
    import wandb


class Params(TrackerParams):
    project: str = Field("edgefl", min_length=1, description="project")
    entity: str | None = Field(None, description="user or team; null: W&B's default")
    mode: Literal["online", "offline", "disabled"] | None = Field(
        None, description="when it is sent; null: as the environment variable WANDB_MODE says, or offline"
    )
    dir: str | None = Field(None, description="folder for the folder `wandb`; null: the run's own")
    tags: tuple[str, ...] = Field((), description="tags beside the method, the data set and the engine")

    def build(self) -> Callbacks:
        return Wandb(self)


class Wandb(Callbacks):
    """Runs in W&B, beside the one that a program may have."""

    def __init__(self, params: Params) -> None:
        needs("wandb", "tracking needs")
        self._params = params
        self._mode: Any = params.mode or os.environ.get("WANDB_MODE") or "offline"
        # W&B's reports about errors of its own go over the network, offline too. Read when it is imported.
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        if self._mode == "online":
            import wandb

            # It would ask for one.
            if not wandb.login(prompt=False, verify=False):
                hint = "run `wandb login`, set WANDB_API_KEY, or use mode: offline"
                raise UserError("W&B has no API key", hint=hint)

    def began(self, run: Began) -> None:
        import wandb

        params = self._params
        folder = run.folder if params.dir is None else Path(params.dir)
        folder.mkdir(parents=True, exist_ok=True)
        settings = wandb.Settings(
            silent=True,
            console="off",
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_disable_meta=True,
            # A server that does not answer holds up a run's beginning for so long, and its end.
            init_timeout=30.0,
            finish_timeout=60.0,
            finish_timeout_raises=True,
        )
        self._run: wandb.Run = wandb.init(
            project=params.project,
            entity=params.entity,
            group=run.group,
            name=run.name,
            tags=[*(run.tags[key] for key in ("method", "dataset", "engine")), *params.tags],
            config={**run.settings, **{f"edgefl.{key}": value for key, value in run.facts.items()}},
            dir=str(folder.resolve()),
            mode=self._mode,
            reinit="create_new",
            settings=settings,
        )
        for name in ("round", "virtual_s"):
            self._run.define_metric(name)
        self._run.define_metric("*", step_metric="round")

    def told(self, so_far: Progress) -> None:
        new = {f"so_far/{key}": value for key, value in so_far.new.items()}
        if new:
            self._run.log({"round": so_far.round, "virtual_s": so_far.t_s, **new})

    def ended(self, end: End) -> None:
        final = {f"final/{key}": value for key, value in end.figures().items()}
        self._run.summary.update({**final, "status": end.status, "reason": end.reason})
        if end.status != "done":
            self._run.tags = (*(self._run.tags or ()), end.status)
        self._run.finish(exit_code=0 if end.status == "done" else 1)
