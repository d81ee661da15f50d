"""Files that belong together are written together, or not at all."""

from __future__ import annotations

import pytest

from edgefl.core.errors import RunError
from edgefl.core.files import all_atomically


def test_all_are_written(tmp_path):
    """Each under its name, with nothing beside."""
    all_atomically({tmp_path / "a": b"1", tmp_path / "b": b"2"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"1", "b": b"2"}


def test_none_is_written_where_one_cannot_be(tmp_path):
    """The old content stays; no temporary file does."""
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(RunError, match="cannot write b"):
        all_atomically({tmp_path / "a": b"1", tmp_path / "missing" / "b": b"2"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}
