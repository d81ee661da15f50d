"""Profiles: what is shown of an exchange on every device."""

from __future__ import annotations

import math
import re
from dataclasses import fields

import pytest
from rich.console import Console
from test_batch_fit import BOARD

from edgefl.compute.kernels import PRODUCTS
from edgefl.compute.measured import MeasuredExchange
from edgefl.core import catalogue
from edgefl.core.errors import RunError, UserError
from edgefl.core.host import machine_title
from edgefl.core.price import Energy
from edgefl.core.units import show_bytes, show_seconds
from edgefl.planning.costs import MARGIN, of
from edgefl.planning.fleets import dtype_of
from edgefl.planning.profile import PROCESS_BYTES, ProfileOptions, memory_check, profile
from edgefl.runs import drafts
from edgefl.show.profile import profile as tables

SCENARIO = {
    "task": {"dataset": "cifar100", "clients": 100},
    "model": "cnn2",
    "method": "fedavg",
    "local": {"batch_size": 32},
    "fleet": "home-lab",
}


def train(options=ProfileOptions(), **changes):  # noqa: B008 - frozen
    """The exchange that trains, and what it costs on each device."""
    (draft,) = drafts({**SCENARIO, **changes})
    found = profile(draft, options)
    (work,) = (one for one in found.exchanges if one["exchange"] == "train")
    return work, of(found.prices, work)


def test_parts_and_passes_hold_the_same_work():
    """Operations by pass and by part of the model have one sum, as have times by phase and by bound."""
    work, rows = train()
    assert sum(work["flops"].values()) == sum(work["flops_by_part"].values())
    assert set(work["flops_by_part"]) == {"body", "head"}
    for row in rows:
        bounds = (row[f"{what}_bound_s"] for what in ("compute", "memory", "launch"))
        assert math.isclose(sum(bounds), row["work_s"])
        if row["joules"] is not None:
            assert math.isclose(sum(row[name] for name in Energy._fields), row["joules"])


def test_the_head_is_its_closed_form():
    """500 samples: forward, input's and weight's gradient of 256 x 100 each, two a multiply-add."""
    assert train()[0]["flops_by_part"]["head"] == 3 * 2 * 500 * 256 * 100


def test_every_device_is_priced_or_says_why_not():
    """``all`` lists every device; each has a time or the reason that it has none."""
    _, rows = train(ProfileOptions(devices=("all",)))
    assert [row["device"] for row in rows] == list(catalogue.entries("devices"))
    assert all((row["work_s"] is None) == bool(row["unknown"]) for row in rows)
    assert sum(row["work_s"] is not None for row in rows) >= 5


def test_every_kind_of_member_has_a_row():
    """Members that differ in link or number type alone stand apart, and the JSON says what is assumed."""
    members = [
        {"device": "raspberry-pi-4b", "link": "ethernet"},
        {"device": "raspberry-pi-4b", "link": "3g"},
        {"device": "jetson-tx2", "link": "ethernet"},
        {"device": "jetson-tx2", "link": "ethernet", "dtype": "fp16"},
    ]
    (draft,) = drafts({**SCENARIO, "fleet": {"members": members}})
    found = profile(draft)
    rows = [(row["device"], row["link"], row["dtype"]) for row in found.prices]
    assert rows == [(one["device"], one["link"], one.get("dtype", "fp32")) for one in members]
    assert any(note.startswith("jetson-tx2: assumed") for note in found.assumptions)
    assert any(note.startswith("link 3g: assumed") for note in found.assumptions)


def test_a_link_is_a_choice():
    """The same bytes take the time of the class asked for, on each device."""
    _, rows = train(ProfileOptions(devices=("all",), link="3g"))
    assert len({row["up_s"] for row in rows if not row["unknown"]}) == 1
    assert {row["link"] for row in rows} != {row["link"] for row in train()[1]}


def test_a_number_type_that_a_device_lacks_is_said():
    """A Raspberry Pi's file has no fp16 figure."""
    _, (row,) = train(ProfileOptions(devices=("raspberry-pi-4b",), dtype="fp16"))
    assert "has no figure for fp16" in row["unknown"]


