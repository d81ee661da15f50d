"""Directories of runs: each is one command's alone, and nothing is removed that was not made for it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest

from edgefl.core.errors import UserError
from edgefl.store import claimed


class _Bad(Exception):  # noqa: N818 - no error of the package's
    pass


def _fail(out):
    with suppress(_Bad), claimed(out, "name"):
        raise _Bad


def _left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_was_made_is_removed(tmp_path):
    (tmp_path / "old").mkdir()
    _fail(tmp_path / "old" / "a" / "b")
    _fail(tmp_path / "c")
    assert _left(tmp_path) == ["old"]


def test_an_empty_folder_of_the_users_stays(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to("mine")
    for out in (tmp_path / "mine", tmp_path / "link"):
        _fail(out)
    monkeypatch.chdir(tmp_path / "mine")
    _fail(Path())
    assert _left(tmp_path) == ["link", "mine"]


def test_what_is_written_stays(tmp_path):
    with claimed(tmp_path / "run", "name") as folder:
        (folder / "result").touch()
    assert _left(tmp_path) == ["run", "run/result"]


@pytest.mark.parametrize("made", [False, True])
def test_a_second_command_is_refused(tmp_path, made):
    out = tmp_path / "run"
    if made:
        out.mkdir()
    with claimed(out, "name"):
        with pytest.raises(UserError, match="another command writes into") as caught, claimed(out, "name"):
            pass
        assert caught.value.hint == "choose another --out"
        (out / "result").touch()
        with pytest.raises(UserError, match="is not empty"), claimed(out, "name"):
            pass
    with pytest.raises(UserError, match="is not empty"), claimed(out, "name"):
        pass
    assert _left(tmp_path) == ["run", "run/result"]


def _at_once(count, claim):
    """So many threads that claim at the same time; their folders, or None where one was refused."""
    barrier = Barrier(count)

    def one(_):
        barrier.wait()
        try:
            with claim() as folder:
                barrier.wait()
                return folder
        except UserError:
            barrier.wait()
            return None

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_only_one_of_many_gets_a_folder(tmp_path):
    for number in range(20):
        found = _at_once(5, lambda: claimed(tmp_path / f"run-{number}", "name"))  # noqa: B023 - called in the loop
        assert found.count(None) == 4


def test_a_command_that_was_quicker_is_seen(tmp_path, monkeypatch):
    """It wrote its run and took its lock away between our look and our lock."""
    make = os.open

    def slow(path, *how):
        os.close(make(tmp_path / "run.sqlite", os.O_CREAT))
        return make(path, *how)

    monkeypatch.setattr("edgefl.store.locks.os.open", slow)
    with pytest.raises(UserError, match="is not empty"), claimed(tmp_path, "name"):
        pass
    assert _left(tmp_path) == ["run.sqlite"]


def test_a_lock_that_was_left_behind_is_taken_over(tmp_path):
    (tmp_path / ".edgefl.lock").touch()
    with claimed(tmp_path, "name") as folder:
        (folder / "result").touch()
    assert _left(tmp_path) == ["result"]


def test_new_names_are_never_shared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = _at_once(30, lambda: claimed(None, "name"))
    assert None not in found
    assert len(set(found)) == 30


def test_links_to_nowhere_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UserError, match="cannot create"), claimed(tmp_path / "link", "name"):
        pass
    assert (tmp_path / "link").readlink() == Path("nowhere")


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("edgefl.store.locks.os.open", refuse)
    with pytest.raises(UserError, match=r"cannot write to .*: Permission denied"), claimed(tmp_path, "name"):
        pass
