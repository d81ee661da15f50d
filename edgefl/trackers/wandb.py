"""Weights & Biases: a run of a project, grouped by the scenario; needs the extra `wandb`.

Nothing is sent unless `mode` or the environment variable WANDB_MODE is `online`; `wandb sync` sends the files
of an offline run later. The metrics `round` and `virtual_s` can be x-axes; `round` is the default.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import Field

from edgefl.core.errors import UserError
from edgefl.core.params import Strict
from edgefl.trackers import ROUND, TIME, End, Point, Run, check_installed

if TYPE_CHECKING:
    import wandb

Mode: TypeAlias = Literal["online", "offline", "disabled"]
"""Sends at once, writes files that `wandb sync` sends, or does nothing."""

_MODE = "WANDB_MODE"
# A server that does not answer holds up the end of the process for so long.
_INIT_S = 30.0


class Params(Strict):
    """The project, and whether anything is sent."""

    project: str = Field("edgefl", min_length=1, description="project")
    entity: str | None = Field(None, description="user or team; null: W&B's default")
    mode: Mode | None = Field(
        None, description=f"what is sent; null: the environment variable {_MODE}, or offline"
    )
    dir: str | None = Field(None, description="folder for the folder `wandb`; null: the run's own")
    tags: tuple[str, ...] = Field((), description="tags beside the method, the data set and the engine")

    @property
    def chosen_mode(self) -> Mode:
        """The mode; offline if neither the parameter nor the environment names another.

        Raises:
            UserError: the environment names an unknown one.
        """
        if self.mode or not os.environ.get(_MODE):
            return self.mode or "offline"
        for mode in get_args(Mode):
            if mode == os.environ[_MODE]:
                found: Mode = mode
                return found
        raise UserError(f"must be online, offline or disabled, not {os.environ[_MODE]!r}", where=_MODE)


def check(params: Params) -> None:
    """Checks the installation, the mode and, where something is to be sent, that there is a key.

    Raises:
        UserError: W&B is not installed, the mode is unknown, or there is no API key.
    """
    check_installed("wandb", "'edgefl-emulator[wandb]'")
    if params.chosen_mode == "online" and not _has_key():
        hint = "run `wandb login`, set WANDB_API_KEY, or use mode: offline"
        raise UserError("W&B has no API key", hint=hint)


def _has_key() -> bool:
    """Whether W&B would find credentials where it looks first; otherwise it asks for them."""
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    host = urlsplit(os.environ.get("WANDB_BASE_URL") or "https://api.wandb.ai").hostname or ""
    named = os.environ.get("NETRC")
    for path in [Path(named)] if named else [Path.home() / name for name in (".netrc", "_netrc")]:
        with suppress(OSError, NetrcParseError):
            if netrc(path).authenticators(host):
                return True
    return False


def build(params: Params, run: Run) -> WandbRun:
    """The run in W&B, with its settings."""
    # W&B's reports about errors of its own go over the network, offline too. Read when it is imported.
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    import wandb

    facts = {"run_id": run.run_id, "seed": run.seed, "directory": str(run.folder), **run.tags}
    folder = run.folder if params.dir is None else Path(params.dir)
    folder.mkdir(parents=True, exist_ok=True)
    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,
        disable_code=True,
        x_disable_stats=True,
        x_disable_meta=True,
        init_timeout=_INIT_S,
    )
    begun = wandb.init(
        project=params.project,
        entity=params.entity,
        group=run.group,
        name=run.name,
        tags=[*(run.tags[key] for key in ("method", "dataset", "engine")), *params.tags],
        config={**run.settings, **{f"edgefl.{key}": value for key, value in facts.items()}},
        dir=str(folder.resolve()),
        mode=params.chosen_mode,
        # Beside the run that a program may have, not in its place.
        reinit="create_new",
        settings=settings,
    )
    return WandbRun(begun)


class WandbRun:
    """A run in W&B."""

    def __init__(self, run: wandb.Run) -> None:
        self._run = run
        run.define_metric(ROUND)
        run.define_metric(TIME)
        run.define_metric("*", step_metric=ROUND)

    def log(self, points: Sequence[Point]) -> None:
        """See ``Tracker.log``."""
        for point in points:
            self._run.log({ROUND: point.round, TIME: point.t_s, **point.figures})

    def finish(self, end: End) -> None:
        """See ``Tracker.finish``."""
        final = {f"final/{key}": value for key, value in end.figures.items()}
        self._run.summary.update({**final, "status": end.status, "reason": end.reason})
        if end.status != "done":
            self._run.tags = (*(self._run.tags or ()), end.status)
        self._run.finish(exit_code=0 if end.status == "done" else 1)
