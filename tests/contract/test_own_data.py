"""Folders and Parquet files of one's own images work with every command, as the known datasets do."""

import json

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_command
from PIL import Image

import edgefl
from edgefl.core.errors import DataError
from edgefl.data import image_cache
from edgefl.export.build import ExportOptions
from edgefl.export.make import export
from edgefl.planning.learning import DataAccess
from edgefl.store import read

pytestmark = pytest.mark.usefixtures("preloaded_processes")

LEVELS = {"dark": 40, "light": 200, "medium": 120}


def _pixels(level, seed):
    return np.random.default_rng(seed).normal(level, 10, (9, 7, 3)).clip(0, 255).astype(np.uint8)


def _folder(root):
    for part, count in (("train", 12), ("test", 4)):
        for name, level in LEVELS.items():
            (root / part / name).mkdir(parents=True)
            for place in range(count):
                Image.fromarray(_pixels(level, place)).save(root / part / name / f"{part}{place:02}.png")


def _parquet(root):
    root.mkdir()
    names = json.dumps({"info": {"features": {"label": {"names": list(LEVELS)}}}})
    for part, count in (("train", 12), ("test", 4)):
        blobs, labels = [], []
        for label, level in enumerate(LEVELS.values()):
            for place in range(count):
                file = root / "image.png"
                Image.fromarray(_pixels(level, place)).save(file)
                blobs.append({"bytes": file.read_bytes(), "path": None})
                labels.append(label)
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        table = pa.table({"image": pa.array(blobs, kind), "label": labels})
        pq.write_table(table.replace_schema_metadata({"huggingface": names}), root / f"{part}.parquet")


