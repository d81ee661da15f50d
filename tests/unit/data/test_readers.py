import gc
import gzip
import hashlib
import http.server
import io
import pickle
import struct
import sys
import tarfile
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from edgefl.core.errors import DataError, UserError
from edgefl.data import Spec
from edgefl.data.readers import _INSIDE, read
from edgefl.protocol.vision import torchvision

GREY = Spec("mnist", (1, 28, 28), 3, 6, 3, ("zero", "one", "two"), (0.1,), (0.3,))
COLOUR = Spec("cifar10", (3, 32, 32), 3, 6, 3, ("cat", "dog", "T-shirt/top"), (0.5,) * 3, (0.2,) * 3)
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
        [{"bytes": x if isinstance(x, bytes) else _png(x), "path": None} for x in xs],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    pq.write_table(pa.table({"img": image, "extra": pa.array([0.5] * len(xs)), label: pa.array(ys)}), path)


def _write_tree(root, part, xs, ys, names):
    for place, (x, y) in enumerate(zip(xs, ys, strict=True)):
        folder = root / part / names[y]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{place}.png").write_bytes(_png(x))


def read_as(spec, folder, dataset, *, download):
    """The dataset, by torchvision's class or one derived from it."""
    return read(spec, dataset.__name__, folder, download=download, make=dataset)


def _mnist():
    return torchvision().datasets.MNIST


def _cifar():
    return torchvision().datasets.CIFAR10


# --- layouts


@pytest.mark.parametrize("below", ["", "mnist"])
def test_torchvisions_idx_files(tmp_path, below):
    """IDX files, in the folder or in its folder ``mnist``, come back as they were written."""
    train_x, test_x = _images(GREY, 6, 0), _images(GREY, 3, 1)
    _write_idx(tmp_path / below / "MNIST" / "raw", train_x, test_x)
    found = read_as(GREY, tmp_path, _mnist(), download=False)
    assert (found.train_x == train_x).all()
    assert (found.test_x == test_x).all()
    assert found.train_y.tolist() == TRAIN_Y.tolist()
    assert found.test_y.tolist() == TEST_Y.tolist()
    assert found.train_y.dtype == np.int64


@pytest.mark.parametrize("below", ["", "cifar10"])
@pytest.mark.parametrize("label", ["label", "fine_label", "labels"])
def test_parquet(tmp_path, below, label):
    """Pixels and labels of PNG bytes in Parquet, several files in the order of their names."""
    train_x, test_x = _images(COLOUR, 6, 0), _images(COLOUR, 3, 1)
    _write_parquet(tmp_path / below / "train-00001-of-00002.parquet", train_x[4:], TRAIN_Y[4:], label)
    _write_parquet(tmp_path / below / "train-00000-of-00002.parquet", train_x[:4], TRAIN_Y[:4], label)
    _write_parquet(tmp_path / below / "test.parquet", test_x, TEST_Y, label)
    found = read_as(COLOUR, tmp_path, _cifar(), download=False)
    assert (found.train_x == train_x).all()
    assert (found.test_x == test_x).all()
    assert found.train_y.tolist() == TRAIN_Y.tolist()
    assert found.test_y.tolist() == TEST_Y.tolist()


def test_grey_parquet_of_palette_free_images(tmp_path):
    """Grey PNGs stay one channel."""
    train_x, test_x = _images(GREY, 6, 0), _images(GREY, 3, 1)
    _write_parquet(tmp_path / "train.parquet", train_x, TRAIN_Y)
    _write_parquet(tmp_path / "test.parquet", test_x, TEST_Y)
    assert (read_as(GREY, tmp_path, _mnist(), download=False).train_x == train_x).all()


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["cat", "dog", "t_shirt_top"], [0, 1, 2]),  # the dataset's own names: its own order
        (["10", "9", "1"], [2, 1, 0]),  # numbers: 1, 9, 10
        (["zebra", "yak", "ant"], [2, 1, 0]),  # other names: the alphabet's
    ],
)
def test_tree(tmp_path, names, labels):
    """Class folders become labels in the dataset's order, in that of numbers, or alphabetically."""
    train_x, test_x = _images(COLOUR, 6, 0), _images(COLOUR, 3, 1)
    _write_tree(tmp_path, "train", train_x, TRAIN_Y, names)
    _write_tree(tmp_path, "test", test_x, TEST_Y, names)
    found = read_as(COLOUR, tmp_path, _cifar(), download=False)
    expected = {x.tobytes(): labels[y] for x, y in zip(train_x, TRAIN_Y, strict=True)}
    assert {x.tobytes(): y for x, y in zip(found.train_x, found.train_y.tolist(), strict=True)} == expected
    assert sorted(found.test_y.tolist()) == [0, 1, 2]


