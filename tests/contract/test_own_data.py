"""Folders and Parquet files of one's own images work with every command, as the known datasets do."""

import json

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import run_command
from PIL import Image
from small import SMALL

import edgefl
from edgefl.core.errors import DataError
from edgefl.data import images
from edgefl.export.build import ExportOptions
from edgefl.export.make import export
from edgefl.planning.learning import DataAccess
from edgefl.store.reader import read

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


def _scenario():
    return {
        **SMALL,
        "task": {"dataset": {"name": "folder", "path": "shades", "size": 4}, "clients": 3},
        "local": {"epochs": 3, "batch_size": 4, "optimizer": {"name": "sgd", "lr": 0.2}},
        "server": {"rounds": 3},
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _folder(tmp_path / "shades")
    _parquet(tmp_path / "shades-parquet")
    return tmp_path


@pytest.mark.nightly
@pytest.mark.usefixtures("one_registry")
def test_images_of_ones_own_are_learned_and_exported(here, monkeypatch, tmp_path_factory):
    """Both layouts of three shades give the same bits; the file knows its data; other images are refused."""
    runs = []
    for name, path in (("parquet", "shades-parquet"), ("folder", "shades")):
        scenario = _scenario()
        scenario["task"]["dataset"] = {"name": name, "path": path, "size": 4}
        runs += edgefl.run(scenario, out=here / name).runs
    losses = [[row["loss"] for row in run.table("merges")] for run in runs]
    assert losses[0] == losses[1]
    assert runs[0].summary().accuracy["global"].value > 0.9
    # A relative path works from another directory.
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    export(runs[1].folder, ExportOptions(), DataAccess(), here / "model.onnx")
    told = onnx.load(here / "model.onnx").metadata_props
    facts = {entry.key.removeprefix("edgefl."): entry.value for entry in told}
    train = np.stack([_pixels(level, place) for level in LEVELS.values() for place in range(12)]) / 255
    assert json.loads(facts["class_names"]) == list(LEVELS)
    assert json.loads(facts["shape"]) == [3, 4, 4]
    assert json.loads(facts["mean"]) == pytest.approx(train.mean((0, 1, 2)), abs=0.01)
    assert facts["dataset"].strip('"') == "shades"
    Image.fromarray(_pixels(200, 99)).save(here / "shades" / "test" / "dark" / "test00.png")
    with pytest.raises(DataError, match="have changed since the run"):
        export(runs[1].folder, ExportOptions(), DataAccess(), here / "other.onnx")


@pytest.mark.nightly
def test_the_images_are_part_of_a_runs_identity(here):
    """One changed pixel makes another run; the same images, however named, make the same one."""
    ids = []
    datasets = [{"name": "folder", "path": "shades", "size": 4}, {"name": "./shades", "size": 4}]
    for nth, dataset in enumerate([*datasets, datasets[0]]):
        if nth == 2:
            Image.fromarray(_pixels(200, 98)).save(here / "shades" / "train" / "dark" / "train00.png")
        scenario = _scenario()
        scenario["task"]["dataset"] = dataset
        (run,) = edgefl.run(scenario, out=here / f"out{nth}").runs
        with read(run.folder) as reader:
            ids.append(reader.meta["run_id"])
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.nightly
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


def test_checking_and_profiling_decode_nothing(here, capsys, monkeypatch):
    """Classes and counts come from names, so check and profile assume no labels and read no pixels."""
    monkeypatch.setattr(images, "decoded_once", None)
    (here / "mine.yaml").write_text(json.dumps(_scenario()))
    status, out, err = run_command(capsys, "check", "mine.yaml")
    assert (status, "assumed balanced" in out + err) == (0, False)
    status, out, _ = run_command(capsys, "profile", "mine.yaml", "--device", "raspberry-pi-4b")
    assert (status, "12 samples, an even share of shades" in out) == (0, True)
    assert run_command(capsys, "run", "mine.yaml", "--engine", "null")[0] == 0


def test_a_broken_image_and_a_missing_folder_are_one_message(here, capsys):
    (here / "shades" / "train" / "dark" / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    for path, what in (("shades", "broken.jpg"), ("shadse", "there is no folder 'shadse'")):
        scenario = _scenario()
        scenario["task"]["dataset"]["path"] = path
        (here / "mine.yaml").write_text(json.dumps(scenario))
        status, _, err = run_command(capsys, "run", "mine.yaml", "--out", "out")
        assert (status, what in err) == (2, True)
    assert not (here / "out").exists()
