"""Decoded images are kept: served while the files are the same, decoded again whenever anything is wrong."""

import json
import os
import shutil
import time
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from image_files import encoded, image, tree

from edgefl.core import images as decoding
from edgefl.core.errors import DataError
from edgefl.data import Arrays, Spec, image_cache, readers
from edgefl.data.image_cache import decoded_once


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


@pytest.fixture
def settled(monkeypatch):
    """A clock by which files changed long enough ago."""
    now = time.time_ns
    monkeypatch.setattr(image_cache.time, "time_ns", lambda: now() + 10**10)


def _entries(cache):
    return [path for path in (cache / "images").iterdir() if path.name != "seen"]


def test_images_are_decoded_once(counted, cache):
    """The second time they come from the cache: equal arrays, as files of that size mapped into memory."""
    first, second = counted.found(), counted.found()
    assert counted.times == 1
    names = "train_x", "train_y", "test_x", "test_y"
    for one, other in ([getattr(each.arrays, name) for each in (first, second)] for name in names):
        assert (one == other).all()
        assert (one.dtype, one.strides) == (other.dtype, other.strides)
    assert (first.mean, first.std, first.content) == (second.mean, second.std, second.content)
    base = second.arrays.train_x
    while not isinstance(base, np.memmap):
        base = base.base
    (entry,) = _entries(cache)
    assert base.filename == entry / "train_x.npy"
    second.arrays.train_x[:] = 0  # such changes stay in the process
    assert counted.found().arrays.train_x[0].tolist() == np.full((3, 2, 4), 10).tolist()


@pytest.mark.usefixtures("settled")
def test_the_content_is_hashed_once(counted, monkeypatch):
    """Files whose path, size and times are those of last time are not read at all."""
    counted.found()
    monkeypatch.setattr(image_cache, "_content", Mock(side_effect=AssertionError))
    counted.found()
    assert counted.times == 1


def test_what_makes_an_entry(counted, tmp_path, cache):
    """The content, not the place; size, share and layout; the same bytes of another shape are others."""
    counted.found()
    copies = [shutil.copy(path, tmp_path / f"copy of {path.name}") for path in counted.files]
    copied = Counted(*copies)
    assert copied.found().content == counted.found().content
    assert (copied.times, len(_entries(cache))) == (0, 1)
    for entries, how in ((2, {"shape": [3, 8, 8]}), (3, {"share": 0.5})):
        counted.found(**how)
        assert (counted.times, len(_entries(cache))) == (entries, entries)
    wide = counted()
    high = replace(wide, train_x=wide.train_x.swapaxes(2, 3), test_x=wide.test_x.swapaxes(2, 3))
    found = [
        decoded_once(counted.files, {"how": number}, lambda arrays=arrays: arrays).content
        for number, arrays in enumerate((wide, high))
    ]
    assert found[0] != found[1]


@pytest.mark.usefixtures("settled")
def test_a_changed_file_is_never_served_stale(counted):
    """Even where size and time of modification are set back to what they were."""
    counted.found()
    path = counted.files[0]
    before = path.stat()
    path.write_bytes(bytes([77]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counted.found().arrays.train_x[0, 0, 0, 0] == 77


def test_files_that_change_now_are_hashed_again_or_not_kept(counted, cache):
    """A change within a tick of the file system's clock has the same time."""
    decode = counted.__call__

    def change():
        found = decode()
        counted.files[1].write_bytes(b"other")
        return found

    decoded_once(counted.files, {}, change)
    assert not (cache / "images").exists()
    counted.found()
    assert not list((cache / "images").glob("seen/*"))


def _damages():
    def flip(path):
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)

    def facts(path, **changed):
        path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))

    return {
        "a bit": lambda entry: flip(entry / "train_x.npy"),
        "a label": lambda entry: flip(entry / "test_y.npy"),
        "a cut": lambda entry: os.truncate(entry / "train_x.npy", 140),
        "no facts": lambda entry: (entry / "facts.json").unlink(),
        "facts of another kind": lambda entry: (entry / "facts.json").write_text("[1]"),
        "another mean": lambda entry: facts(entry / "facts.json", mean=[0.1, 0.2, 0.3]),
        "another content": lambda entry: facts(entry / "facts.json", content="0"),
        "a file in its place": lambda entry: (shutil.rmtree(entry), entry.write_bytes(b"")),
    }


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("damage", _damages())
def test_a_damaged_entry_is_decoded_again(counted, cache, damage):
    """Whatever happened to it, the images are right, and the next time they are kept again."""
    first = counted.found()
    (entry,) = _entries(cache)
    _damages()[damage](entry)
    again = counted.found()
    assert counted.times == 2
    assert (again.arrays.train_x == first.arrays.train_x).all()
    assert again.mean == first.mean
    if damage != "a file in its place":
        counted.found()
        assert counted.times == 2