def test_torchvisions_layout_goes_first(tmp_path):
    """If two layouts are present, torchvision's is read."""
    train_x, test_x = _images(GREY, 6, 0), _images(GREY, 3, 1)
    _write_idx(tmp_path / "MNIST" / "raw", train_x, test_x)
    _write_parquet(tmp_path / "train.parquet", 255 - train_x, TRAIN_Y)
    _write_parquet(tmp_path / "test.parquet", 255 - test_x, TEST_Y)
    assert (read_as(GREY, tmp_path, _mnist(), download=False).train_x == train_x).all()


def test_jpeg_bytes_decode_as_pil_decodes_them(tmp_path):
    """JPEG in Parquet: the pixels are PIL's."""
    flat = np.full((3, 32, 32), 128, dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(flat.transpose(1, 2, 0)).save(out, "JPEG")
    _write_parquet(tmp_path / "train.parquet", [out.getvalue()] * 3, [0, 1, 2])
    _write_parquet(tmp_path / "test.parquet", [out.getvalue()] * 3, [0, 1, 2])
    assert (read_as(COLOUR, tmp_path, _cifar(), download=False).train_x == 128).all()


# --- what is wrong with a folder


def _refused(spec, folder, dataset, *, download=False):
    with pytest.raises(DataError) as caught:
        read_as(spec, folder, dataset, download=download)
    return str(caught.value)


def test_nothing_there(tmp_path):
    """The message names the folder and every layout that was looked for, and says what to do."""
    message = _refused(COLOUR, tmp_path, _cifar())
    for word in (
        str(tmp_path),
        "cifar-10-batches-py",
        "train*.parquet",
        "train/<class>",
        "--data-dir",
        "download",
    ):
        assert word in message


def test_no_such_folder(tmp_path):
    """A folder that does not exist is an error even if a download is allowed: it may be misspelt."""
    assert "is not a directory" in _refused(COLOUR, tmp_path / "absent", _cifar(), download=True)


def test_without_a_folder_the_cache_is_looked_in(tmp_path, monkeypatch):
    """No folder means the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert str(tmp_path / "edgefl" / "data") in _refused(COLOUR, None, _cifar())
    train_x = _images(GREY, 6, 0)
    _write_idx(tmp_path / "edgefl" / "data" / "MNIST" / "raw", train_x, _images(GREY, 3, 1))
    assert (read_as(GREY, None, _mnist(), download=False).train_x == train_x).all()


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    """The hint is the command that installs the extra."""
    _write_parquet(tmp_path / "train.parquet", _images(COLOUR, 6, 0), TRAIN_Y)
    _write_parquet(tmp_path / "test.parquet", _images(COLOUR, 3, 0), TEST_Y)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UserError) as caught:
        read_as(COLOUR, tmp_path, _cifar(), download=False)
    assert caught.value.hint == "pip install 'edgefl-emulator[parquet]'"


def test_half_a_parquet_dataset(tmp_path):
    """Training files alone are incomplete, and the message names what is missing."""
    _write_parquet(tmp_path / "train.parquet", _images(COLOUR, 6, 0), TRAIN_Y)
    assert "no test*.parquet" in _refused(COLOUR, tmp_path, _cifar())


def test_parquet_without_images(tmp_path):
    """A table of other columns is refused by naming them."""
    for part in ("train", "test"):
        pq.write_table(pa.table({"text": ["a"], "label": [0]}), tmp_path / f"{part}.parquet")
    assert "text, label" in _refused(COLOUR, tmp_path, _cifar())


@pytest.mark.parametrize("content", [b"no parquet", b""])
def test_corrupt_parquet(tmp_path, content):
    """A file that is not Parquet is a DataError that names it, chained to the library's own error."""
    for part in ("train", "test"):
        (tmp_path / f"{part}.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"train\.parquet is unreadable") as caught:
        read_as(COLOUR, tmp_path, _cifar(), download=False)
    assert caught.value.__cause__ is not None


def test_corrupt_image(tmp_path):
    """An image that cannot be decoded is named by its place."""
    xs = [*map(_png, _images(COLOUR, 5, 0)), _png(_images(COLOUR, 1, 0)[0])[:60]]
    _write_parquet(tmp_path / "train.parquet", xs, TRAIN_Y)
    _write_parquet(tmp_path / "test.parquet", _images(COLOUR, 3, 0), TEST_Y)
    message = _refused(COLOUR, tmp_path, _cifar())
    assert "image is unreadable" in message
    assert "image 5" in message


def test_truncated_idx(tmp_path):
    """An IDX file cut short is a DataError, whatever torchvision raises."""
    _write_idx(tmp_path / "MNIST" / "raw", _images(GREY, 6, 0), _images(GREY, 3, 1))
    file = tmp_path / "MNIST" / "raw" / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:1000])
    message = _refused(GREY, tmp_path, _mnist())
    assert "unreadable or incomplete" in message
    assert "allow the download" in message


