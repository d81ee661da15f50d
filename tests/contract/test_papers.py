"""The papers' tables as scenarios: their figures are the printed ones, they are planned, and they run."""

import csv
import re
from pathlib import Path

import pytest
import yaml
from nightly import mostly, sampled

import edgefl
from edgefl.analysis.published import Ours
from edgefl.analysis.settings import dotted
from edgefl.analysis.summary import summaries
from edgefl.core.drafts import load
from edgefl.core.scenario import told

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "scenarios" / "papers").glob("*.yaml"))
PRINTED = list(csv.DictReader((ROOT / "tests" / "published.csv").read_text(encoding="utf-8").splitlines()))
# Seconds over FedAvg's, and savings that the text states, are not in a table.
DERIVED = {"fedcka-table4", "spherefed-fig5"}
# On digits, in place of what is not here: a network for 8x8 pixels each.
SMALL = {
    "task.dataset": "digits", "task.augment": "none", "server.rounds": 2,
    "local.epochs": None, "local.steps": 1, "local.batch_size": 8, "evaluate.every": 2, "sweep": None,
    "model": {"name": "mlp", "hidden": [16]},
}  # fmt: skip


def settings(file: Path) -> dict:
    return yaml.safe_load(file.read_text("utf-8"))


@pytest.mark.parametrize("file", FILES, ids=lambda one: one.stem)
def test_published_figures_are_the_printed_ones(file):
    """As often as the table prints them, each in its table of its paper."""
    published = settings(file)["published"]
    if file.stem in DERIVED:
        return
    paper, table = re.match(r"(.*?), (Tables? \d+|appendix G\.3)", published["paper"]).groups()
    number = re.sub(r"\D+(\d+)$", r"\1", table)
    printed = [
        row["value"]
        for row in PRINTED
        if row["paper"] == paper and number in re.findall(r"G\.3|\d+", row["table"].replace("G.3", "3"))
    ]
    for run in published["runs"]:
        for value in told(run)[1].values():
            shown = {f"{100 * value:.2f}", f"{100 * value:.1f}", f"{value:.4f}", f"{value:.3f}", f"{value:g}"}
            assert shown & set(printed), f"{value} is not in {published['paper']}"


@sampled(8, "file", FILES, ids=lambda one: one.stem)
def test_every_published_figure_has_a_run(file):
    """Among the sweep's runs, one or several have the settings of each; at a scale there are as many."""
    runs = load(file)
    ours = [
        Ours(draft.scenario.name, None, dotted({**draft.scenario.resolved(), "seed": 0}), {})
        for draft in runs
    ]
    for published in settings(file)["published"]["runs"]:
        own, _ = told(published)
        other = own.pop("against", {})
        against = {**own, **other}
        assert any(one.has(own) for one in ours), own
        assert any(one.has(against) for one in ours), against
    for scale in settings(file).get("scales", {}):
        assert len(load(file, [f"scale={scale}"])) == len(runs)


@sampled(4, "file", mostly(FILES, FILES[::5]), ids=lambda one: one.stem)
def test_it_runs_two_rounds(file, tmp_path):
    found = settings(file)
    partition = found["task"].get("partition", "iid")
    clients = min(found["task"]["clients"], 4)
    small = {**SMALL, "task.clients": clients, "server.participants": clients}
    if "public" in found["task"]:
        small["task.public.samples"] = 20
    if partition == "by_user":
        small["task.partition"] = "iid"
    if isinstance(partition, dict) and partition["name"] == "shards":
        small["task.partition"] = {"name": "shards", "shards_per_client": 2}
    folder = edgefl.run(str(file), overrides=small, engine="loop", out=tmp_path / "run").folder
    (found,) = summaries([folder])
    assert (found.status, found.rounds) == ("done", 2)
    assert all(0 <= one.value <= 1 for one in found.accuracy.values())
