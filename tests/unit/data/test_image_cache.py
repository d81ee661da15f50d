"""Decoded images are kept: served while the files are the same, decoded again whenever anything is wrong."""

import os
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from edgefl.core.errors import DataError
from edgefl.data import Arrays, decoded_once, images


class Counted:
    """Decodes to arrays that say what the files hold, and counts how often."""

    def __init__(self, *files):
        self.files, self.times = files, 0

    def __call__(self):
        """The files' first bytes as images."""
        self.times += 1
        x = np.stack([np.full((2, 4, 3), path.read_bytes()[0], dtype=np.uint8) for path in self.files])
        y = np.arange(len(x)) % 2
        return Arrays(x.transpose(0, 3, 1, 2), y, x[:1].transpose(0, 3, 1, 2), y[:1])

    def found(self, **how):
        """What is decoded or kept."""
        return decoded_once(self.files, how, self)


@pytest.fixture
def counted(tmp_path):
    """Two files of one byte each, changed long ago."""
    files = tmp_path / "one", tmp_path / "two"
    for level, path in enumerate(files, start=10):
        path.write_bytes(bytes([level]))
    return Counted(*files)


def _entries(cache):
    return list((cache / "images").iterdir())


def test_images_are_decoded_once(counted, cache):
    """The second time they come from the cache: equal arrays."""
    first, second = counted.found(), counted.found()
    assert counted.times == 1
    for name in ("train_x", "train_y", "test_x", "test_y"):
        one, other = getattr(first, name), getattr(second, name)
        assert (one == other).all()
        assert (one.dtype, one.strides) == (other.dtype, other.strides)
    assert (first.mean, first.std, first.content) == (second.mean, second.std, second.content)
    assert len(_entries(cache)) == 1


def test_changes_of_an_array_stay_in_the_process(counted):
    """Arrays can be written to, as torch demands; the file keeps its content."""
    counted.found()
    counted.found().train_x[:] = 0
    assert counted.found().train_x[0].tolist() == np.full((3, 2, 4), 10).tolist()
    assert counted.times == 1


def test_the_shape_is_part_of_the_content(counted):
    """The same bytes as images of another shape are other images."""
    wide = counted()
    high = replace(wide, train_x=wide.train_x.swapaxes(2, 3), test_x=wide.test_x.swapaxes(2, 3))
    found = [
        decoded_once(counted.files, {"how": number}, lambda arrays=arrays: arrays)
        for number, arrays in enumerate((wide, high))
    ]
    assert found[0].train_x.tobytes() == found[1].train_x.tobytes()
    assert found[0].content != found[1].content


@pytest.mark.parametrize("how", [{"shape": [3, 8, 8]}, {"share": 0.5}])
def test_another_way_of_decoding_is_another_entry(counted, cache, how):
    """Size, share and layout are part of the key."""
    counted.found()
    counted.found(**how)
    assert (counted.times, len(_entries(cache))) == (2, 2)


def test_a_changed_file_is_never_served_stale(counted):
    """Even where size and time of modification are set back to what they were."""
    counted.found()
    path = counted.files[0]
    before = path.stat()
    path.write_bytes(bytes([77]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counted.found().train_x[0, 0, 0, 0] == 77


def _damages():
    def flip(path, place):
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)

    def changed(path, old, new):
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new))

    return {
        "the first bit": lambda entry: flip(entry, 0),
        "a name": lambda entry: changed(entry, b"test_y", b"test_z"),
        "another shape": lambda entry: changed(entry, b"(2, 2, 4, 3)", b"(2, 4, 2, 3)"),
        "a pixel": lambda entry: changed(entry, bytes([10] * 24), bytes([10] * 23 + [11])),
        "zeros": lambda entry: entry.write_bytes(bytes(5000)),
        "a cut": lambda entry: os.truncate(entry, entry.stat().st_size - 1),
        "empty": lambda entry: entry.write_bytes(b""),
        "a folder in its place": lambda entry: (entry.unlink(), entry.mkdir()),
    }


@pytest.mark.parametrize("damage", _damages())
def test_a_damaged_entry_is_decoded_again(counted, cache, damage):
    """Whatever happened to it, the images are right, and the next time they are kept again."""
    first = counted.found()
    (entry,) = _entries(cache)
    _damages()[damage](entry)
    again = counted.found()
    assert counted.times == 2
    assert (again.train_x == first.train_x).all()
    assert again.mean == first.mean
    if damage != "a folder in its place":
        counted.found()
        assert counted.times == 2


@pytest.mark.parametrize("name", ["", "images"])
def test_an_unwritable_cache_is_not_used(counted, cache, name):
    """A file where a folder should be: decoded each time, never an error."""
    path = cache / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")
    for _ in range(2):
        assert counted.found().train_x[1, 0, 0, 0] == 11


def test_a_write_that_fails_leaves_nothing(counted, cache, monkeypatch):
    """No half entry, no temporary folder."""
    monkeypatch.setattr(images.np, "savez", Mock(side_effect=OSError(28, "No space left on device")))
    counted.found()
    assert _entries(cache) == []


def test_a_missing_file_is_named(counted):
    """As bad input, whenever it is missed."""
    counted.files[1].unlink()
    with pytest.raises(DataError, match="cannot read two"):
        counted.found()
