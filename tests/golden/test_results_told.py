"""Six groups of runs as the documents that commands print: what must not move unless somebody means it to.

The clock runs without training; accuracies are planted, so that targets, seeds and verdicts have something to
tell on any machine. Numbers stand at nine significant digits; names of folders, hashes and times of this
machine are left out.
"""

import csv
import hashlib
import io
import json
import re

import pytest
from mixed import MIXED
from paged import paged

import edgefl
from edgefl.cli.saved import explain
from edgefl.runs.run import RunInProgress
from edgefl.world.needs import Feedback

SMALL = {"task.clients": 10, "server.participants": 5, "local.epochs": 1}
# Name -> (scenario, overrides, seeds).
CASES = {
    "quickstart": ("quickstart", {**SMALL, "server.rounds": 3, "evaluate.every": 1}, None),
    "stragglers": ("stragglers", {**SMALL, "server.rounds": 3, "evaluate.every": 1}, None),
    "async": ("async", {**SMALL, "server.until.bytes": "1 MB"}, None),
    "seeds": (
        "deadline",
        {
            **SMALL, "server.rounds": 2,
            "sweep": {"runs": [
                {"name": "wait", "server.policy": "sync"},
                {"name": "drop", "server.policy": {"name": "deadline", "quantile": 0.8}},
            ]},
        },
        3,
    ),
    "lossy": (MIXED, {"server.policy": {"name": "deadline", "quantile": 0.5}, "server.rounds": 3}, None),
    "carbon": ("carbon", {**SMALL, "server.rounds": 2, "evaluate.every": 1}, None),
}  # fmt: skip
# What is this machine's, or no figure.
LEFT_OUT = {
    "run_dir", "runs_dir", "run_id", "event_hash", "host_s", "edgefl", "provenance",
    "against_runs", "measures_host_s", "group_dir", "colour", "dash",
}  # fmt: skip
HOST = "host time"
# Longer lists stand as their length and a hash.
MOST = 12


def _evaluate(self, need):
    """Accuracies that rise with versions, at another pace for each name, seed and model."""
    scenario, totals = self.plan.scenario, need.totals
    pace = 1 + len(scenario.name) % 3 + scenario.seed % 7 / 10
    for place, model in enumerate(scenario.evaluate.models):
        accuracy = 1 - 0.9 / (1 + need.version / pace) - place / 10
        scores = {"model": model, "accuracy": accuracy, "loss": 2 - 2 * accuracy, "host_s": 0.0}
        when = {"version": need.version, "round": need.round, "t_s": need.t_s}
        moved = {"down_bytes": totals.down_bytes, "up_bytes": totals.up_bytes}
        clients = {"spread": 0.05, "clients": len(self.plan.clients), "untrained": 1}
        own = clients if model == "personal" else {}
        self.store.add("evaluations", {**when, **moved, **totals.energy._asdict(), **scores, **own})
    return Feedback()


def _told(value):
    """Plain data without what is left out, floats at nine digits."""
    if isinstance(value, dict):
        return {key: _told(inner) for key, inner in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        return [_told(one) for one in value if not (isinstance(one, dict) and one.get("label") == HOST)]
    if isinstance(value, str):
        value = "".join(line for line in value.splitlines(keepends=True) if not line.startswith(HOST))
        return re.sub(r"(?<![\w/])/[\w./-]*/(?=[\w.-]+)", "", value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _digits(text):
    """A number of a CSV file at nine digits; other texts as they are."""
    return f"{float(text):.9g}" if re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", text) else text


def _lines(value, path=""):
    """A line for each number and word, by its place; short lists stand in one."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _lines(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
        for place, inner in enumerate(value):
            yield from _lines(inner, f"{path}[{place}]")
    else:
        text = json.dumps(value, ensure_ascii=False)
        long = isinstance(value, list) and len(value) > MOST
        yield f"{path} = " + (
            f"{len(value)}: {hashlib.sha256(text.encode()).hexdigest()[:16]}" if long else text
        )


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """A case's name, scenario, overrides, seeds and its folder of runs."""
    name = request.param
    scenario, overrides, seeds = CASES[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunInProgress, "_evaluate", _evaluate)
        out = tmp_path_factory.mktemp("documents") / name
        result = edgefl.run(
            scenario, overrides=overrides, seeds=seeds, engine="null", offline=True, out=out, progress=False
        )
    assert not result.failed
    return name, scenario, overrides, seeds, out


def _golden(golden, case, what, value):
    golden(f"results/{case[0]}-{what}.txt", "".join(f"{line}\n" for line in _lines(_told(value))))


def test_compare(case, golden):
    """`edgefl compare --json --target 0.5`, and what it prints."""
    answer = edgefl.compare([case[4]], target=0.5)
    _golden(golden, case, "compare", json.loads(json.dumps(answer.document)))
    every = edgefl.compare([case[4]], target=0.5, all=True)
    golden(f"results/{case[0]}-shown.txt", _told(answer.text + "\n" + every.text) + "\n")


def test_csv(case, golden):
    """`edgefl compare --format csv`."""
    text = edgefl.compare([case[4]], target=0.5, format="csv").text
    (first, *_), heads = csv.DictReader(io.StringIO(text)), text.partition("\n")[0].strip().split(",")
    golden(
        f"results/{case[0]}-csv.txt",
        "".join(
            f"{head} {_digits(first[head])}\n"
            for head in heads
            if re.sub("_(sd|low95|high95)$", "", head) not in LEFT_OUT
        ),
    )


def test_page(case, golden):
    """What the plots of `edgefl report` draw."""
    _golden(golden, case, "page", paged(case[4], target=0.5).plots)


def test_explain(case, golden):
    """`edgefl explain --json`."""
    _golden(golden, case, "explain", json.loads(json.dumps(explain([case[4]]).document)))


def test_check(case, golden):
    """`edgefl check --json`, and what it prints."""
    answer = edgefl.check(case[1], overrides=case[2], seeds=case[3])
    _golden(golden, case, "check", json.loads(json.dumps(answer.document)))
    golden(f"results/{case[0]}-checked.txt", answer.text)
