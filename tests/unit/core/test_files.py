"""Atomic file writes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from edgefl.core.errors import RunError
from edgefl.core.files import atomically, replacing


def test_two_writers_of_one_path_do_not_mix(tmp_path):
    path = tmp_path / "kept.json"
    with ThreadPoolExecutor(1) as other, replacing(path) as temporary:
        temporary.write_text("first and whole")
        other.submit(atomically, {path: b"second"}).result()
        assert path.read_text() == "second"
    assert path.read_text() == "first and whole"
    assert list(tmp_path.iterdir()) == [path]


def test_none_is_written_where_one_cannot_be(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(RunError, match="cannot write b"):
        atomically({tmp_path / "a": b"1", tmp_path / "missing" / "b": b"2"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "kept").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "kept")
    atomically({tmp_path / "link": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "kept").read_bytes() == b"new"
