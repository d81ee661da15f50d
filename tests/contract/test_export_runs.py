"""`edgefl export` on whole runs: the file is the model that was scored, or there is no file."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from commands import run_command
from damage import rewritten
from nightly import sampled
from onnx import numpy_helper
from small import SKEWED, SMALL

import edgefl
from edgefl.compute.onnx_runtime import session
from edgefl.core import files as files_module
from edgefl.export import build, compact
from edgefl.export.build import ExportOptions
from edgefl.export.compact import calibration_images
from edgefl.export.graph import ExportError
from edgefl.export.make import export
from edgefl.export.model import ExportForm
from edgefl.export.timing import Measurement, Reference, time_torch
from edgefl.export.trained import trained
from edgefl.export.verify import runner
from edgefl.planning.learning import DataAccess
from edgefl.store.reader import read

pytestmark = pytest.mark.usefixtures("one_registry")

SCENARIO = {
    **SMALL,
    "seed": 3,
    "task": {**SKEWED, "clients": 4},
    "model": {"name": "mlp", "hidden": [32]},
    "local": {"epochs": 2, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.3}},
    "server": {"participants": 3, "rounds": 2},
    "sweep": {
        "runs": [
            {"name": "fedavg", "method.name": "fedavg"},
            {"name": "spherefed", "method.name": "spherefed", "local.optimizer.lr": 10.0},
            {"name": "fedclassavg", "method.name": "fedclassavg"},
        ]
    },
}


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Name -> the directory of a short run on digits; nothing is exported into it."""
    result = edgefl.run(SCENARIO, out=tmp_path_factory.mktemp("runs") / "group")
    return {run.folder.name.partition("-")[2]: run.folder for run in result.runs}


@pytest.fixture
def runs(group, tmp_path):
    return {name: Path(shutil.copytree(folder, tmp_path / name)) for name, folder in group.items()}


def one(run, out=None, **options):
    (found,) = export(run, ExportOptions(**options), DataAccess(), out, force=True)
    return found


def rows(run, query):
    with read(run) as reader:
        return reader.query(query)


def left(folder):
    return sorted(path.name for path in folder.glob("**/*") if {".onnx", ".tmp"} & set(path.suffixes))


def test_spherefed_exports_its_calibrated_head(runs):
    """It is what calibration solved for, whose rows are not orthonormal, and scores as reported."""
    found = one(runs["spherefed"])
    assert abs(found.parity.accuracy - found.reported) < 5e-5
    graph = onnx.load(found.path).graph
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    head = next(weights[node.input[1]] for node in reversed(graph.node) if node.op_type == "Gemm")
    assert np.array_equal(head, trained(runs["spherefed"], DataAccess()).server["head"]["weight"].numpy())
    assert np.abs(head @ head.T - np.eye(10)).max() > 0.01


@pytest.mark.nightly
def test_clients_models_are_those_that_were_scored(runs):
    """Every client's file has the accuracy of its row in client_evaluations."""
    run = runs["fedclassavg"]
    found = export(run, ExportOptions(all_clients=True), DataAccess(), run / "all")
    scored = rows(run, "SELECT * FROM client_evaluations ORDER BY version DESC, client")[: len(found)]
    assert [one.path.name for one in found] == [f"client-{client}.onnx" for client in range(4)]
    for one_of, row in zip(found, scored, strict=True):
        assert one_of.client == row["client"]
        assert one_of.parity.samples == row["samples"]
        assert one_of.parity.accuracy == pytest.approx(row["accuracy"], abs=5e-5)
        assert one_of.reported == row["accuracy"]


@pytest.mark.nightly
def test_versions(runs):
    """last, best and a number name versions that the run saved; the file says which it is."""
    run = runs["fedavg"]
    scored = rows(run, "SELECT version, accuracy FROM evaluations WHERE model = 'global'")
    newest = rows(run, "SELECT version, best FROM checkpoints ORDER BY checkpoint")[-1]
    last, best = newest["version"], newest["best"]
    for which, version in (("last", last), ("best", best), (str(best), best)):
        found = one(run, version=which)
        told = session(found.path.read_bytes()).get_modelmeta().custom_metadata_map
        assert json.loads(told["edgefl.version"]) == version
        (accuracy,) = (row["accuracy"] for row in scored if row["version"] == version)
        assert found.reported == accuracy == pytest.approx(found.parity.accuracy, abs=5e-5)


@pytest.mark.nightly
def test_the_file_says_what_it_is(runs):
    """metadata_props, by ONNX Runtime: classes, normalisation, run, method, client, round, accuracy."""
    found = one(runs["fedclassavg"], client=2)
    told = session(found.path.read_bytes()).get_modelmeta().custom_metadata_map
    with read(runs["fedclassavg"]) as reader:
        meta = reader.meta
    assert json.loads(told["edgefl.class_names"]) == list("0123456789")
    assert json.loads(told["edgefl.shape"]) == [1, 8, 8]
    assert json.loads(told["edgefl.mean"]) == [0.3049]
    assert json.loads(told["edgefl.client"]) == 2
    assert json.loads(told["edgefl.accuracy"]) == found.reported
    assert (told["edgefl.run_id"], told["edgefl.method"]) == (meta["run_id"], "fedclassavg")
    kinds = [told[f"edgefl.{key}"] for key in ("dataset", "model", "precision")]
    assert kinds == ["digits", "mlp", "fp32"]


