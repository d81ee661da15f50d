"""`edgefl report`: where its page goes, and what it says."""

from __future__ import annotations

import json
import os

import pytest
from commands import run_command

import edgefl


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A group of three runs that trained nothing."""
    folder = tmp_path_factory.mktemp("runs") / "a group"
    edgefl.run("quickstart", overrides={"server.rounds": 1}, engine="null", out=folder)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_is_named_after_the_first_run(capsys, here, folder):
    """In the current folder, without what shells trip over; the command says where it is and how large."""
    status, out, _ = run_command(capsys, "report", folder)
    page = here / "a-group.html"
    assert (status, out) == (0, f"saved a-group.html ({page.stat().st_size / 1e3:.0f} kB)\n")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    status, out, _ = run_command(capsys, "report", *sorted(folder.glob("0*")))
    assert (status, out.split()[1]) == (0, "01-fedavg-and-2-more.html")


def test_json_names_the_file(capsys, here, folder):
    """`--json` prints the file and its size in bytes."""
    status, out, _ = run_command(capsys, "report", folder, "--out", "page.html", "--json")
    assert (status, json.loads(out)) == (
        0,
        {"file": "page.html", "bytes": (here / "page.html").stat().st_size},
    )


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("missing/page.html", "the folder missing does not exist"),
        ("/dev/null/page.html", "/dev/null is not a folder"),
        ("page.pdf", "page.pdf must end in .html or .htm"),
        ("page", "hint:  try --out no-run.html"),
        (".", ". is a folder"),
        ("/dev/null", "/dev/null is not a regular file"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_runs_are_read(capsys, out, words):
    """One message and exit status 2, even where the runs do not exist."""
    status, _, err = run_command(capsys, "report", "no-run", "--out", out)
    assert (status, words in err) == (2, True)


def test_a_factor_below_one_is_refused_before_runs_are_read(capsys, here):
    """One message that names the option, exit status 2, and no page."""
    status, _, err = run_command(capsys, "report", "no-run", "--sensitivity", "0.5")
    assert (status, "--sensitivity" in err, "between 1 and" in err) == (2, True, True)
    assert list(here.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(capsys, here, folder):
    """The message says why."""
    here.chmod(0o500)
    status, _, err = run_command(capsys, "report", folder)
    assert (status, "Permission denied" in err) == (1, True)


def test_a_full_disk_leaves_the_page_that_was_there(capsys, here, folder, monkeypatch):
    """One message with the reason, no temporary file, and the old page."""
    run_command(capsys, "report", folder, "--out", "page.html")
    before = (here / "page.html").read_bytes()

    def full(_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("edgefl.core.files.os.fsync", full)
    status, _, err = run_command(capsys, "report", folder, "--out", "page.html", "--force")
    assert (status, "No space left on device" in err) == (1, True)
    assert [path.name for path in here.iterdir()] == ["page.html"]
    assert (here / "page.html").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["no-run"], "neither a run nor a group"), (["--target", "3"], "at most 1, not 3.0"), ([], "RUN")],
)
def test_bad_input(capsys, here, folder, arguments, words):
    """One message, exit status 2, and no file."""
    given = [folder, *arguments] if "--target" in arguments else arguments
    status, _, err = run_command(capsys, "report", *given)
    assert (status, words in err) == (2, True)
    assert list(here.iterdir()) == []
