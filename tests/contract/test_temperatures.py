"""FLex&Chill's temperatures in whole runs: every engine, every base, the same costs, and clear messages."""

from typing import Any

import pytest
import torch
from builders import learned
from nightly import paired, sampled
from small import SKEWED, SMALL

import edgefl
from edgefl.core.errors import ScenarioError

pytestmark = pytest.mark.usefixtures("preloaded_processes")

SCENARIO = {
    **SMALL,
    "task": SKEWED,
    "local": {"epochs": 2, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.05, "momentum": 0.9}},
    "server": {"rounds": 3, "participants": 4},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "device": {"by": "device", "values": {"raspberry-pi-4b": 0.25, "laptop-cpu": 0.5}},
    "model": {"by": "model", "values": {"mlp": 0.5}},
    "round": {"by": "round", "start": 0.25, "end": 1.0, "shape": "cosine"},
    "work": {"by": "work", "full": 0.5},
    "sample": {"by": "sample"},
}
LOOP, VMAPPED = {"name": "loop"}, {"name": "vmapped"}


def ran(folder, temperature: Any, engine: dict[str, Any] = LOOP, **changes: Any) -> dict[str, torch.Tensor]:
    method = {"name": "flexchill", "temperature": temperature, **changes.pop("method", {})}
    (one,) = edgefl.run({**SCENARIO, "method": method, "engine": engine, **changes}, out=folder).runs
    assert one.status == "done", one.reason
    return learned(one)


def assert_identical(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[key], value) for key, value in expected.items())


@sampled(
    1,
    ("temperature", "engine"),
    paired(
        [
            {"by": "device", "values": {}, "default": 0.3},
            {"by": "model", "values": {}, "default": 0.3},
            {"by": "round", "start": 0.3, "end": 0.3, "shape": "cosine"},
            {"by": "work", "full": 0.3, "power": 0.0},
            {"by": "sample", "easy": 0.3, "hard": 0.3},
        ],
        [LOOP, VMAPPED],
    ),
    ids=lambda one: one.get("shape") or one.get("by") or one["name"],
)
def test_a_constant_temperature_is_the_number_bit_for_bit(tmp_path, temperature: Any, engine: Any):
    """A temperature that is 0.3 for every device, round, share of work or sample learns what 0.3 learns."""
    expected = ran(tmp_path / "number", 0.3, engine)
    assert_identical(ran(tmp_path / "kind", temperature, engine), expected)


@pytest.mark.nightly
def test_a_schedule_knows_the_rounds_of_the_run(tmp_path):
    """Of four rounds, a step leaves two as they are at the first temperature, and changes the third."""
    losses = {}
    step = {"by": "round", "start": 1, "end": 0.2, "shape": "step"}
    for name, temperature in {"number": 1.0, "step": step}.items():
        method = {"name": "flexchill", "temperature": temperature}
        scenario = {**SCENARIO, "method": method, "engine": LOOP, "server": {"rounds": 4}}
        (one,) = edgefl.run(scenario, out=tmp_path / name).runs
        losses[name] = [row["loss"] for row in one.table("merges")]
    pairs = zip(losses["number"], losses["step"], strict=True)
    assert [one == other for one, other in pairs] == [True, True, False, False]


@sampled(1, "variant", ["device", "round", "work"])
def test_the_temperature_of_a_job_costs_nothing(tmp_path, variant: str):
    """Jobs at temperatures of their own have the bytes, operations and times of jobs at one number."""

    def jobs(name: str, temperature: Any):
        method = {"name": "flexchill", "temperature": temperature}
        scenario = {**SCENARIO, "method": method, "engine": {"name": "null"}}
        (one,) = edgefl.run(scenario, out=tmp_path / name).runs
        return [{key: row[key] for key in row if not key.startswith("host")} for row in one.table("jobs")]

    assert jobs(variant, VARIANTS[variant]) == jobs("number", 0.3)


@pytest.mark.parametrize(
    ("temperature", "key", "message"),
    [
        (0, "", "method.temperature should be greater than 0"),
        (
            {"by": "device", "values": {"raspberry-pi-6": 1}},
            ".values.raspberry-pi-6",
            "unknown device 'raspberry-pi-6'",
        ),
        ({"by": "work", "full": 0.1, "least": 0.2}, "", "'least' must not be above 'full'"),
    ],
)
def test_a_wrong_temperature_is_named(tmp_path, temperature: Any, key: str, message: str):
    with pytest.raises(ScenarioError, match=f"(?s){message}") as caught:
        ran(tmp_path, temperature)
    assert caught.value.where.endswith(f"key 'method.temperature{key}'")


def test_a_schedule_is_refused_where_nobody_knows_the_rounds(tmp_path):
    """Before the run, also by the null engine, which trains nothing."""
    scenario = {**SCENARIO, "method": {"name": "flexchill", "temperature": VARIANTS["round"]}}
    with pytest.raises(ScenarioError, match="needs to know the number of rounds"):
        edgefl.run({**scenario, "server": {"until": {"time": "1 h"}}}, engine="null", out=tmp_path)
