"""`edgefl compare` on folders of runs, and what `edgefl run` prints of them."""

import csv
import json
import re
from importlib import import_module

import pytest
import yaml
from commands import run_command
from small import SMALL as BASE
from unfinished import UNPOWERED, UNPRICED

import edgefl
from edgefl.analysis.summary import summaries
from edgefl.store.reader import read

HOSTILE = "a [/] [rev b] :warning: [link=x]"
SMALL = {
    **BASE,
    "name": HOSTILE,
    "local": {"epochs": 1, "batch_size": 32, "optimizer": {"name": "sgd", "lr": 0.3}},
    "server": {"participants": 3, "rounds": 3},
    "evaluate": {"target": 0.01, "models": ["global"]},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of two groups: a sweep over seeds, and a run of its own with another seed."""
    folder = tmp_path_factory.mktemp("runs")
    sweep = {**SMALL, "sweep": {"seed": [1, 2], "local.epochs": [1, 2]}}
    edgefl.run(sweep, engine="loop", out=folder / "sweep")
    edgefl.run({**SMALL, "seed": 3}, engine="loop", out=folder / "alone")
    return folder


def test_a_folder_of_groups_has_all_their_runs(runs, capsys):
    status, out, _ = run_command(capsys, "compare", runs)
    assert status == 0
    assert "3 seeds" in out
    assert "2 seeds" in out
    assert "local.epochs (1, 2)" in out
    _, out, _ = run_command(capsys, "compare", runs, "--all")
    assert [line for line in out.splitlines() if line.startswith("local.epochs")]
    status, out, _ = run_command(capsys, "compare", runs, "--json")
    found = json.loads(out)
    assert len(found["runs"]) == 5
    assert sorted(len(one["runs"]) for one in found["averages"]) == [2, 3]
    assert set(found["differences"]) == {"seed", "local.epochs"}


def test_a_comparison_has_a_format(runs, capsys):
    """As JSON it is what ``--json`` prints; CSV has its numbers, and lines that end in CR LF."""
    _, as_json, _ = run_command(capsys, "compare", runs / "alone", "--json")
    status, found, _ = run_command(capsys, "compare", runs / "alone", "--format", "json")
    assert (status, found) == (0, as_json)
    _, out, _ = run_command(capsys, "compare", runs / "alone", "--format", "csv")
    heads, values = csv.reader(out.split("\r\n")[:2])
    found = dict(zip(heads, values, strict=True))
    (run,) = json.loads(as_json)["runs"]
    assert (found["name"], found["runs"], found["down_bytes"]) == (HOSTILE, "1", str(run["down_bytes"]))
    assert float(found["target.global.t_s"]) == run["target"]["global"]["t_s"]
    _, out, _ = run_command(capsys, "compare", runs, "--format", "markdown")
    assert "| virtual time (ms) |" in out
    _, out, _ = run_command(capsys, "compare", runs, "--format", "latex")
    assert out.startswith("% \\usepackage{booktabs}\n\\begin{tabular}{lrr}\n")
    _, out, _ = run_command(capsys, "compare", runs, "--format", "table")
    assert out == run_command(capsys, "compare", runs)[1]


def test_a_format_for_programs_is_all_that_stdout_has(runs, capsys, monkeypatch):
    """What a library prints beside it goes to stderr, as with ``--json``; beside a table it does not."""
    module = import_module("edgefl.show.compare")
    made = module.comparison
    monkeypatch.setattr(module, "comparison", lambda *a, **b: print("chatter") or made(*a, **b))  # noqa: T201
    status, out, err = run_command(capsys, "compare", runs / "alone", "--format=csv")
    assert (status, "chatter" in out, "chatter" in err) == (0, False, True)
    _, out, _ = run_command(capsys, "compare", runs / "alone", "--format", "table")
    assert "chatter" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["acuracy"], "did you mean 'accuracy, global'? known: accuracy, global; training loss; "),
        (["virtual_s", "--format", "csv"], "--rows is of tables; csv has every figure"),
    ],
)
def test_a_row_that_there_is_not_is_one_message(runs, capsys, arguments, message):
    status, out, err = run_command(capsys, "compare", runs / "alone", "--rows", *arguments)
    assert (status, out) == (2, "")
    assert message in " ".join(err.split())
    assert "--rows" in err
    status, out, err = run_command(capsys, "compare", runs / "alone", "--json", "--format", "csv")
    assert (status, out) == (2, "")
    assert "--json and --format csv cannot be combined" in err


def test_both_evaluations_around_a_target_are_told(runs):
    """The first at or above it and the one before, with what was spent until each."""
    with read(runs / "alone") as reader:
        scores = [row for row in reader.rows("evaluations", "version") if row["model"] == "global"]
    best = next(place for place, row in enumerate(scores) if row["accuracy"] > scores[0]["accuracy"])
    (run,) = summaries([runs / "alone"], scores[best]["accuracy"])
    for found, row in ((run.target.global_, scores[best]), (run.target.global_.last_below, scores[best - 1])):
        assert (found.t_s, found.round, found.accuracy) == (row["t_s"], row["round"], row["accuracy"])
        assert found.bytes == row["down_bytes"] + row["up_bytes"]
        assert found.energy.joules == row["joules"]
    assert run.target.global_.flops > run.target.global_.last_below.flops > 0
    (run,) = summaries([runs / "alone"], scores[0]["accuracy"])
    assert run.target.global_.last_below is None


def test_a_hostile_name_does_not_end_a_run(tmp_path, capsys, monkeypatch):
    """Its progress bar, its table and where it is saved, as a terminal shows them."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    file = tmp_path / "[rev b].yaml"
    file.write_text(yaml.safe_dump({**SMALL, "notes": HOSTILE}), encoding="utf-8")
    status, out, err = run_command(capsys, "run", file, "--engine", "loop", "--out", tmp_path / "[b]out")
    assert status == 0, err
    assert HOSTILE in out
    assert "[b]out" in out


def test_the_next_steps_are_told(tmp_path, capsys, monkeypatch):
    """They work as they are printed; a run that evaluated nothing has no accuracies."""
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL), encoding="utf-8")
    _, out, _ = run_command(capsys, "run", file, "--engine", "null", "--out", tmp_path / "null")
    assert "accuracy" not in out
    steps = [line.partition("edgefl ")[2] for line in out.partition("next: ")[2].splitlines()]
    assert [step.split()[0] for step in steps] == ["report", "explain", "compare"]
    # A page is written where one stands.
    monkeypatch.chdir(tmp_path)
    for step in steps:
        assert run_command(capsys, *step.split())[0] == 0


