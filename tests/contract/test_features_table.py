"""``edgefl table RUN features``: what a run's last models make of test images, before their heads."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from commands import run_command
from nightly import sampled
from small import SKEWED, SMALL

import edgefl
from edgefl.export.trained import trained
from edgefl.planning.learning import DataAccess
from edgefl.store.reader import read

SCENARIO = {**SMALL, "task": {**SKEWED, "clients": 4}, "server": {"rounds": 1}}


def made(folder: Path, **changes: object) -> Path:
    (run,) = edgefl.run({**SCENARIO, **changes}, out=folder).runs
    assert run.status == "done", run.reason
    return run.folder


def rows_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, str]]:
    status, out, err = run_command(capsys, "table", *arguments)
    assert status == 0, err
    return list(csv.DictReader(io.StringIO(out)))


def accuracies(folder: Path, rows: list[dict[str, str]]) -> dict[int | None, float]:
    """What the models' heads, applied to the features, get right, by client."""
    found, right = trained(folder, DataAccess(download=False)), {}
    for row in rows:
        client = int(row["client"]) if row["client"] else None
        head = found.predictor(client).weights["head"]
        features = np.array([float(row[key]) for key in row if key.startswith("feature_") and row[key]])
        logits = head["weight"].numpy() @ features + (head["bias"].numpy() if "bias" in head else 0)
        right.setdefault(client, []).append(logits.argmax() == int(row["label"]))
    return {client: float(np.mean(each)) for client, each in right.items()}


@sampled(1, ("method", "head"), [("fedavg", "global"), ("spherefed", "global"), ("fedclassavg", "own")])
def test_heads_on_features_have_the_accuracies_of_the_run(tmp_path, capsys, method, head):
    """Of the global model on the whole test set; of clients' own, where there is no other, on their own."""
    folder = made(tmp_path / "run", method=method)
    found = accuracies(folder, rows_of(capsys, folder, "features"))
    with read(folder) as reader:
        (last,) = reader.query("SELECT MAX(version) AS version FROM evaluations")
        (overall,) = reader.query(
            "SELECT accuracy FROM evaluations WHERE model = 'global' AND version = ?", last["version"]
        ) or [None]
        own = {
            row["client"]: row["accuracy"]
            for row in reader.query("SELECT * FROM client_evaluations WHERE version = ?", last["version"])
        }
    expected = {None: overall["accuracy"]} if head == "global" else own
    assert found == {client: pytest.approx(value) for client, value in expected.items()}


def test_mistakes_are_one_message(tmp_path, capsys):
    folder = made(tmp_path / "run", engine="null")
    for arguments, what in (
        (("features",), "ran on the null engine and trained nothing"),
        (("featurs",), "did you mean 'features'?"),
    ):
        status, out, err = run_command(capsys, "table", folder, *arguments)
        assert (status, out, what in err) == (2, "", True)