@pytest.mark.parametrize("name", ["", "images", "images/seen"])
def test_an_unwritable_cache_is_not_used(counted, cache, name):
    """A file where a folder should be: decoded each time, never an error; a missing image is one."""
    path = cache / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")
    for _ in range(2):
        assert counted.found().arrays.train_x[1, 0, 0, 0] == 11
    counted.files[1].unlink()
    with pytest.raises(DataError, match="cannot read two"):
        counted.found()


@pytest.mark.parametrize("why", ["half of what is free", "more than the limit", "a write that fails"])
def test_what_does_not_fit_is_not_kept(counted, cache, monkeypatch, why):
    """No half entry, no temporary folder, and other datasets are not pushed out."""
    full = Mock(side_effect=OSError(28, "No space left on device"))
    if why == "half of what is free":
        monkeypatch.setattr(image_cache.shutil, "disk_usage", Mock(return_value=Mock(free=100)))
    elif why == "more than the limit":
        monkeypatch.setattr(image_cache, "MOST_BYTES", 10)
    else:
        monkeypatch.setattr(image_cache.np, "save", full)
    counted.found()
    assert _entries(cache) == []


def test_the_cache_is_bounded(tmp_path, cache, monkeypatch):
    """Where a third entry does not fit, the one goes that was not used for longest, and what points to it."""
    sources = [Counted(tmp_path / str(level)) for level in range(3)]
    for level, source in enumerate(sources):
        source.files[0].write_bytes(bytes([level]))
    seen = cache / "images" / "seen"
    for used_s, source in zip((1000, 2000), sources, strict=False):
        before = {entry.name for entry in _entries(cache)} if seen.parent.is_dir() else set()
        source.found()
        (new,) = [entry for entry in _entries(cache) if entry.name not in before]
        os.utime(new / "facts.json", (used_s, used_s))
    size = sum(file.stat().st_size for file in new.iterdir())
    seen.mkdir(exist_ok=True)
    (seen / "pointer").write_text(new.name)
    sources[0].found()  # now the first was used later than the second
    monkeypatch.setattr(image_cache, "MOST_BYTES", int(2.01 * size))
    sources[2].found()
    assert new not in _entries(cache)
    assert len(_entries(cache)) == 2
    assert not (seen / "pointer").exists()
    for source in (sources[0], sources[2]):
        source.found()
    assert [source.times for source in sources] == [1, 1, 1]


def test_what_killed_processes_left_is_removed(counted, cache):
    left, fresh = (cache / "images" / name for name in ("new-abc", "new-def"))
    left.mkdir(parents=True)
    fresh.mkdir()
    os.utime(left, (time.time() - 10**6,) * 2)
    counted.found()
    assert (left.exists(), fresh.exists()) == (False, True)


def test_known_datasets_are_kept_too(tmp_path, monkeypatch):
    """The second reading of CIFAR-10's layout as a tree decodes nothing."""
    spec = Spec("cifar10", (3, 4, 6), 2, 4, 2, ("cat", "dog"), (0.5,) * 3, (0.2,) * 3)
    tree(tmp_path, {"train/cat": 2, "train/dog": 2, "test/cat": 1, "test/dog": 1})
    first = readers.read(spec, tmp_path, "CIFAR10", download=False)
    monkeypatch.setattr(decoding, "_pixels", Mock(side_effect=DataError("decoded")))
    assert (readers.read(spec, tmp_path, "CIFAR10", download=False).train_x == first.train_x).all()
    (tmp_path / "train" / "cat" / "0.png").write_bytes(encoded(image(9)))
    with pytest.raises(DataError, match="decoded"):
        readers.read(spec, tmp_path, "CIFAR10", download=False)
