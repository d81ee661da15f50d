"""MLflow: a run in its tracking store, in an experiment of the scenario's name; needs the extra `mlflow`.

The step is the round. The timestamp of a point is that of the run's start plus its virtual time, so that
MLflow's relative axis shows virtual time.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from pydantic import Field

from edgefl.core.errors import UserError
from edgefl.core.host import needs
from edgefl.trackers import Began, Callbacks, End, Progress, TrackerParams

if TYPE_CHECKING:
    from mlflow.entities import Metric

# MLflow's limits of names and values.
_LONGEST_NAME, _LONGEST_VALUE = 250, 6000
_STATUS = {"done": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
# Read when MLflow is imported. It reports its use unless told otherwise, and waits for a server for minutes.
_DEFAULTS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
# A request is made so often at most.
_EVERY_S = 1.0


class Params(TrackerParams):
    uri: str | None = Field(
        None,
        description="tracking store, such as sqlite:///mlflow.db or http://host:5000; null: MLflow's default",
    )
    experiment: str | None = Field(None, description="experiment; null: the scenario's name")

    def build(self) -> Callbacks:
        return Mlflow(self)


class Mlflow(Callbacks):
    """Runs in an MLflow store. MLflow's active run, if a program has one, is left alone."""

    def __init__(self, params: Params) -> None:
        needs("mlflow", "tracking needs")
        self._params = params
        self._metrics: list[Metric] = []
        self._sent_s = 0.0

    def began(self, run: Began) -> None:
        for name, value in _DEFAULTS.items():
            os.environ.setdefault(name, value)
        from mlflow import MlflowClient
        from mlflow.entities import Param

        # How it makes tables in a new database.
        for name in ("mlflow.store", "alembic"):
            logging.getLogger(name).setLevel(logging.WARNING)
        self._client = MlflowClient(self._params.uri)
        self._start_ms = round(time.time() * 1000)
        tags = {f"edgefl.{key}": value for key, value in run.facts.items()}
        experiment = self._experiment(self._params.experiment or run.group)
        created = self._client.create_run(
            experiment, self._start_ms, {**tags, "mlflow.source.name": "edgefl"}, run.name
        )
        self._id = created.info.run_id
        texts = {key: one if isinstance(one, str) else json.dumps(one) for key, one in run.settings.items()}
        params = [Param(_name(key), text[:_LONGEST_VALUE]) for key, text in texts.items()]
        self._client.log_batch(self._id, params=params)

    def told(self, so_far: Progress) -> None:
        self._add("so_far", so_far.new, so_far.round, so_far.t_s, _EVERY_S)

    def ended(self, end: End) -> None:
        self._add("final", end.figures(), end.round, end.t_s, 0.0)
        self._client.set_tag(self._id, "edgefl.status", end.status)
        if end.reason:
            self._client.set_tag(self._id, "edgefl.reason", end.reason[:_LONGEST_VALUE])
        self._client.set_terminated(self._id, _STATUS[end.status])

    def _add(self, part: str, figures: Mapping[str, float], step: int, t_s: float, rest_s: float) -> None:
        from mlflow.entities import Metric

        at_ms = self._start_ms + round(t_s * 1000)
        for key, value in figures.items():
            self._metrics.append(Metric(_name(f"{part}/{key}"), float(value), at_ms, step))
        if time.monotonic() - self._sent_s >= rest_s:
            self._client.log_batch(self._id, metrics=self._metrics)
            self._metrics, self._sent_s = [], time.monotonic()

    def _experiment(self, name: str) -> str:
        """The experiment's id; it is created if there is none."""
        from mlflow.exceptions import MlflowException

        # Another process may be quicker.
        with suppress(MlflowException):
            return str(self._client.create_experiment(name))
        found = self._client.get_experiment_by_name(name)
        if found is None:
            raise UserError(f"MLflow can neither find nor make the experiment {name!r}")
        return str(found.experiment_id)


def _name(key: str) -> str:
    """A key with the characters that MLflow allows in names."""
    return re.sub(r"[^\w.\- :/]", "_", key, flags=re.ASCII)[:_LONGEST_NAME]
