"""TensorBoard, MLflow and W&B record what a run's directory has; read back with their own readers."""

import importlib.util
import json
import math
import os
import socket
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
import tracked
from commands import run_command
from nightly import mostly
from small import Stop

import edgefl
from edgefl.core import catalogue

TRACKERS = ("mlflow", "tensorboard", "wandb")
SCENARIO = "quickstart"
SHORT = {
    "sweep": {"seed": [7]},
    "server.rounds": 2,
    "evaluate.measures": ["class-accuracy"],
    "method": "fedavg",
}
# Each is an extra; where one is missing, its tests say so.
MISSING = [name for name in TRACKERS if importlib.util.find_spec(name) is None]


@pytest.fixture(scope="module", params=mostly(TRACKERS, ["tensorboard"]))
def name(request) -> str:
    if request.param in MISSING:
        pytest.skip(f"{request.param} is not installed")
    return request.param


class Environment:
    """No credentials and no settings of the machine's own; MLflow's store is in a folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.uri = f"sqlite:///{folder / 'mlflow.db'}"
        for variable in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_DIR", "MLFLOW_TRACKING_URI"):
            patch.delenv(variable, raising=False)
        patch.setenv("HOME", str(folder))
        # MLflow puts a folder for artifacts into the working directory.
        patch.chdir(folder)

    @property
    def trackers(self) -> list[object]:
        """Those that are installed."""
        return [self.of(name) for name in TRACKERS if name not in MISSING]

    def of(self, name: str) -> dict[str, str]:
        """One of them, as a scenario asks for it."""
        return {"name": name, **({"uri": self.uri} if name == "mlflow" else {})}

    def recorded(self, name: str, run: edgefl.RunResult) -> tracked.Recorded:
        """What a tracker has of a run."""
        if name == "mlflow":
            return tracked.mlflow(self.uri, run.name)
        return getattr(tracked, name)(run.folder / "tensorboard" if name == "tensorboard" else run.folder)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Where all tests of this file track: MLflow takes a second to make a store."""
    with pytest.MonkeyPatch.context() as patch:
        yield Environment(tmp_path_factory.mktemp("tracked"), patch)


@pytest.fixture(scope="module")
def done(name, environment, tmp_path_factory):
    """A run that one of them tracked."""
    folder, asked = tmp_path_factory.mktemp("done") / "runs", [environment.of(name)]
    return edgefl.run(SCENARIO, overrides=SHORT, engine="loop", out=folder, track=asked)


def close(one: float, other: float, name: str) -> bool:
    """Whether two figures are equal; TensorBoard has 32 bits for each."""
    return math.isclose(one, other, rel_tol=1e-6 if name == "tensorboard" else 1e-12, abs_tol=1e-30)


def test_charts_are_the_runs_rows(name, done, environment):
    """Training losses by merge, accuracies and losses by evaluation, with their rounds and virtual times."""
    for run in done.runs:
        charts = environment.recorded(name, run).charts
        expected = {"training_loss": [(row["round"], row["t_s"], row["loss"]) for row in run.table("merges")]}
        for row in run.table("evaluations"):
            for key, figure in (("accuracy.{}.value", "accuracy"), ("loss.{}", "loss")):
                chart = expected.setdefault(key.format(row["model"]), [])
                chart.append((row["round"], row["t_s"], row[figure]))
        for row in run.table("measures"):
            if row["client"] is None and not row["label"]:
                figure = f"{row['model']} {row['figure']}".strip()
                key = f"measures.{row['measure']}.figures.{figure}"
                at_s = {merge["version"]: merge["t_s"] for merge in run.table("merges")}
                expected.setdefault(key, []).append((row["round"], at_s[row["version"]], row["value"]))
        assert len(expected) == 1 + 2 * 2 + 2
        for chart, points in expected.items():
            assert [point[0] for point in charts[chart]] == [point[0] for point in points], chart
            # MLflow has milliseconds.
            assert [point[1] for point in charts[chart]] == pytest.approx(
                [point[1] for point in points], abs=6e-4 if name == "mlflow" else 1e-9
            )
            assert all(
                close(mine[2], row[2], name) for mine, row in zip(charts[chart], points, strict=True)
            ), chart


