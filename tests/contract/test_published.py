"""What a paper reports beside our runs: in a comparison, a profile and on a page; and the order of runs."""

import csv
import json
from dataclasses import replace

import pytest
from commands import run_command
from small import SMALL

import edgefl
from edgefl.analysis.groups import seeds_together
from edgefl.analysis.published import beside_runs
from edgefl.analysis.summary import summaries
from edgefl.core.errors import UserError
from edgefl.show.published import order_words

PAPER = {
    "paper": "A paper, Table 1",
    "note": "Of larger images.",
    "runs": [
        {"method": "FedAvg", "accuracy": 0.4, "virtual_s": 100},
        {"method": "fedprox", "accuracy": 0.5},
        {"method": {"name": "flexchill", "temperature": 0.5}, "accuracy": 0.6},
        {"method": "moon", "accuracy": 0.7},
        {"method": "fedprox", "against": {"method": "fedavg"}, "exchanges.train.laptop-cpu.compute_s": 1.5},
    ],
}
SCENARIO = {
    **SMALL,
    "fleet": {"members": [{"device": "laptop-cpu", "link": "ethernet"}]},
    "server": {"rounds": 50},
    "evaluate": {"models": ["global"]},
    "published": PAPER,
    "sweep": {"method": ["fedavg", "fedprox", {"name": "flexchill", "temperature": 0.5}], "seed": [0, 1]},
    "scales": {"small": {"server.rounds": 3}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("published") / "runs"
    return edgefl.run(SCENARIO, overrides={"scale": "small"}, engine="loop", out=out).folder


@pytest.fixture(scope="module")
def told(folder):
    return summaries([folder])


def with_accuracies(told, accuracies):
    """The runs as if their methods had these accuracies, of the first seed and the second."""

    def changed(run):
        value = accuracies[run.method][run.seed]
        return replace(run, accuracy={"global": replace(run.accuracy["global"], value=value)})

    return beside_runs(seeds_together(list(map(changed, told))))[0]


@pytest.mark.parametrize(
    ("accuracies", "agree", "open_", "turned"),
    [
        (
            {"fedavg": (0.2, 0.21), "fedprox": (0.1, 0.11), "flexchill": (0.3, 0.31)},
            2, 0, ["fedprox > FedAvg"],
        ),
        ({"fedavg": (0.1, 0.11), "fedprox": (0.0, 0.31), "flexchill": (0.4, 0.41)}, 1, 2, []),
    ],
)  # fmt: skip
def test_the_order_agrees_does_not_or_is_open(told, accuracies, agree, open_, turned):
    """Of the three pairs that are here; a method that was not run is in none."""
    (order,) = with_accuracies(told, accuracies).orders
    assert (order.pairs, order.agree, order.open, order.turned) == (3, agree, open_, turned)
    assert f"order agrees in {agree} of 3 pairs" in order_words(order)


def test_figures_stand_beside_ours(told, folder, capsys):
    """Selected by method, by a component with parameters, and as a share of another run's figure."""
    _, out, _ = run_command(capsys, "compare", folder, "--json")
    found = json.loads(out)
    (paper,) = found["published"]
    rows = {(one["run"], one["figure"]): one for one in paper["figures"]}
    means = {one["name"]: one["figures"] for one in found["averages"]}
    for run, name in (("FedAvg", "fedavg"), ("flexchill temperature 0.5",) * 2):
        one, ours = rows[run, "accuracy"], means[name]["accuracy.global.value"]
        assert (one["here"], one["deviation"]) == (ours["mean"], ours["mean"] - one["published"])
        assert one["interval_95"] == ours["interval_95"]
    assert rows["FedAvg", "virtual_s"]["here"] == means["fedavg"]["virtual_s"]["mean"]
    assert (rows["moon", "accuracy"]["group"], rows["moon", "accuracy"]["here"]) == (None, None)
    key = "exchanges.train.laptop-cpu.compute_s"
    ratio = rows["fedprox over fedavg", key]
    assert ratio["here"] == means["fedprox"][key]["mean"] / means["fedavg"][key]["mean"] > 1
    assert {run.scale for run in told} == {"small"}


def test_every_format_has_them(folder, capsys):
    """Tables as texts, in Markdown and LaTeX; CSV in columns; not beside chosen rows."""
    for form in ("table", "markdown", "latex"):
        _, out, _ = run_command(capsys, "compare", folder, "--format", form)
        for text in ("A paper, Table 1", "deviation", "points", "not run here", "order agrees", "Of larger"):
            assert text in out, (form, text)
        assert "scale: small" in out
    _, out, _ = run_command(capsys, "compare", folder, "--format", "csv")
    rows = {row["name"]: row for row in csv.DictReader(out.splitlines())}
    assert {name: row["published.accuracy"] for name, row in rows.items()} == {
        "fedavg": "0.4", "fedprox": "0.5", "flexchill temperature 0.5": "0.6",
    }  # fmt: skip
    _, out, _ = run_command(capsys, "compare", folder, "--rows", "virtual_s")
    assert "A paper" not in out


def test_a_profile_has_costs_alone(capsys, tmp_path):
    """The same figures of an exchange as a run's record, where every client has the same samples."""
    scenario = tmp_path / "s.yaml"
    task = {"dataset": "digits", "clients": 4, "samples": 100}
    scenario.write_text(json.dumps({**SCENARIO, "task": task}))
    status, out, _ = run_command(capsys, "profile", scenario, "--json")
    (profiled,) = json.loads(out)["published"]
    edgefl.run(scenario, engine="null", out=tmp_path / "runs")
    _, out, _ = run_command(capsys, "compare", tmp_path / "runs", "--json")
    (compared,) = json.loads(out)["published"]
    (mine, *_), (its,) = (
        [one for one in each["figures"] if one["unit"] == "x"] for each in (profiled, compared)
    )
    assert status == 0
    assert mine["here"] == pytest.approx(its["here"], rel=1e-9)


@pytest.mark.parametrize(
    ("runs", "what"), [([{"method": "fedavg"}], "a published run needs a figure"), ([], "at least 1")]
)
def test_a_wrong_entry_is_refused(runs, what):
    with pytest.raises(UserError, match=what):
        edgefl.check({**SCENARIO, "published": {"paper": "a", "runs": runs}})


@pytest.mark.nightly
def test_a_target_may_be_the_best_of_a_run(folder, capsys):
    """Of several seeds the least of their bests, which each of them reaches; rounds are counted from 1."""
    _, out, _ = run_command(capsys, "compare", folder, "--target", "best-of:fedprox", "--json")
    found = json.loads(out)["runs"]
    (target,) = {one["target"]["accuracy"] for one in found}
    bests = []
    for run in edgefl.open(folder).runs:
        scores = [row["accuracy"] for row in run.table("evaluations")]
        if run.summary().method == "fedprox":
            bests.append(max(scores))
        reached = [round_ for round_, score in enumerate(scores, 1) if score >= target]
        (mine,) = [one["target"]["global"] for one in found if one["run_dir"] == str(run.folder)]
        assert (mine and mine["rounds"]) == (reached[0] if reached else None)
    assert 0 <= min(bests) - target < 1e-4
    _, out, _ = run_command(capsys, "compare", folder, "--target", "best-of:fedprox", "--all")
    assert f"rounds to {100 * target:g}%" in out
    for wrong, hint in (("best-of:fedpro", "fedprox"), ("soon", "greater than 0"), ("2", "greater than 0")):
        status, _, err = run_command(capsys, "compare", folder, "--target", wrong)
        assert (status, hint in err) == (2, True), err