def _scenario(**changes):
    return {
        "name": "mine",
        "task": {"dataset": {"name": "folder", "path": "shades", "size": 4}, "clients": 3},
        "model": {"name": "mlp", "hidden": [16]},
        "method": "fedavg",
        "local": {"epochs": 3, "batch_size": 4, "optimizer": {"name": "sgd", "lr": 0.2}},
        "fleet": "home-lab",
        "server": {"rounds": 3},
        **changes,
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current directory with the images in both layouts."""
    monkeypatch.chdir(tmp_path)
    _folder(tmp_path / "shades")
    _parquet(tmp_path / "shades-parquet")
    return tmp_path


def _accuracy(run):
    """Of the global model, at the end."""
    rows = [row for row in run.table("evaluations") if row["model"] == "global"]
    return rows[-1]["accuracy"]


@pytest.mark.parametrize(("name", "path"), [("folder", "shades"), ("parquet", "shades-parquet")])
def test_images_of_ones_own_are_learned(here, name, path):
    """Three shades are told apart, and both layouts of the same images give the same bits."""
    scenario = _scenario()
    scenario["task"]["dataset"] = {"name": name, "path": path, "size": 4}
    (run,) = edgefl.run(scenario, out=here / "out").runs
    assert run.status == "done"
    assert _accuracy(run) > 0.9
    other = _scenario()
    (same,) = edgefl.run(other, out=here / "other").runs
    assert [row["loss"] for row in same.table("merges")] == [row["loss"] for row in run.table("merges")]


def test_the_exported_model_knows_its_data(here, monkeypatch, tmp_path_factory):
    """Classes, shape, mean and deviation are in the file; a relative path works from another directory."""
    (run,) = edgefl.run(_scenario(), out=here / "out").runs
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    (found,) = export(run.folder, ExportOptions(), DataAccess(), here / "model.onnx")
    facts = {
        entry.key.removeprefix("edgefl."): entry.value
        for entry in onnx.load(here / "model.onnx").metadata_props
    }
    train = np.stack([_pixels(level, place) for level in LEVELS.values() for place in range(12)]) / 255
    assert json.loads(facts["class_names"]) == list(LEVELS)
    assert json.loads(facts["shape"]) == [3, 4, 4]
    assert json.loads(facts["mean"]) == pytest.approx(train.mean((0, 1, 2)), abs=0.01)
    assert facts["dataset"].strip('"') == "shades"
    assert found is not None


def test_export_refuses_other_images(here):
    """A model is compared with what the run reported on the run's own images, or not at all."""
    (run,) = edgefl.run(_scenario(), out=here / "out").runs
    Image.fromarray(_pixels(200, 99)).save(here / "shades" / "test" / "dark" / "test00.png")
    with pytest.raises(DataError, match="have changed since the run"):
        export(run.folder, ExportOptions(), DataAccess(), here / "model.onnx")


def test_the_images_are_part_of_a_runs_identity(here):
    """One changed pixel makes another run; the same images make the same one."""
    ids = []
    for nth in range(3):
        if nth == 2:
            Image.fromarray(_pixels(200, 98)).save(here / "shades" / "train" / "dark" / "train00.png")
        (run,) = edgefl.run(_scenario(), out=here / f"out{nth}").runs
        with read(run.folder) as reader:
            ids.append(reader.meta["run_id"])
    assert ids[0] == ids[1] != ids[2]


def test_a_folder_of_photos_runs_with_the_command_of_the_docs(tmp_path, capsys, monkeypatch):
    """240 images of any size, grey and in colour, are a dataset by their path; a bare name leads to it."""
    monkeypatch.chdir(tmp_path)
    sizes = np.random.default_rng(0).integers(20, 90, (240, 2))
    for place, size in enumerate(sizes.tolist()):
        file = tmp_path / "photos" / "abcd"[place % 4] / f"{place}.{'jpg' if place % 3 else 'png'}"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.effect_noise(size, 20).point(lambda level, own=place % 4: level + 40 * own).convert(
            "L" if place % 5 else "RGB"
        ).save(file)
    fewer = ["--set", "sweep=null", "--set", "server.rounds=1"]
    command = ["run", "quickstart", "--set", "task.dataset=photos/", *fewer]
    status, _, err = run_command(capsys, *command)
    assert status == 2
    assert "photos: sizes differ, so images become 32 x 32" in err
    assert "--set task.partition=dirichlet-equal" in err
    assert run_command(capsys, *command, "--set", "task.partition=dirichlet-equal")[0] == 0
    status, _, err = run_command(capsys, "check", "quickstart", "--set", "task.dataset=photos")
    assert (status, "for the images in this folder, write photos/" in err) == (2, True)


def test_a_datasets_path_is_that_of_a_folder(here):
    """The same run, with parameters beside it too."""
    ids = []
    for dataset in ({"name": "folder", "path": "shades", "size": 4}, {"name": "./shades", "size": 4}):
        scenario = _scenario()
        scenario["task"]["dataset"] = dataset
        (run,) = edgefl.run(scenario, out=here / f"out{len(ids)}").runs
        with read(run.folder) as reader:
            ids.append(reader.meta["run_id"])
    assert ids[0] == ids[1]


def test_checking_and_profiling_decode_nothing(here, capsys, monkeypatch):
    """Classes and counts come from names, so check and profile assume no labels and read no pixels."""
    monkeypatch.setattr(image_cache, "decoded_once", None)
    (here / "mine.yaml").write_text(json.dumps(_scenario()))
    status, out, err = run_command(capsys, "check", "mine.yaml")
    assert (status, "assumed balanced" in out + err) == (0, False)
    status, out, _ = run_command(capsys, "profile", "mine.yaml", "--device", "raspberry-pi-4b")
    assert (status, "12 samples, an even share of shades" in out) == (0, True)
    assert run_command(capsys, "run", "mine.yaml", "--engine", "null")[0] == 0


@pytest.mark.parametrize("command", ["check", "profile", "run"])
def test_a_missing_folder_is_one_message(here, capsys, command):
    """With the path and where it begins; nothing else is printed, and the status is 2."""
    scenario = _scenario()
    scenario["task"]["dataset"]["path"] = "shadse"
    (here / "mine.yaml").write_text(json.dumps(scenario))
    status, _, err = run_command(capsys, command, "mine.yaml")
    assert status == 2
    assert "there is no folder 'shadse'" in err
    assert str(here / "shadse") in err


def test_a_broken_image_is_one_message(here, capsys):
    """It is named, and the folder of the runs is not made."""
    (here / "shades" / "train" / "dark" / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    (here / "mine.yaml").write_text(json.dumps(_scenario()))
    status, _, err = run_command(capsys, "run", "mine.yaml", "--out", "out")
    assert (status, "broken.jpg" in err) == (2, True)
    assert not (here / "out").exists()