def test_another_count_of_the_forward_pass_fails(monkeypatch):
    """Fvcore and the tracer agree on every operator, or the profile names the one that they differ in."""
    (draft,) = drafts({**SCENARIO, "model": "mobilenet-v2"})
    (found,) = profile(draft, ProfileOptions(layers=True)).layers
    assert found.traced_flops == found.fvcore_flops > 0
    monkeypatch.setitem(PRODUCTS, "addmm", lambda *_: [])
    with pytest.raises(RunError, match=r"operator product as traced, but [\d,]+ by fvcore"):
        profile(draft, ProfileOptions(layers=True))


def test_the_host_does_the_work_beside_the_model(monkeypatch):
    """A stand-in for the measuring process: the ratios are the model's figures over what it says."""
    asked = []

    def stand_in(_build, _resolved, exchange, model, samples, *, limit):
        asked.append((exchange, model, samples, limit))
        figures = dict.fromkeys((one.name for one in fields(MeasuredExchange)), 0)
        return MeasuredExchange(**{**figures, "steps": 8, "cpu_s": 0.5, "added_bytes": 10**6})

    monkeypatch.setattr("edgefl.planning.profile.measure", stand_in)
    work, (row,) = train(ProfileOptions(devices=("raspberry-pi-4b",), measure=("memory", "time")))
    assert asked == [("train", 0, 500, 10)]
    check, peak = work["measured"]["memory"], sum(work["peak"].values())
    assert (check["predicted_bytes"], check["measured_bytes"]) == (peak, 10**6)
    assert check["error"] == peak / 10**6 - 1
    assert check["limits"] == {"raspberry-pi-4b": "both fit"}
    times = work["measured"]["time"]
    assert times["measured_s"] == 0.5 / 8
    assert times["predicted_s"] == {"raspberry-pi-4b": pytest.approx(row["work_s"] / 16)}
    assert times["errors"]["raspberry-pi-4b"] == pytest.approx(row["work_s"] / 16 / (0.5 / 8) - 1)


def test_a_step_is_held_against_this_machines_device(monkeypatch, tmp_path, capsys, caplog):
    """The one that was calibrated here, by its title, else a laptop with a note; memory is not asked for."""
    figures = dict.fromkeys((one.name for one in fields(MeasuredExchange)), 0)
    host = MeasuredExchange(**{**figures, "steps": 8, "cpu_s": 0.5})
    monkeypatch.setattr("edgefl.planning.profile.measure", lambda *_, **__: host)
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    (tmp_path / "devices").mkdir()
    for name, text in (("", ""), ("mine", f"title: {machine_title()}\nlike: laptop-cpu\n")):
        if name:
            (tmp_path / "devices" / f"{name}.yaml").write_text(text, encoding="utf-8")
        found = train(ProfileOptions(measure=("time",)))[0]["measured"]
        assert ("memory" in found, list(found["time"]["predicted_s"])) == (False, [name or "laptop-cpu"])
    (told,) = [record.getMessage() for record in caplog.records]
    assert "so laptop-cpu stands for it: edgefl calibrate NAME" in told
    (draft,) = drafts(SCENARIO)
    Console(width=200).print(tables(profile(draft, ProfileOptions(measure=("time",)))))
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(
        r"time │ predicted [\d.]+ [mu]s \(-\d+%\) for mine, measured here 62.5 ms a step, on one", out
    )


@pytest.mark.parametrize(
    ("predicted", "measured", "verdict"),
    [
        (90, 100, "agree within 25%"),
        (10**5, 4 * 10**6, "3.9 MB more than predicted: a process takes that much besides its tensors"),
        (10**8, 2 * 10**8, "100 MB more than predicted: the library's own buffers"),
        (200, 100, "100 B less than predicted: the process used memory that it held already"),
    ],
)
def test_measured_memory_gets_a_verdict(predicted, measured, verdict):
    """Within a quarter the two agree; else the difference has its reason."""
    assert memory_check(predicted, measured, ())["verdict"].startswith(verdict)


@pytest.mark.parametrize(
    ("predicted", "measured", "limit"),
    [
        (90, 99, "both fit"),
        (90, 101, "the predicted fits, the measured does not"),
        (101, 90, "the measured fits, the predicted does not"),
        (101, 101, "neither fits"),
    ],
)
def test_measured_memory_is_held_against_a_devices_limit(predicted, measured, limit):
    """100 bytes of room: each of the two fits or does not."""
    memory = {"peak_bytes": predicted, "memory_share": predicted / 100}
    row = {"device": "board", "dtype": "fp32", **memory}
    assert memory_check(predicted, measured, [row])["limits"] == {"board": limit}