def test_missing_idx_file(tmp_path):
    """A file missing from torchvision's folder is not taken for an absent dataset."""
    _write_idx(tmp_path / "MNIST" / "raw", _images(GREY, 6, 0), _images(GREY, 3, 1))
    (tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte").unlink()
    assert "unreadable or incomplete" in _refused(GREY, tmp_path, _mnist())


def test_images_of_another_shape(tmp_path):
    """Both shapes are named."""
    wide = Spec("cifar10", (3, 32, 40), 3, 6, 3, COLOUR.class_names, COLOUR.mean, COLOUR.std)
    _write_parquet(tmp_path / "train.parquet", _images(wide, 6, 0), TRAIN_Y)
    _write_parquet(tmp_path / "test.parquet", _images(wide, 3, 0), TEST_Y)
    message = _refused(COLOUR, tmp_path, _cifar())
    assert "(3, 32, 40)" in message
    assert "(3, 32, 32)" in message


def test_idx_images_of_another_shape(tmp_path):
    """The same for files that torchvision reads."""
    small = Spec("mnist", (1, 20, 20), 3, 6, 3, GREY.class_names, GREY.mean, GREY.std)
    _write_idx(tmp_path / "MNIST" / "raw", _images(small, 6, 0), _images(small, 3, 1))
    message = _refused(GREY, tmp_path, _mnist())
    assert "(1, 20, 20)" in message
    assert "(1, 28, 28)" in message


def test_grey_images_for_a_colour_dataset(tmp_path):
    """Grey is not silently made into colour."""
    grey = Spec("cifar10", (1, 32, 32), 3, 6, 3, COLOUR.class_names, (0.5,), (0.2,))
    _write_parquet(tmp_path / "train.parquet", _images(grey, 6, 0), TRAIN_Y)
    _write_parquet(tmp_path / "test.parquet", _images(grey, 3, 0), TEST_Y)
    assert "(1, 32, 32)" in _refused(COLOUR, tmp_path, _cifar())


@pytest.mark.parametrize("labels", [[0, 1, 2, 3, 0, 1], [0, 1, 0, 1, 0, 1], [-1, 0, 1, -1, 0, 1]])
def test_labels_of_another_dataset(tmp_path, labels):
    """A class too many, a class too few, or a label below 0: both counts are named."""
    _write_parquet(tmp_path / "train.parquet", _images(COLOUR, 6, 0), labels)
    _write_parquet(tmp_path / "test.parquet", _images(COLOUR, 3, 0), TEST_Y)
    message = _refused(COLOUR, tmp_path, _cifar())
    assert f"{len(set(labels))} classes, from {min(labels)} to {max(labels)}" in message
    assert "cifar10 has 3" in message


def test_images_without_labels(tmp_path):
    """Six images with five labels are an error."""
    _write_idx(tmp_path / "MNIST" / "raw", _images(GREY, 6, 0), _images(GREY, 3, 1), TRAIN_Y[:5])
    assert "6 images and 5 labels" in _refused(GREY, tmp_path, _mnist())


def test_tree_with_too_few_classes(tmp_path):
    """Both numbers of classes are named."""
    for part in ("train", "test"):
        _write_tree(tmp_path, part, _images(COLOUR, 2, 0), [0, 1], ["cat", "dog"])
    message = _refused(COLOUR, tmp_path, _cifar())
    assert "2 class folders" in message
    assert "3 classes" in message


def test_tree_with_a_file_that_is_no_image(tmp_path):
    """It is named, and not silently left out; as in a user's own images, hidden files do not count."""
    names = ["a", "b", "c"]
    for part, labels in (("train", TRAIN_Y), ("test", TEST_Y)):
        _write_tree(tmp_path, part, _images(COLOUR, len(labels), 0), labels, names)
    (tmp_path / "train" / names[0] / ".DS_Store").write_bytes(b"x")
    assert len(read_as(COLOUR, tmp_path, _cifar(), download=False).train_x) == len(TRAIN_Y)
    (tmp_path / "train" / names[0] / "labels.txt").write_text("0", encoding="utf-8")
    assert "not an image file" in _refused(COLOUR, tmp_path, _cifar())


def test_tree_without_a_test_part(tmp_path):
    """Training folders alone are incomplete."""
    _write_tree(tmp_path, "train", _images(COLOUR, 6, 0), TRAIN_Y, (*COLOUR.class_names[:2], "shirt"))
    assert "no test/" in _refused(COLOUR, tmp_path, _cifar())


def test_tree_whose_parts_differ(tmp_path):
    """Training and test folders of other names could not be given the same labels."""
    _write_tree(tmp_path, "train", _images(COLOUR, 6, 0), TRAIN_Y, ["a", "b", "c"])
    _write_tree(tmp_path, "test", _images(COLOUR, 3, 0), TEST_Y, ["a", "b", "d"])
    assert "different class folders" in _refused(COLOUR, tmp_path, _cifar())


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "CIFAR10", "CIFAR100"])
def test_torchvisions_folders_are_known_without_importing_it(name):
    """Where its classes keep their files is what they say themselves."""
    dataset = getattr(torchvision().datasets, name)
    assert _INSIDE.get(name, f"{name}/raw") == getattr(dataset, "base_folder", f"{name}/raw")


