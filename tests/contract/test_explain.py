"""`edgefl explain` and `RunResult.explain`, on folders of runs as they come."""

import json

import pytest
from commands import run_command
from small import Stop

import edgefl
from edgefl.core.documents import document

ROUNDS = 3


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Runs that trained nothing: FedAvg, and FedAvg on a server that does not wait."""
    folder = tmp_path_factory.mktemp("runs") / "group"
    sweep = {"server.policy": ["sync", {"name": "fedasync"}]}
    edgefl.run(
        "quickstart",
        overrides={"method": "fedavg", "sweep": sweep, "server.rounds": ROUNDS},
        engine="null",
        out=folder,
    )
    return folder


@pytest.fixture
def run(group):
    return edgefl.open(group).runs[0]


def test_a_round_is_explained(capsys, run):
    status, out, _ = run_command(capsys, "explain", run.folder, "--round", "1")
    assert status == 0
    assert out.splitlines()[0].startswith(f"{run.name}: round 1 took ")
    for word in ("download", "compute", "upload", "critical path", "bound by"):
        assert word in out
    for which, words in ((None, []), (0, ["--round", "0"])):
        _, out, _ = run_command(capsys, "explain", run.folder, *words, "--json")
        assert json.loads(out) == {"runs": [document(run.explain(which))]}


def test_runs_of_a_group_are_explained_one_after_another(capsys, group):
    """With savings for all and by client; the asynchronous one's are of another run, to as many merges."""
    status, out, _ = run_command(capsys, "explain", group)
    assert status == 0
    assert out.count("rounds took") == 2
    assert out.count("for all clients") == 2
    assert out.count("for client ") >= 4
    assert out.count("to as many merges: other times make another run (policy fedasync)") == 1


def test_a_round_that_is_not_there_is_refused(capsys, run):
    status, out, err = run_command(capsys, "explain", run.folder, "--round", "9")
    assert (status, out) == (2, "")
    assert f"{run.name} has no round 9" in err
    assert f"its rounds are 0 to {ROUNDS - 1}" in err
    with pytest.raises(edgefl.UserError, match="has no round -1"):
        run.explain(-1)


def test_an_interrupted_run_is_explained_as_far_as_it_came(tmp_path):
    given = {"sweep": None, "method": "fedavg", "server.rounds": 5}
    with pytest.raises(KeyboardInterrupt):
        edgefl.run("quickstart", overrides=given, engine="null", out=tmp_path / "run", callbacks=Stop(2))
    (found,) = edgefl.open(tmp_path / "run").runs
    assert found.status == "interrupted"
    assert len(found.explain().rounds) == len(found.table("merges")) > 0


def test_a_run_without_a_merge_has_nothing_to_explain(capsys, tmp_path):
    early = {"sweep": None, "server": {"until": {"time": "1 ms"}}}
    edgefl.run("quickstart", overrides=early, engine="null", out=tmp_path / "run")
    status, _, err = run_command(capsys, "explain", tmp_path / "run")
    assert (status, "nothing was merged yet" in err) == (2, True)