def test_both_memories_are_printed(monkeypatch, capsys):
    """With the verdict and the devices' limits, within 80 columns."""
    figures = dict.fromkeys((one.name for one in fields(MeasuredExchange)), 0)
    host = MeasuredExchange(**{**figures, "steps": 8, "cpu_s": 0.5, "added_bytes": 4 * 10**6})
    monkeypatch.setattr("edgefl.planning.profile.measure", lambda *_, **__: host)
    (draft,) = drafts(SCENARIO)
    found = profile(
        draft, ProfileOptions(devices=("raspberry-pi-4b", "arduino-nano-33-ble"), measure=("memory",))
    )
    Console(width=80).print(tables(found))
    out = " ".join(capsys.readouterr().out.split())
    assert f"predicted {show_bytes(sum(found.exchanges[0]['peak'].values()))}" in out
    assert "measured here 4 MB" in out
    assert "both fit: raspberry-pi-4b; neither fits: arduino-nano-33-ble" in out


@pytest.mark.nightly
def test_a_large_network_needs_what_the_trace_says():
    """ResNet-18 takes the traced peak, a process's memory and at most the margin for libraries."""
    local = {"batch_size": 32, "steps": 1}
    work, _ = train(ProfileOptions(measure=("memory",)), model="resnet18", local=local)
    check = work["measured"]["memory"]
    assert 0.9 * check["predicted_bytes"] < check["measured_bytes"]
    assert check["measured_bytes"] < (1 + MARGIN) * check["predicted_bytes"] + PROCESS_BYTES


@pytest.mark.parametrize(
    ("memory", "cell"), [(0.99, "no"), (1.0, "no margin"), (1.19, "no margin"), (1.21, "yes")]
)
def test_fitting_has_a_margin(memory, cell, tmp_path, monkeypatch, capsys):
    """A device fits, fits without the margin for libraries, or does not; a footnote has the margin."""
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    needs = sum(train()[0]["peak"].values())
    (tmp_path / "devices").mkdir()
    field = f"{{value: {round(needs * memory)} B, status: assumed, source: a test}}"
    text = BOARD.format(memory="some", memory_field=field)
    (tmp_path / "devices" / "board.yaml").write_text(text, encoding="utf-8")
    (draft,) = drafts(SCENARIO)
    found = profile(draft, ProfileOptions(devices=("board",)))
    (row,) = found.prices
    assert (row["fits"], row["fits_with_margin"]) == (cell != "no", cell == "yes")
    Console(width=100).print(tables(found))
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith("board")]
    assert any(row.split("│")[-1].strip() == cell for row in rows)
    assert ("libraries may take 20% more" in out) == (cell == "no margin")
    assert "not counted: reading from storage, and evaluation, which" in out


def test_an_unknown_number_type_is_refused():
    """With the nearest one."""
    with pytest.raises(UserError, match="did you mean 'fp16'"):
        dtype_of("fp17")


def test_a_number_type_is_named_in_any_case():
    """INT8 is int8, as an option and in a fleet."""
    assert [dtype_of(text) for text in ("INT8", "fp32", "Bf16")] == ["int8", "fp32", "bf16"]
    members = [{"device": "jetson-tx2", "link": "ethernet", "dtype": "FP16"}]
    _, (row,) = train(fleet={"members": members})
    assert row["dtype"] == "fp16"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_memory_used_is_always_shown(width, capsys):
    """However narrow the terminal: what may go is the shares of time, which the JSON has."""
    (draft,) = drafts(SCENARIO)
    Console(width=width).print(tables(profile(draft, ProfileOptions(devices=("all",)))))
    out = capsys.readouterr().out
    assert "memory" in out
    assert not any("left out" in line and "used" in line for line in out.splitlines())
    assert any("used" in line.split() for line in out.replace("┃", " ").splitlines())


def test_layers_fit_80_columns(capsys):
    """MobileNetV2's long names and a slow device's times: no line is longer, and memory is there."""
    (draft,) = drafts({**SCENARIO, "model": "mobilenet-v2"})
    found = profile(draft, ProfileOptions(devices=("raspberry-pi-zero-2w",), layers=True))
    Console(width=80).print(tables(found))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.startswith("body.features.17.conv.0.0") and "J" in line)
    assert len(row.split("│")) == 6
    whole = show_seconds(found.prices[0]["seconds"])
    assert any(line.split("│")[0].strip() == "together" and whole in line for line in lines)