@pytest.mark.nightly
def test_the_card_says_where_the_model_comes_from(runs):
    """Use, training, accuracy, parity; no placeholder, no Python in it."""
    page = one(runs["spherefed"], form=ExportForm(softmax=True)).card.read_text(encoding="utf-8")
    for text in (
        "mlp for 10 classes, trained with spherefed on digits by 4 simulated clients",
        "`logits` and `probabilities`",
        "| partition | dirichlet (alpha 0.5, min\\_samples 20) |",
        "| same class as PyTorch | 100.00% |",
    ):
        assert text in page
    assert "{" not in page
    assert "None" not in page


# --- smaller files


@pytest.mark.nightly
def test_int8_is_calibrated_on_training_images_alone(runs, monkeypatch):
    """On at most 512, from all clients or the client's own; drawn by the seed, so the same every time."""
    given = []
    real = compact.to_int8
    monkeypatch.setattr(compact, "to_int8", lambda *a: given.append(a[2]) or real(*a))
    one(runs["fedavg"], precision="int8", max_drop=1)
    one(runs["fedavg"], precision="int8", max_drop=1)
    small = one(runs["fedclassavg"], precision="int8", client=1, max_drop=1)
    federation = trained(runs["fedavg"], DataAccess()).federation
    training = {image.numpy().tobytes() for image in federation.train_x.contiguous()}
    own = {image.numpy().tobytes() for image in federation.train_x[federation.parts[1]].contiguous()}
    first, second, client = given
    assert len(first) == 512
    assert torch.equal(first, second)
    assert {image.numpy().tobytes() for image in first} <= training
    assert {image.numpy().tobytes() for image in client} <= own
    assert small.compact.calibrated_on == len(client) == min(512, len(federation.parts[1]))


@pytest.mark.nightly
def test_a_holdout_is_not_calibrated_on(tmp_path):
    """Images held out of training for tuning are not used either."""
    scenario = {**SCENARIO, "evaluate": {"on": "holdout", "holdout": 0.4}}
    scenario["sweep"] = {"runs": SCENARIO["sweep"]["runs"][:1]}
    (run,) = edgefl.run(scenario, out=tmp_path / "run").runs
    found = trained(run.folder, DataAccess())
    held = {image.numpy().tobytes() for image in found.federation.test_x[found.federation.test].contiguous()}
    used = {image.numpy().tobytes() for image in calibration_images(found, None, ExportForm())}
    assert len(used) > 400
    assert not used & held
    assert "All on training images held out for tuning" in one(run.folder).card.read_text(encoding="utf-8")


@sampled(
    1,
    ("precision", "form"),
    [("int8", ExportForm(raw_input=True, softmax=True)), ("fp16", ExportForm())],
    ids=str,
)
def test_a_smaller_file_is_scored_on_the_test_set(runs, precision, form):
    """Accuracy before and after on all test images, sizes, latencies; the file computes what was scored."""
    found = one(runs["spherefed"], precision=precision, form=form)
    smaller = found.compact
    assert found.path.name == f"global-{precision}.onnx"
    assert (smaller.samples, smaller.fp32_accuracy) == (359, found.parity.accuracy)
    assert smaller.drop <= 0.02
    assert found.size_bytes == found.path.stat().st_size < 0.7 * smaller.fp32_bytes
    assert min(smaller.latency_ms, smaller.fp32_latency_ms) > 0
    federation = trained(runs["spherefed"], DataAccess()).federation
    images = federation.test_x.contiguous()
    if form.raw_input:
        images = (images.float() / 255 - 0.3049) / 0.3757
    classes = runner(found.path.read_bytes(), form)(images).argmax(axis=1)
    assert (classes == federation.test_y.numpy()).mean() == smaller.accuracy
    told = session(found.path.read_bytes()).get_modelmeta().custom_metadata_map
    assert told["edgefl.precision"] == precision
    assert "## Precision" in found.card.read_text(encoding="utf-8")


def broken(model: bytes) -> bytes:
    proto = onnx.load_from_string(model)
    name = next(node.input[1] for node in reversed(proto.graph.node) if node.op_type == "Gemm")
    for tensor in proto.graph.initializer:
        if tensor.name == name:
            value = numpy_helper.to_array(tensor).copy()
            value[:5] = 0
            tensor.CopyFrom(numpy_helper.from_array(value, name))
    return bytes(proto.SerializeToString())


