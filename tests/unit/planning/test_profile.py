"""Profiles: what is shown of an exchange on every device."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
from rich.console import Console

from edgefl.core import catalogue
from edgefl.core.errors import UserError
from edgefl.core.measurement import MeasuredExchange
from edgefl.planning.fleets import dtype_of
from edgefl.planning.profile import ProfileOptions, profile
from edgefl.report import costs
from edgefl.runs import drafts

SCENARIO = {
    "task": {"dataset": "cifar100", "clients": 100},
    "model": "cnn2",
    "method": "fedavg",
    "local": {"batch_size": 32},
    "fleet": "home-lab",
}


def train(options=ProfileOptions(), **changes):  # noqa: B008 - frozen
    """The profile of the exchange that trains."""
    (draft,) = drafts({**SCENARIO, **changes})
    found = profile(draft, options)
    return next(one for one in found.exchanges if one.exchange == "train")


def test_parts_and_passes_hold_the_same_work():
    """Operations by pass and by part of the model have one sum, as have times by phase and by bound."""
    found = train()
    assert sum(found.flops.values()) == sum(found.flops_by_part.values())
    assert set(found.flops_by_part) == {"body", "head"}
    for row in found.devices:
        assert math.isclose(sum(row.price.bounds), row.price.compute_s)
        if row.price.joules is not None:
            assert math.isclose(sum(row.price.energy), row.price.joules)


def test_the_head_is_its_closed_form():
    """500 samples: forward, input's and weight's gradient of 256 x 100 each, two a multiply-add."""
    assert train().flops_by_part["head"] == 3 * 2 * 500 * 256 * 100


def test_every_device_is_priced_or_says_why_not():
    """``all`` lists every device; each has a time or the reason that it has none."""
    rows = train(ProfileOptions(devices=("all",))).devices
    assert [row.device for row in rows] == list(catalogue.entries("devices"))
    assert all((row.price is None) == bool(row.unknown) for row in rows)
    assert sum(row.price is not None for row in rows) >= 5


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
    rows = [(row.device, row.link, row.dtype) for row in found.exchanges[0].devices]
    assert rows == [(one["device"], one["link"], one.get("dtype", "fp32")) for one in members]
    assert any(note.startswith("jetson-tx2: assumed") for note in found.assumptions)
    assert any(note.startswith("link 3g: assumed") for note in found.assumptions)


def test_a_link_is_a_choice():
    """The same bytes take the time of the class asked for, on each device."""
    rows = train(ProfileOptions(devices=("all",), link="3g")).devices
    assert len({row.price.up_s for row in rows if row.price}) == 1
    assert {row.link for row in rows} != {row.link for row in train().devices}


def test_a_number_type_that_a_device_lacks_is_said():
    """A Raspberry Pi's file has no fp16 figure."""
    (row,) = train(ProfileOptions(devices=("raspberry-pi-4b",), dtype="fp16")).devices
    assert "has no figure for fp16" in row.unknown


def test_a_time_without_launch_overhead_is_marked(capsys):
    """A phone's launch overhead is unknown: its time is a lower bound, not to be ranked among the others."""
    found = profile(drafts(SCENARIO)[0], ProfileOptions(devices=("phone-high", "raspberry-pi-4b")))
    rows = {row.device: row.launch for row in found.exchanges[0].devices}
    assert rows == {"phone-high": "none", "raspberry-pi-4b": "assumed"}
    Console(width=100).print(costs.profile(found))
    out = capsys.readouterr().out
    times = [line for line in out.splitlines() if "yes" in line]
    assert [">" in line for line in times if "phone-high" in line] == [True]
    assert [">" in line for line in times if "raspberry-pi-4b" in line] == [False]
    assert "> launch overhead unknown; time is a lower bound" in out


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "0.0%"), (2.5e-5, "0.0025%"), (0.00095, "0.1%"), (0.8667, "86.7%")]
)
def test_a_share_does_not_round_to_nothing(share, shown):
    """What is not nothing is not shown as nothing."""
    assert costs._share(share) == shown  # noqa: SLF001


def test_layers_agree_with_fvcore():
    """Each layer's products are counted alike, and together they are the model's."""
    (draft,) = drafts({**SCENARIO, "model": "mobilenet-v2"})
    (found,) = profile(draft, ProfileOptions(layers=True)).layers
    assert all(row.flops == row.fvcore_flops for row in found.modules)
    assert sum(row.flops for row in found.modules) == found.traced_flops == found.fvcore_flops


def test_the_host_does_the_work_beside_the_model(monkeypatch):
    """A stand-in for the measuring process: the ratios are the model's figures over what it says."""
    asked = []

    def stand_in(_, exchange, *, model, samples, limit):
        asked.append((exchange, model, samples, limit))
        figures = dict.fromkeys((one.name for one in fields(MeasuredExchange)), 0)
        return MeasuredExchange(**{**figures, "steps": 8, "cpu_s": 0.5, "added_bytes": 10**6})

    monkeypatch.setattr("edgefl.planning.profile.measured_exchange", stand_in)
    found = train(ProfileOptions(devices=("raspberry-pi-4b",), measure=True))
    assert asked == [("train", 0, 500, 10)]
    ratios = found.measured.modelled_over_measured
    assert ratios.memory == sum(found.peak.values()) / 10**6
    (row,) = found.devices
    assert math.isclose(ratios.time["raspberry-pi-4b"], row.price.compute_s * 8 / 16 / 0.5)


def test_a_large_network_needs_what_the_trace_says():
    """ResNet-18's activations outweigh what a process needs beside them: the real work takes as much."""
    found = train(ProfileOptions(measure=True), model="resnet18", local={"batch_size": 32, "steps": 1})
    assert 0.6 < found.measured.modelled_over_measured.memory < 1.2


def test_an_unknown_number_type_is_refused():
    """With the nearest one."""
    with pytest.raises(UserError, match="did you mean 'fp16'"):
        dtype_of("fp17")
