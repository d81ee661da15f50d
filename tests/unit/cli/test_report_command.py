"""`edgefl report`: where its page goes, and what it says."""

import json

import pytest
from commands import run_command

import edgefl


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a group"
    edgefl.run("quickstart", overrides={"server.rounds": 1}, engine="null", out=folder)
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_the_page_is_named_after_the_first_run(capsys, here, folder):
    status, out, _ = run_command(capsys, "report", folder)
    page = here / "a-group.html"
    assert (status, out) == (0, f"saved a-group.html ({page.stat().st_size / 1e3:.0f} kB)\n")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    status, out, _ = run_command(capsys, "report", *sorted(folder.glob("0*")), "--json")
    page = here / "01-fedavg-and-2-more.html"
    assert (status, json.loads(out)) == (0, {"file": page.name, "bytes": page.stat().st_size})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--out", "missing/page.html"], "there is no folder missing"),
        (["--out", "page.pdf"], "page.pdf must end in .html or .htm"),
        (["--out", "page"], "hint:  try --out no-run.html"),
        (["--out", "."], ". is a folder"),
        (["--out", "/dev/null"], "/dev/null is not a regular file"),
        (["--sensitivity", "0.5"], "--sensitivity"),
        (["--target", "3"], "at most 1, not 3.0"),
        ([], "neither a run nor a group"),
    ],
)
def test_a_mistake_is_told_before_runs_are_read(capsys, here, arguments, words):
    """One message and exit status 2, even where the runs do not exist."""
    status, _, err = run_command(capsys, "report", "no-run", *arguments)
    assert (status, words in err) == (2, True)
    assert list(here.iterdir()) == []
