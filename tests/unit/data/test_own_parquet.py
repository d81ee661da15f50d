"""The data set ``parquet``: Hugging Face's image Parquet with classes and sizes of its own."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from image_files import encoded, image

from edgefl.core.errors import DataError
from edgefl.data.sources import parquet
from edgefl.data.sources.parquet import image_parquet


def _write(path, levels, labels, names=None, column="label"):
    path.parent.mkdir(parents=True, exist_ok=True)
    blobs = [level if isinstance(level, bytes | None) else encoded(image(level)) for level in levels]
    images = pa.array(
        [{"bytes": blob, "path": None} for blob in blobs],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    table = pa.table({"image": images, column: pa.array(labels, pa.int64())})
    if names:
        features = {column: {"names": names, "_type": "ClassLabel"}, "image": {"_type": "Image"}}
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, path, row_group_size=2)


def _source(path, **params):
    return parquet.Params(path=str(path), **params).build()


def _refused(path, **params):
    with pytest.raises(DataError) as caught:
        _source(path, **params).read(None, download=False)
    assert caught.value.where
    return str(caught.value)


def test_both_parts(tmp_path):
    """In a folder data; classes have the metadata's names; files are read in the order of their names."""
    root = tmp_path / "flowers"
    _write(root / "data" / "train-00001-of-00002.parquet", [30], [1], ["rose", "tulip"])
    _write(root / "data" / "train-00000-of-00002.parquet", [10, 20, 25], [0, 1, 0], ["rose", "tulip"])
    _write(root / "data" / "test.parquet", [40, 50], [1, 0], ["rose", "tulip"])
    source = _source(root)
    assert (source.spec.name, source.spec.class_names) == ("flowers", ("rose", "tulip"))
    assert [labels.tolist() for labels in source.labels] == [[0, 1, 0, 1], [1, 0]]
    spec, arrays = source.read(None, download=False)
    assert arrays.train_x[:, 0, 0, 0].tolist() == [10, 20, 25, 30]
    assert arrays.test_x[:, 2, 3, 5].tolist() == [40, 50]
    assert spec.mean[0] == pytest.approx(85 / 4 / 255)


@pytest.mark.parametrize("parts", [("train", "test"), ("all",)])
def test_a_column_says_whose_an_image_is(tmp_path, parts):
    """In the order of the images, whatever the column's type; a user has one number in both parts."""
    root = tmp_path / "flowers"
    for part in parts:
        _write(root / f"{part}.parquet", [10, 20, 30, 40], [0, 1, 0, 1])
        table = pq.read_table(root / f"{part}.parquet").append_column("who", pa.array(["b", "a", "a", "c"]))
        pq.write_table(table, root / f"{part}.parquet")
    source = _source(root, user="who")
    _, arrays = source.read(None, download=False)
    for x, users in zip((arrays.train_x, arrays.test_x), source.users, strict=True):
        assert users.tolist() == [{10: 1, 20: 0, 30: 0, 40: 2}[level] for level in x[:, 0, 0, 0].tolist()]
    pq.write_table(table.append_column("age", pa.array([1.0, float("nan"), 1, 1])), root / f"{part}.parquet")
    for wrong in ("whom", "image", "age"):
        assert f"has no column '{wrong}' of names or whole numbers" in _refused(root, user=wrong)


def test_files_of_one_part_differ_in_their_integers(tmp_path):
    """Shards of different writers; of a damaged one, its own name is told."""
    for name, kind in (("train-0", pa.int64()), ("train-1", pa.int32())):
        _write(tmp_path / f"{name}.parquet", [10, 20], [0, 1])
        table = pq.read_table(tmp_path / f"{name}.parquet")
        labels = table.set_column(1, "label", table["label"].cast(kind))
        pq.write_table(labels, tmp_path / f"{name}.parquet")
    assert image_parquet(sorted(tmp_path.glob("*"))).labels.tolist() == [0, 1, 0, 1]
    (tmp_path / "train-1.parquet").write_bytes(b"PAR")
    assert "train-1.parquet is unreadable" in _refused(tmp_path)


def test_a_share_is_for_testing(tmp_path):
    """Without a test part: of every class, and each image keeps its label."""
    _write(tmp_path / "images.parquet", range(20), [level % 2 for level in range(20)])
    source = _source(tmp_path, size=2, channels=1)
    _, arrays = source.read(None, download=False)
    assert source.spec.class_names == ("0", "1")
    assert np.bincount(arrays.test_y).tolist() == [2, 2]
    for x, y in ((arrays.train_x, arrays.train_y), (arrays.test_x, arrays.test_y)):
        assert x.shape[1:] == (1, 2, 2)
        assert (x[:, 0, 0, 0] % 2 == y).all()
    assert sorted([*arrays.train_x[:, 0, 0, 0], *arrays.test_x[:, 0, 0, 0]]) == list(range(20))


def test_which_column_has_the_labels(tmp_path):
    """The one that is named, or the first known one that has integers."""
    _write(tmp_path / "a" / "train.parquet", [1, 2, 3, 4], [0, 1, 0, 1], column="breed")
    assert "breed" in _refused(tmp_path / "a")
    assert _source(tmp_path / "a", label="breed").spec.classes == 2
    path = tmp_path / "train.parquet"
    _write(path, [1, 2, 3, 4], [0, 1, 0, 1], column="fine_label")
    table = pq.read_table(path).append_column("labels", pa.array([1, 1, 0, 0]))
    pq.write_table(table.append_column("label", pa.array(["a", "b", "a", "b"])), path)
    assert image_parquet([path]).labels.tolist() == [0, 1, 0, 1]


def test_labels_are_known_without_decoding(tmp_path):
    """A description reads no image where the size is given, and no pixels."""
    _write(tmp_path / "train.parquet", [1, b"broken", 3, 4], [0, 1, 0, 1])
    assert _source(tmp_path, size=4).spec.train_size == 2
    assert "image 1" in _refused(tmp_path, size=4)


@pytest.mark.parametrize(
    ("levels", "labels", "says"),
    [
        ([1, 2, 3, 4], [0, 2, 0, 2], "class '1' has 0 images"),
        ([1, 2], [-1, 0], "labels run from -1 to 0"),
        ([1, 2], [0, 10**9], "labels run from 0 to 1000000000"),
        ([1, 2, 3], [0, 1, None], "1 of 3 images have no label"),
        ([1, 2], [0, 0], "only the class '0'"),
        ([], [], "hold no images"),
        ([None, 2, 3, 4], [0, 1, 0, 1], "only a path is stored"),
        ([b"", 2, 3, 4], [0, 1, 0, 1], "cannot identify"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, levels, labels, says):
    _write(tmp_path / "train.parquet", levels, labels)
    assert says in _refused(tmp_path)


def test_classes_have_names_of_their_own(tmp_path):
    _write(tmp_path / "train.parquet", [1, 2, 3, 4], [0, 1, 0, 1], names=["one", "one"])
    assert "two classes have the same name" in _refused(tmp_path)


def test_no_file_of_this_machine_is_read_for_an_image(tmp_path):
    """Bytes that are a text would be opened as a file's name."""
    (tmp_path / "own.png").write_bytes(encoded(image(1)))
    texts = [{"bytes": str(tmp_path / "own.png")}] * 4
    table = pa.table({"image": pa.array(texts), "label": pa.array([0, 1, 0, 1])})
    pq.write_table(table, tmp_path / "train.parquet")
    assert "is not image Parquet" in _refused(tmp_path)