# --- download


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


def test_mnist_is_downloaded(served, tmp_path):
    """Absent IDX files are fetched, checked and unpacked, and the next reading needs no server."""
    folder, address = served
    train_x, test_x = _images(GREY, 6, 0), _images(GREY, 3, 1)
    dataset = _served_mnist(folder, address, train_x, test_x)
    root = tmp_path / "data"
    root.mkdir()
    found = read_as(GREY, root, dataset, download=True)
    assert (found.train_x == train_x).all()
    assert found.test_y.tolist() == TEST_Y.tolist()
    for file in folder.iterdir():
        file.unlink()
    assert (read_as(GREY, root, dataset, download=False).test_x == test_x).all()


def test_a_download_is_checked_like_any_files(served, tmp_path):
    """Downloaded files must fit the dataset's Spec."""
    dataset = _served_mnist(*served, _images(GREY, 6, 0), _images(GREY, 3, 1))
    root = tmp_path / "data"
    root.mkdir()
    more = Spec("mnist", (1, 28, 28), 4, 6, 3, (*GREY.class_names, "three"), GREY.mean, GREY.std)
    assert "mnist has 4" in _refused(more, root, dataset, download=True)


def test_download_without_a_folder_fills_the_cache(served, tmp_path, monkeypatch):
    """Without a folder, the files go to the user's cache, which is created."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset = _served_mnist(*served, _images(GREY, 6, 0), _images(GREY, 3, 1))
    read_as(GREY, None, dataset, download=True)
    assert (tmp_path / "cache" / "edgefl" / "data" / "MNIST" / "raw" / "t10k-labels-idx1-ubyte").is_file()


def test_a_download_of_other_content_is_refused(served, tmp_path):
    """A file whose md5 differs is not used."""
    folder, address = served
    dataset = _served_mnist(folder, address, _images(GREY, 6, 0), _images(GREY, 3, 1))
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"something else"))
    root = tmp_path / "data"
    root.mkdir()
    message = _refused(GREY, root, dataset, download=True)
    assert "could not be downloaded" in message
    assert "--data-dir" in message


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # torchvision leaves the 404 it got open
def test_a_server_without_the_file(served, tmp_path):
    """A failed download is a DataError that says so."""
    folder, address = served
    dataset = _served_mnist(folder, address, _images(GREY, 6, 0), _images(GREY, 3, 1))
    (folder / "train-labels-idx1-ubyte.gz").unlink()
    root = tmp_path / "data"
    root.mkdir()
    assert "could not be downloaded" in _refused(GREY, root, dataset, download=True)
    gc.collect()


class _OldDtype:
    """A dtype as the published CIFAR pickles of 2009 spell it, with 0 where NumPy now wants False."""

    def __reduce__(self):
        return np.dtype, ("u1", 0, 1)


def _served_cifar(folder, address, train_x, test_x):
    def batch(x, y):
        return pickle.dumps(
            {"data": x.reshape(len(x), -1), "labels": y.tolist(), "dtype": _OldDtype()}, protocol=2
        )

    files = {
        "data_batch_1": batch(train_x, TRAIN_Y),
        "test_batch": batch(test_x, TEST_Y),
        "batches.meta": pickle.dumps({"label_names": list(COLOUR.class_names)}, protocol=2),
    }
    with tarfile.open(folder / "cifar.tar.gz", "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    fields = {
        "url": f"{address}cifar.tar.gz",
        "filename": "cifar.tar.gz",
        "tgz_md5": _md5((folder / "cifar.tar.gz").read_bytes()),
        "train_list": [["data_batch_1", _md5(files["data_batch_1"])]],
        "test_list": [["test_batch", _md5(files["test_batch"])]],
        "meta": {"filename": "batches.meta", "key": "label_names", "md5": _md5(files["batches.meta"])},
    }
    return type("CIFAR10", (_cifar(),), fields)


def test_cifar_is_downloaded(served, tmp_path):
    """An archive of pickles is fetched, checked and unpacked; its age causes no warning."""
    train_x, test_x = _images(COLOUR, 6, 0), _images(COLOUR, 3, 1)
    dataset = _served_cifar(*served, train_x, test_x)
    root = tmp_path / "data"
    root.mkdir()
    found = read_as(COLOUR, root, dataset, download=True)
    assert (found.train_x == train_x).all()
    assert (found.test_x == test_x).all()
    assert found.train_y.tolist() == TRAIN_Y.tolist()


def test_cifar_files_that_were_changed_are_refused_or_mended(served, tmp_path):
    """A changed pickle is not opened; where a download is allowed, it is replaced."""
    train_x, test_x = _images(COLOUR, 6, 0), _images(COLOUR, 3, 1)
    dataset = _served_cifar(*served, train_x, test_x)
    root = tmp_path / "data"
    root.mkdir()
    read_as(COLOUR, root, dataset, download=True)
    changed = Path(root) / "cifar-10-batches-py" / "data_batch_1"
    changed.write_bytes(b"changed")
    assert "unreadable or incomplete" in _refused(COLOUR, root, dataset)
    assert (read_as(COLOUR, root, dataset, download=True).train_x == train_x).all()
