"""MLflow: a run in its tracking store, in an experiment of the scenario's name; needs the extra `mlflow`.

The step is the round. The timestamp of a point is that of the run's start plus its virtual time, so that
MLflow's relative axis shows virtual time; it is also the metric `virtual_s`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from edgefl.core.params import Strict
from edgefl.trackers import TIME, End, Point, Run, check_installed

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

# MLflow's limits of names and values.
_LONGEST_NAME, _LONGEST_VALUE = 250, 6000
_STATUS = {"done": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}


class Params(Strict):
    """The store and the experiment."""

    uri: str | None = Field(
        None,
        description="tracking store, such as sqlite:///mlflow.db or http://host:5000; null: MLflow's default",
    )
    experiment: str | None = Field(None, description="experiment; null: the scenario's name")


def check(params: Params) -> None:  # noqa: ARG001
    """Checks the installation.

    Raises:
        UserError: MLflow is not installed.
    """
    check_installed("mlflow", "'edgefl-emulator[mlflow]'")


def build(params: Params, run: Run) -> MlflowRun:
    """The run in the store, with its settings."""
    # Read when MLflow is imported. It reports its use unless told otherwise.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    # Half a minute for a server that does not answer, in place of minutes.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "4")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    from mlflow import MlflowClient

    # How it makes tables in a new database.
    for name in ("mlflow.store", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return MlflowRun(MlflowClient(params.uri), params.experiment or run.group, run)


class MlflowRun:
    """A run in an MLflow store. MLflow's active run, if a program has one, is left alone."""

    def __init__(self, client: MlflowClient, experiment: str, run: Run) -> None:
        from mlflow.entities import Param

        self._client = client
        self._start_ms = round(time.time() * 1000)
        facts = {"run_id": run.run_id, "group": run.group, "seed": run.seed, "directory": run.folder}
        tags = {f"edgefl.{key}": str(value) for key, value in {**facts, **run.tags}.items()}
        tags["mlflow.source.name"] = "edgefl"
        created = client.create_run(_experiment(client, experiment), self._start_ms, tags, run.name)
        self._id = created.info.run_id
        params = [Param(_name(key), _text(value)[:_LONGEST_VALUE]) for key, value in run.settings.items()]
        client.log_batch(self._id, params=params)

    def log(self, points: Sequence[Point]) -> None:
        """See ``Tracker.log``."""
        metrics = [
            metric
            for point in points
            for metric in self._metrics({**point.figures, TIME: point.t_s}, point.round, point.t_s)
        ]
        self._client.log_batch(self._id, metrics=metrics)

    def finish(self, end: End) -> None:
        """See ``Tracker.finish``."""
        figures = {f"final/{key}": value for key, value in end.figures.items()}
        self._client.log_batch(self._id, metrics=list(self._metrics(figures, end.round, end.t_s)))
        self._client.set_tag(self._id, "edgefl.status", end.status)
        if end.reason:
            self._client.set_tag(self._id, "edgefl.reason", end.reason[:_LONGEST_VALUE])
        self._client.set_terminated(self._id, _STATUS[end.status])

    def _metrics(self, figures: Mapping[str, float], step: int, t_s: float) -> Iterator[Metric]:
        from mlflow.entities import Metric

        at_ms = self._start_ms + round(t_s * 1000)
        return (Metric(_name(key), float(value), at_ms, step) for key, value in figures.items())


def _experiment(client: MlflowClient, name: str) -> str:
    """The experiment's id; it is created if there is none."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:
            # Another process may have been quicker.
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)


def _name(key: str) -> str:
    """A key with the characters that MLflow allows in names."""
    return re.sub(r"[^\w.\- :/]", "_", key, flags=re.ASCII)[:_LONGEST_NAME]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
