"""A folder of the user's own files."""

import pytest


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that writes a file under a directory on EDGEFL_PATH, and returns its path."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write
