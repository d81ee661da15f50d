import gc
import gzip
import hashlib
import http.server
import io
import os
import struct
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from edgefl.core.errors import DataError, UserError
from edgefl.data import Spec
from edgefl.data.readers import known
from edgefl.protocol.vision import torchvision

GREY = Spec("mnist", (1, 28, 28), 6, 3, ("zero", "one", "two"), (0.1,), (0.3,))
COLOUR = Spec("cifar10", (3, 32, 32), 6, 3, ("cat", "dog", "T-shirt/top"), (0.5,) * 3, (0.2,) * 3)
TRAIN_Y = np.array([2, 1, 0, 0, 1, 2])
TEST_Y = np.array([1, 0, 2])


def _images(spec, count, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, *spec.shape), dtype=np.uint8)


def _png(x):
    out = io.BytesIO()
    Image.fromarray(x[0] if len(x) == 1 else x.transpose(1, 2, 0)).save(out, "PNG")
    return out.getvalue()


def _idx(values):
    """The IDX format: two zero bytes, 8 for uint8, the number of axes, their lengths, the values."""
    values = np.asarray(values, dtype=np.uint8)
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def _write_idx(folder, train_x, test_x, train_y=TRAIN_Y):
    folder.mkdir(parents=True)
    contents = {
        "train-images-idx3-ubyte": train_x[:, 0],
        "train-labels-idx1-ubyte": train_y,
        "t10k-images-idx3-ubyte": test_x[:, 0],
        "t10k-labels-idx1-ubyte": TEST_Y,
    }
    for name, values in contents.items():
        (folder / name).write_bytes(_idx(values))