def test_commands_keep_to_columns(runs, capsys, monkeypatch):
    """Piped as well; nothing is left out, and no name is broken but behind a hyphen."""
    monkeypatch.setenv("COLUMNS", "60")
    for arguments, shown in (
        (["compare", runs], ["global", "virtual time"]),
        (
            ["profile", "quickstart", "--device", "raspberry-pi-zero-2w"],
            ["used", "fits", "compute-"],
        ),
    ):
        status, out, _ = run_command(capsys, *arguments)
        assert status == 0
        assert max(len(line) for line in out.splitlines() if re.search("[│┃━]", line)) <= 60
        words = " ".join(re.split(r"[\s│┃━╇]+", out))
        assert [text for text in shown if text not in words] == []


@pytest.mark.nightly
@pytest.mark.usefixtures("unfinished")
def test_a_profile_of_several_runs_begins_with_an_overview(capsys):
    """Bytes, and devices by runs: a client's round, with marks for lower bounds and for what does not fit."""
    devices = [word for name in ("raspberry-pi-zero-2w", UNPOWERED, UNPRICED) for word in ("--device", name)]
    # A model that does not fit into 512 MB, and is traced in no time.
    large = ["--set", "sweep.method=[fedavg, spherefed]", "--set", "model={name: mlp, hidden: [9000, 9000]}"]
    _, out, _ = run_command(capsys, "profile", "costs", *devices, *large)
    heads = [line for line in out.splitlines() if line.split("┃")[0].rstrip().endswith("of a client's round")]
    assert [head.split()[0] for head in heads] == ["bytes", "time", "energy"]
    assert all(head.split()[-3:] == ["fedavg", "┃", "spherefed"] for head in heads)
    zero, phone = (
        next(line for line in out.splitlines() if line.startswith(name)).split()
        for name in ("raspberry-pi-zero-2w", UNPOWERED)
    )
    assert zero[2].startswith("!")
    assert phone[2].startswith(">")
    assert f"no price, for the reasons below: {UNPRICED}\n" in out
    _, out, _ = run_command(capsys, "profile", "quickstart", "--device", "phone-mid", "--set", "sweep=null")
    assert out.startswith("quickstart: fedavg")