def test_a_smaller_file_that_loses_too_much_is_refused(runs, monkeypatch, capsys):
    """Exit status 1 with both accuracies, no file; --max-drop allows it."""
    monkeypatch.setattr(compact, "to_int8", lambda model, *_: broken(model))
    run = runs["fedavg"]
    status, out, err = run_command(capsys, "export", run, "--int8")
    assert (status, out) == (1, "")
    assert "accuracy falls by" in err
    assert "on 359 test samples; the limit is 2.00%" in err
    assert "global-int8.onnx" in err
    assert "--max-drop" in err
    assert left(run) == []
    assert run_command(capsys, "export", run, "--int8", "--max-drop", "1")[0] == 0
    assert left(run) == ["global-int8.onnx"]


def test_pytorch_is_timed_on_the_clients_own_model(runs):
    """FedClassAvg has no other."""
    version = rows(runs["fedclassavg"], "SELECT MAX(version) AS last FROM versions")[0]["last"]
    for client in range(2):
        reference = Reference(runs["fedclassavg"], client, version, ExportForm())
        found = time_torch(Measurement("", warmup=1, runs=2), reference)
        assert (found.runtime.partition(" ")[0], found.runs) == ("torch", 2)


# --- what goes wrong


def test_a_failed_verification_leaves_no_file(runs, monkeypatch, capsys):
    """A file with another weight is refused with numbers, exit status 1."""
    real = build.to_onnx
    monkeypatch.setattr(build, "to_onnx", lambda *a: broken(real(*a)))
    status, out, err = run_command(capsys, "export", runs["fedavg"])
    assert (status, out) == (1, "")
    assert "the model computes something else in ONNX Runtime than in PyTorch: max error" in err
    assert "top-1 agreement" in err
    assert "its files were not written" in err
    assert left(runs["fedavg"]) == []
    with pytest.raises(ExportError):
        one(runs["fedavg"])


@pytest.mark.nightly
def test_an_unfinished_run_is_marked(runs, capsys):
    """Its last saved model can be exported; the table and the card say so."""
    run, how = runs["fedavg"], "was killed"
    rewritten(run, "UPDATE meta SET value = '\"running\"' WHERE key = 'status'")
    status, out, _ = run_command(capsys, "export", run)
    assert status == 0
    assert f"global: last saved state of a run that {how}" in out
    page = (run / "export" / "global.md").read_text(encoding="utf-8")
    assert f"**Global model: last saved state of a run that {how}" in page


MISTAKES = (
    ("fedavg", ["--client", "0", "--all"], "--client and --all exclude each other"),
    ("fedavg", ["--int8", "--max-drop", "2"], "--max-drop must be between 0 and 1, not 2"),
    ("fedavg", ["--client", "4"], "there is no client 4"),
    ("fedclassavg", [], "fedclassavg has no global model"),
    ("fedavg", ["--version", "99"], "version '99' was not saved"),
    ("fedavg", ["--out", "x.pt"], "x.pt does not end in .onnx"),
    ("missing", [], "neither a run nor a group of runs"),
    (".", [], "holds 3 runs; name one"),
    ("spherefed", [], ".safetensors is damaged"),
)


def test_a_mistake_gets_one_block(runs, tmp_path, capsys):
    """What, where and a hint on standard error; exit status 2, no traceback, no file."""
    version = rows(runs["spherefed"], "SELECT file FROM versions ORDER BY version")[-1]["file"]
    (runs["spherefed"] / version).write_bytes(b"damaged")
    for name, arguments, what in MISTAKES:
        status, out, err = run_command(capsys, "export", tmp_path / name, *arguments)
        assert (status, out, err[:7], what in " ".join(err.split())) == (2, "", "error: ", True), what
    assert left(tmp_path) == []


def test_runs_without_a_model(tmp_path, capsys):
    single = {key: value for key, value in SCENARIO.items() if key != "sweep"} | {"method": "fedavg"}
    wild = {**single, "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 1e9}}}
    (failed,) = edgefl.run(wild, out=tmp_path / "failed").runs
    assert failed.status == "failed"
    edgefl.run(single, out=tmp_path / "null", engine="null")
    for name, what in (("failed", "has no models to export"), ("null", "null engine and trained nothing")):
        status, _, err = run_command(capsys, "export", tmp_path / name)
        assert status == 2
        assert what in err
        assert not (tmp_path / name / "export").exists()


@pytest.mark.nightly
def test_a_full_disk_leaves_nothing(runs, monkeypatch, capsys):
    """If the last file does not fit, none of them is left, not even a temporary one."""
    calls = []

    def full(handle):
        calls.append(handle)
        if len(calls) == 2:  # the card and the model
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files_module.os, "fsync", full)
    status, out, err = run_command(capsys, "export", runs["spherefed"])
    assert (status, out) == (2, "")
    assert "No space left on device" in err
    assert list((runs["spherefed"] / "export").iterdir()) == []