def _write_parquet(path, xs, ys, label="label"):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = pa.array(
        [{"bytes": _png(x), "path": None} for x in xs],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    pq.write_table(pa.table({"img": image, "extra": pa.array([0.5] * len(xs)), label: pa.array(ys)}), path)


def _write_parquets(folder, train_x, train_y=TRAIN_Y, test_x=None):
    """Both parts."""
    _write_parquet(folder / "train.parquet", train_x, train_y)
    _write_parquet(folder / "test.parquet", train_x[:3] if test_x is None else test_x, TEST_Y)


def read_as(spec, folder, dataset, *, download):
    """The dataset, by torchvision's class or one derived from it."""
    return known(spec, dataset.__name__, dataset).read(folder, download=download)[1]


def _mnist():
    return torchvision().datasets.MNIST


def _cifar():
    return torchvision().datasets.CIFAR10


def _same(found, train_x, test_x):
    """Whether these are the images, with their labels."""
    assert found.train_y.dtype == np.int64
    assert (found.train_y.tolist(), found.test_y.tolist()) == (TRAIN_Y.tolist(), TEST_Y.tolist())
    return np.array_equal(found.train_x, train_x) and np.array_equal(found.test_x, test_x)


@pytest.mark.parametrize("below", ["", "mnist"])
def test_torchvisions_idx_files(tmp_path, below):
    """In the folder or in its folder ``mnist``; where another layout is there too, torchvision's is read."""
    train_x, test_x = _images(GREY, 6, 0), _images(GREY, 3, 1)
    _write_idx(tmp_path / below / "MNIST" / "raw", train_x, test_x)
    _write_parquets(tmp_path / below, 255 - train_x, test_x=255 - test_x)
    found = read_as(GREY, tmp_path, _mnist(), download=False)
    assert _same(found, train_x, test_x)


@pytest.mark.parametrize(
    ("spec", "below", "label"),
    [(COLOUR, "", "label"), (COLOUR, "cifar10", "fine_label"), (COLOUR, "", "labels"), (GREY, "", "label")],
)
def test_parquet(tmp_path, spec, below, label):
    """Pixels and labels of PNG bytes in Parquet, several files in the order of their names."""
    train_x, test_x = _images(spec, 6, 0), _images(spec, 3, 1)
    _write_parquet(tmp_path / below / "train-00001-of-00002.parquet", train_x[4:], TRAIN_Y[4:], label)
    _write_parquet(tmp_path / below / "train-00000-of-00002.parquet", train_x[:4], TRAIN_Y[:4], label)
    _write_parquet(tmp_path / below / "test.parquet", test_x, TEST_Y, label)
    found = read_as(spec, tmp_path, _cifar() if spec is COLOUR else _mnist(), download=False)
    assert _same(found, train_x, test_x)


def _refused(spec, folder, dataset, *, download=False):
    with pytest.raises(DataError) as caught:
        read_as(spec, folder, dataset, download=download)
    return str(caught.value)


def test_nothing_there(tmp_path, monkeypatch):
    """The message names the folder, the user's cache without one, every layout and what to do."""
    message = _refused(COLOUR, tmp_path, _cifar())
    layouts = "cifar-10-batches-py", "train*.parquet"
    assert all(word in message for word in (str(tmp_path), *layouts, "--data-dir", "download"))
    # An error even if a download is allowed: it may be misspelt.
    assert "is not a directory" in _refused(COLOUR, tmp_path / "absent", _cifar(), download=True)
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    assert "could not be downloaded" in _refused(COLOUR, None, _cifar(), download=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert str(tmp_path / "edgefl" / "data") in _refused(COLOUR, None, _cifar())
    train_x = _images(GREY, 6, 0)
    _write_idx(tmp_path / "edgefl" / "data" / "MNIST" / "raw", train_x, _images(GREY, 3, 1))
    assert (read_as(GREY, None, _mnist(), download=False).train_x == train_x).all()


def test_what_is_wrong_with_parquet(tmp_path):
    """A missing part, no images, other labels, another shape; tests of one's own files have the rest."""

    def refused():
        return _refused(COLOUR, tmp_path, _cifar())

    train_x = _images(COLOUR, 6, 0)
    _write_parquet(tmp_path / "train.parquet", train_x, TRAIN_Y)
    assert "train*.parquet and test*.parquet" in refused()
    for part in ("train", "test"):
        pq.write_table(pa.table({"text": ["a"], "label": [0]}), tmp_path / f"{part}.parquet")
    assert "text, label" in refused()
    for labels in ([0, 1, 2, 3, 0, 1], [0, 1, 0, 1, 0, 1], [-1, 0, 1, -1, 0, 1]):
        _write_parquets(tmp_path, train_x, labels)
        assert f"{len(set(labels))} classes, from {min(labels)} to {max(labels)}" in refused()
    other = replace(COLOUR, shape=(3, 32, 40))
    _write_parquets(tmp_path, _images(other, 6, 0))
    assert "an image has shape (3, 32, 40), not (3, 32, 32)" in refused()


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    _write_parquets(tmp_path, _images(COLOUR, 6, 0))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError) as caught:
        read_as(COLOUR, tmp_path, _cifar(), download=False)
    assert caught.value.hint == "pip install 'edgefl-emulator[parquet]'"


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        ("cut short", ["unreadable or incomplete", "allow the download"]),
        ("missing", ["unreadable or incomplete"]),
        ("another shape", ["(1, 20, 20)", "(1, 28, 28)"]),
        ("a label too few", ["6 images and 5 labels"]),
    ],
)
def test_what_is_wrong_with_idx_files(tmp_path, mistake, says):
    spec = replace(GREY, shape=(1, 20, 20)) if mistake == "another shape" else GREY
    raw, labels = tmp_path / "MNIST" / "raw", TRAIN_Y[:5] if mistake == "a label too few" else TRAIN_Y
    _write_idx(raw, _images(spec, 6, 0), _images(spec, 3, 1), labels)
    if mistake == "cut short":
        (raw / "train-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 3, 0, 0]))
    elif mistake == "missing":
        (raw / "t10k-labels-idx1-ubyte").unlink()
    message = _refused(GREY, tmp_path, _mnist())
    assert [word for word in says if word not in message] == []


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Says nothing."""


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder and the address at which this machine serves it."""
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def _md5(content):
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _served_mnist(folder, address, train_x, test_x):
    contents = {
        "train-images-idx3-ubyte.gz": train_x[:, 0],
        "train-labels-idx1-ubyte.gz": TRAIN_Y,
        "t10k-images-idx3-ubyte.gz": test_x[:, 0],
        "t10k-labels-idx1-ubyte.gz": TEST_Y,
    }
    packed = {name: gzip.compress(_idx(values)) for name, values in contents.items()}
    for name, content in packed.items():
        (folder / name).write_bytes(content)
    served = {"mirrors": [address], "resources": [(name, _md5(content)) for name, content in packed.items()]}
    return type("MNIST", (_mnist(),), served)


def test_mnist_is_downloaded(served, tmp_path, monkeypatch):
    """Fetched, checked and unpacked, to the user's cache without a folder; later readings need no server."""
    folder, address = served
    train_x, test_x = _images(GREY, 6, 0), _images(GREY, 3, 1)
    dataset = _served_mnist(folder, address, train_x, test_x)
    root = tmp_path / "data"
    root.mkdir()
    found = read_as(GREY, root, dataset, download=True)
    assert _same(found, train_x, test_x)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    read_as(GREY, None, dataset, download=True)
    assert (tmp_path / "cache" / "edgefl" / "data" / "MNIST" / "raw" / "t10k-labels-idx1-ubyte").is_file()
    for file in folder.iterdir():
        file.unlink()
    assert (read_as(GREY, root, dataset, download=False).test_x == test_x).all()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # torchvision leaves the 404 it got open
def test_a_download_is_checked(served, tmp_path):
    """Files that do not fit the Spec, whose md5 differs, or that the server does not have."""
    folder, address = served
    dataset = _served_mnist(folder, address, _images(GREY, 6, 0), _images(GREY, 3, 1))
    for name in ("data", "other", "absent"):
        (tmp_path / name).mkdir()
    more = replace(GREY, class_names=(*GREY.class_names, "three"))
    assert "mnist has 4" in _refused(more, tmp_path / "data", dataset, download=True)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"something else"))
    message = _refused(GREY, tmp_path / "other", dataset, download=True)
    assert "could not be downloaded" in message
    assert "--data-dir" in message
    (folder / "train-images-idx3-ubyte.gz").unlink()
    assert "could not be downloaded" in _refused(GREY, tmp_path / "absent", dataset, download=True)
    gc.collect()
