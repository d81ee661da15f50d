"""Runs whose links follow traces need the files no more once they have begun."""

import pytest
from commands import run_command
from nightly import sampled

import edgefl
from edgefl.planning.fleets import recorded_fleet
from edgefl.store.plans import read_plan
from edgefl.store.reader import Reader
from edgefl.world.blind import sights

LINK = """\
title: mine
latency: {low: 10 ms, value: 20 ms, high: 40 ms, status: assumed, source: s}
radio: {low: {base: 1 W}, value: {base: 2 W}, high: {base: 3 W}, status: assumed, source: s}
trace: {csv: mine.csv}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of two rounds on a link with a trace, whose file is gone."""
    folder = tmp_path_factory.mktemp("traced")
    (folder / "profiles" / "links").mkdir(parents=True)
    (folder / "profiles" / "links" / "mine.yaml").write_text(LINK, encoding="utf-8")
    (folder / "mine.csv").write_text("seconds,down,up\n0,8e6,2e6\n1,0,1e6\n4,1,1\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEFL_PATH", str(folder))
        settings = {"server.rounds": 2, "fleet.link": "mine", "sweep": None}
        edgefl.run("quickstart", overrides=settings, engine="null", out=folder / "run")
    (folder / "mine.csv").unlink()
    (folder / "profiles" / "links" / "mine.yaml").unlink()
    return folder


def test_a_run_has_its_traces_with_it(folder):
    """Its plan has the rows, and says what its clients follow; its times are its own at no other numbers."""
    reader = Reader(folder / "run")
    found, assumed = recorded_fleet(reader).links["mine"], reader.meta["assumed"]
    assert found.rates(0, "down").bps.value.tolist() == [8e6, 0]
    assert found.down.value == 2e6
    assert list(sights(read_plan(reader))) == ["links that follow traces"]
    assert any(line.startswith("link mine: follows a trace of 4 s, repeated") for line in assumed)


@sampled(
    2,
    "command",
    [
        ("explain",),
        ("compare", "--sensitivity", "2"),
        ("replay", "--set", "wire.up=int8", "--out", "replayed"),
    ],
    ids=lambda command: command[0],
)
def test_commands_need_no_file_of_it(folder, capsys, monkeypatch, command):
    monkeypatch.chdir(folder)
    name, *options = command
    status, _, err = run_command(capsys, name, "run", *options)
    assert status == 0, err