def leaves(value, prefix=""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{prefix}{key}.")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield prefix[:-1], value


def test_final_figures_are_those_of_compare(name, done, environment, capsys):
    """Each number of a run in ``edgefl compare --json``, under its key; no more and no less."""
    status, out, _ = run_command(capsys, "compare", done.folder, "--json")
    assert status == 0
    for run, told in zip(done.runs, json.loads(out)["runs"], strict=True):
        expected = dict(
            leaves({key: value for key, value in told.items() if key not in {"seed", "settings"}})
        )
        found = environment.recorded(name, run).final
        assert len(expected) > 50
        assert found.keys() == expected.keys()
        assert not [key for key, value in expected.items() if not close(found[key], value, name)]


def test_a_run_says_which_it_is(name, done, environment):
    """Name, group, identity, seed, directory, method and data set; one edgefl run each, and done."""
    good = {"mlflow": "FINISHED", "tensorboard": "STATUS_SUCCESS", "wandb": "0"}
    (run,) = done.runs
    found, seed = environment.recorded(name, run), str(run.settings["seed"])
    facts = {"name": run.name, "group": SCENARIO, "run_id": run.summary().run_id, "seed": seed}
    facts |= {"directory": str(run.folder), "method": "fedavg", "dataset": "digits", "engine": "loop"}
    assert {key: found.facts[key] for key in facts} == facts
    assert (found.status, found.told) == (good[name], "done")
    assert found.settings.keys() == run.settings.keys()
    assert float(found.settings["local.optimizer.lr"]) == run.settings["local.optimizer.lr"]
    if name == "mlflow":
        assert found.facts["experiment"] == SCENARIO
    if name == "wandb":
        assert found.facts["tags"] == "fedavg digits loop"
        assert found.facts["x of *"] == "round"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("how", "words"), [("failed", ("FAILED", "", "1")), ("interrupted", ("KILLED", "", "1"))]
)
def test_a_run_that_does_not_end_well_is_marked(how, words, environment, tmp_path):
    """What was recorded of it can be read, with the reason; a diverged run is failed."""
    given = {"engine": "loop", "out": tmp_path / "run", "track": environment.trackers}
    short = {"name": how, "sweep": None, "server.rounds": 3, "method": "fedavg"}
    if how == "failed":
        (run,) = edgefl.run(SCENARIO, overrides={**short, "local.optimizer.lr": 1e30}, **given).failed
    else:
        with pytest.raises(KeyboardInterrupt):
            edgefl.run(SCENARIO, overrides=short, callbacks=Stop(2), **given)
        (run,) = edgefl.open(tmp_path / "run").runs
    assert run.status == how
    for name, word in zip(TRACKERS, words, strict=True):
        if name in MISSING:
            continue
        found = environment.recorded(name, run)
        assert (found.status, found.told) == (word, f"{how}: {run.reason}"), name
        assert found.final["jobs"] == run.summary().jobs
        if how == "interrupted":
            assert [point[0] for point in found.charts["training_loss"]] == [0]


@pytest.mark.nightly
def test_parameters_say_where_it_goes(tmp_path, environment):
    """TensorBoard's folder, which holds one for the run; MLflow's experiment; W&B's project and tags."""
    asked = [
        {"name": "tensorboard", "dir": str(tmp_path / "events")},
        {"name": "mlflow", "uri": environment.uri, "experiment": "another"},
        {"name": "wandb", "project": "mine", "entity": "me", "dir": str(tmp_path / "w"), "tags": ["one"]},
    ]
    asked = [one for one in asked if one["name"] not in MISSING]
    short = {"name": "placed", "sweep": {"seed": [1]}, "server.rounds": 1, "method": "fedavg"}
    result = edgefl.run(SCENARIO, overrides=short, engine="null", out=tmp_path / "runs", track=asked)
    (run,) = result.runs
    if "tensorboard" not in MISSING:
        place = run.folder.relative_to(tmp_path)
        assert tracked.tensorboard(tmp_path / "events" / place).facts["name"] == run.name
    if "mlflow" not in MISSING:
        assert tracked.mlflow(environment.uri, run.name).facts["experiment"] == "another"
    if "wandb" not in MISSING:
        found = tracked.wandb(tmp_path / "w").facts
        assert (found["project"], found["entity"]) == ("mine", "me")
        assert found["tags"] == "fedavg digits null one"
    assert not [path for path in run.folder.iterdir() if path.name in {"tensorboard", "wandb"}]


@pytest.mark.nightly
@pytest.mark.skipif("wandb" in MISSING, reason="wandb is not installed")
def test_wandb_never_asks_for_a_key(tmp_path, monkeypatch):
    """Without one, sending is refused before the run, in place of W&B's prompt."""
    module = catalogue.load("trackers", "wandb")
    Environment(tmp_path, monkeypatch)
    for other in ("NETRC", "WANDB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(other, raising=False)
    module.Params(mode="offline").build()
    asked = [{"name": "wandb", "mode": "online"}]
    with pytest.raises(edgefl.UserError, match="wandb: W&B has no API key"):
        edgefl.run(SCENARIO, out=tmp_path / "run", track=asked)
    monkeypatch.setenv("WANDB_MODE", "online")
    with pytest.raises(edgefl.UserError, match="wandb: W&B has no API key"):
        edgefl.run(SCENARIO, out=tmp_path / "run", track=["wandb"])
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
    module.Params(mode="online").build()


def test_an_extra_that_is_missing_is_bad_input(tmp_path, monkeypatch, capsys):
    """Exit status 2 before anything is run, with what to install; a folder of its name is no package."""
    name = "mlflow"
    (tmp_path / name).mkdir()
    folder = PathFinder.find_spec(name, [str(tmp_path)])
    host = importlib.import_module("edgefl.core.host")
    real = host.find_spec
    monkeypatch.setattr(host, "find_spec", lambda module: folder if module == name else real(module))
    status, _, err = run_command(capsys, "run", SCENARIO, "--track", name, "--out", tmp_path / "run")
    assert status == 2
    assert f"error: {name}: tracking needs {name}, which is not installed" in err
    assert f"hint:  pip install 'edgefl-emulator[{name}]'" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.nightly
@pytest.mark.skipif("mlflow" in MISSING, reason="mlflow is not installed")
def test_a_server_that_does_not_answer_stops_no_run(tmp_path):
    """One that accepts and is silent: one note after the request's timeout; the run is done."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        tracker = f"{{name: mlflow, uri: 'http://127.0.0.1:{server.getsockname()[1]}'}}"
        command = f"import edgefl.cli; edgefl.cli.main({['run', SCENARIO, *SETS, '--track', tracker]!r})"
        environment = {**os.environ, "MLFLOW_HTTP_REQUEST_TIMEOUT": "1"}
        told = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
        done = subprocess.run([sys.executable, "-c", command], check=False, **told)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the tracker mlflow failed and was turned off: MlflowException") == 1
    assert "saved in" in done.stdout


SETS = ["--set", "sweep=null", "--set", "server.rounds=2", "--engine", "null"]
