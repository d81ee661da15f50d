"""Profiles: what is shown of an exchange on every device."""

import math
import re

import pytest
from commands import shown

from edgefl.compute.kernels import PRODUCTS
from edgefl.compute.measured import MeasuredExchange
from edgefl.core import catalogue
from edgefl.core.errors import RunError, UserError
from edgefl.core.host import machine_title
from edgefl.core.price import ENERGIES
from edgefl.core.units import show_bytes
from edgefl.planning.costs import MARGIN, of
from edgefl.planning.fleets import dtype_of
from edgefl.planning.profile import PROCESS_BYTES, ProfileOptions, profile
from edgefl.runs.group import drafts
from edgefl.show.profile import profile as tables

SCENARIO = {
    "task": {"dataset": "cifar100", "clients": 100},
    "model": "cnn2",
    "method": "fedavg",
    "local": {"batch_size": 32},
    "fleet": "home-lab",
}


def drafted(**changes):
    """A scenario."""
    return drafts({**SCENARIO, **changes})[0]


def train(options=ProfileOptions(), **changes):  # noqa: B008 - frozen
    """The exchange that trains, and what it costs on each device."""
    found = profile(drafted(**changes), options)
    (work,) = (one for one in found.exchanges if one["exchange"] == "train")
    return work, of(found.prices, work)


def printed(found, width=100):
    """The lines of its tables."""
    return shown(tables(found), width).splitlines()


@pytest.fixture
def own_devices(tmp_path, monkeypatch):
    """A function that writes devices of one's own."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    (tmp_path / "devices").mkdir()
    return lambda name, text: (tmp_path / "devices" / f"{name}.yaml").write_text(text, encoding="utf-8")


@pytest.fixture
def measured(monkeypatch):
    """A stand-in for the measuring process: 8 steps in half a second took 4 MB; what was asked of it."""
    asked = []

    def stand_in(build, limit):
        asked.append((*build.args[1:], limit))
        return MeasuredExchange(steps=8, cpu_s=0.5, added_bytes=4 * 10**6)

    monkeypatch.setattr("edgefl.planning.profile.measure", stand_in)
    return asked


def test_parts_and_passes_hold_the_same_work():
    """Operations by pass and by part of the model have one sum, as have times by phase and by bound."""
    work, rows = train()
    assert sum(work["flops"].values()) == sum(work["flops_by_part"].values())
    assert set(work["flops_by_part"]) == {"body", "head"}
    assert work["flops_by_part"]["head"] == 3 * 2 * 500 * 256 * 100
    for row in rows:
        bounds = (row[f"{what}_bound_s"] for what in ("compute", "memory", "launch"))
        assert math.isclose(sum(bounds), row["work_s"])
        assert math.isclose(sum(row[name] for name in ENERGIES), row["joules"])


@pytest.mark.nightly
def test_every_device_is_priced_or_says_why_not():
    """``all`` lists every device; each has a time or the reason that it has none. A link is a choice."""
    _, rows = train(ProfileOptions(devices=("all",), link="3g"))
    assert [row["device"] for row in rows] == list(catalogue.entries("devices"))
    assert all((row["work_s"] is None) == bool(row["unknown"]) for row in rows)
    assert sum(row["work_s"] is not None for row in rows) >= 5
    assert len({row["up_s"] for row in rows if not row["unknown"]}) == 1
    assert {row["link"] for row in rows} == {"3g"}
    _, (row,) = train(ProfileOptions(devices=("raspberry-pi-4b",), dtype="fp16"))
    assert "has no figure for fp16" in row["unknown"]


def test_every_kind_of_member_has_a_row():
    """Members that differ in link or number type alone stand apart, and the JSON says what is assumed."""
    members = [
        {"device": "raspberry-pi-4b", "link": "ethernet"},
        {"device": "raspberry-pi-4b", "link": "3g"},
        {"device": "jetson-tx2", "link": "ethernet"},
        {"device": "jetson-tx2", "link": "ethernet", "dtype": "FP16"},
    ]
    found = profile(drafted(fleet={"members": members}))
    rows = [(row["device"], row["link"], row["dtype"]) for row in found.prices]
    assert rows == [(one["device"], one["link"], one.get("dtype", "fp32").lower()) for one in members]
    assert any(note.startswith("jetson-tx2: assumed") for note in found.assumptions)
    assert any(note.startswith("link 3g: assumed") for note in found.assumptions)
    assert [dtype_of(text) for text in ("INT8", "fp32", "Bf16")] == ["int8", "fp32", "bf16"]
    with pytest.raises(UserError, match="did you mean 'fp16'"):
        dtype_of("fp17")


def test_another_count_of_the_forward_pass_fails(monkeypatch):
    """Fvcore and the tracer agree on every operator, or the profile names the one that they differ in."""
    draft = drafted()
    (found,) = profile(draft, ProfileOptions(layers=True)).layers
    assert found.traced_flops == found.fvcore_flops > 0
    monkeypatch.setitem(PRODUCTS, "addmm", lambda *_: [])
    with pytest.raises(RunError, match=r"operator product as traced, but [\d,]+ by fvcore"):
        profile(draft, ProfileOptions(layers=True))


def test_the_host_does_the_work_beside_the_model(measured):
    """The ratios are the model's figures over what the host says; both are printed."""
    options = ProfileOptions(devices=("raspberry-pi-4b", "arduino-nano-33-ble"), measure=("memory", "time"))
    work, (row, _) = train(options)
    assert measured == [("train", 0, 500, 10)]
    check, peak = work["measured"]["memory"], sum(work["peak"].values())
    assert (check["predicted_bytes"], check["measured_bytes"]) == (peak, 4 * 10**6)
    assert check["error"] == peak / (4 * 10**6) - 1
    assert check["limits"] == {"raspberry-pi-4b": "both fit", "arduino-nano-33-ble": "neither fits"}
    times = work["measured"]["time"]
    assert times["measured_s"] == 0.5 / 8
    assert times["predicted_s"]["raspberry-pi-4b"] == pytest.approx(row["work_s"] / 16)
    assert times["errors"]["raspberry-pi-4b"] == pytest.approx(row["work_s"] / 16 / (0.5 / 8) - 1)
    out = " ".join(" ".join(printed(profile(drafted(), options), 80)).split())
    assert f"predicted {show_bytes(peak)}" in out
    assert "measured here 4 MB" in out
    assert "both fit: raspberry-pi-4b; neither fits: arduino-nano-33-ble" in out


@pytest.mark.usefixtures("measured")
def test_a_step_is_held_against_this_machines_device(own_devices, caplog):
    """The one that was calibrated here, by its title, else a laptop with a note; memory is not asked for."""
    for name in ("laptop-cpu", "mine"):
        found = profile(drafted(), ProfileOptions(measure=("time",)))
        (work,) = found.exchanges
        assert ("memory" in work["measured"], list(work["measured"]["time"]["predicted_s"])) == (
            False,
            [name],
        )
        own_devices("mine", f"title: {machine_title()}\nlike: laptop-cpu\n")
    (told,) = [record.getMessage() for record in caplog.records]
    assert "so laptop-cpu stands for it: edgefl calibrate NAME" in told
    out = " ".join(" ".join(printed(found, 200)).split())
    words = r"time │ predicted [\d.]+ [mu]s \(-\d+%\) for mine, measured here 62.5 ms a step, on one"
    assert re.search(words, out)


@pytest.mark.nightly
def test_a_large_network_needs_what_the_trace_says():
    """ResNet-18 takes the traced peak, a process's memory and at most the margin for libraries."""
    local = {"batch_size": 32, "steps": 1}
    work, _ = train(ProfileOptions(measure=("memory",)), model="resnet18", local=local)
    check = work["measured"]["memory"]
    assert 0.9 * check["predicted_bytes"] < check["measured_bytes"]
    assert check["measured_bytes"] < (1 + MARGIN) * check["predicted_bytes"] + PROCESS_BYTES
