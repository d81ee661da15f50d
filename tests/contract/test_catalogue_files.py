"""Every device, network class, profile and scenario file: it loads, names its sources, is shown and runs."""

import re

import pytest
from alone import priced
from commands import run_command
from nightly import mostly, sampled
from plans import JOB, cost

from edgefl.core import catalogue
from edgefl.core.cost import FORWARD, GRAD_WEIGHT, Kernel, Work
from edgefl.core.errors import UserError
from edgefl.core.sourced import sourced
from edgefl.planning.fleets import device, link, links_of, profile
from edgefl.planning.repricing import Pricer
from edgefl.runs.group import drafts, run

DEVICES = tuple(catalogue.entries("devices"))
PROFILES = tuple(catalogue.entries("profiles"))
SCENARIOS = tuple(catalogue.entries("scenarios"))


def test_a_device_that_lacks_a_number_says_which():
    """A number that timing needs is unknown: no price, but its name."""
    number, kind = "launch_overhead", type(device("pynq-z2").launch_overhead)
    unknown_ = kind(status="unknown", source="a matter of the design")
    with pytest.raises(UserError, match=f"no value for {number}") as caught:
        Pricer("board", device("pynq-z2").model_copy(update={number: unknown_}))
    assert "--like board" in caught.value.hint


def test_every_device_and_link_can_be_shown(capsys):
    """``edgefl show`` prints each file's title, and a row for every number with its status."""
    shown = [("devices", name) for name in (DEVICES[0], MCUS[0])]
    for kind, name in [*shown, *(("links", name) for name in catalogue.entries("links"))]:
        status, printed, _ = run_command(capsys, "show", kind.removesuffix("s"), name)
        assert status == 0
        record = device(name) if kind == "devices" else link(name)
        assert record.title in " ".join(printed.split())
        for number, known in sourced(record):
            assert re.search(rf"^{re.escape(number)} .*\b{known.status}\b", printed, re.MULTILINE), number


def test_a_kind_of_device_that_there_is_not_is_named(tmp_path, monkeypatch):
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "mine.yaml").write_text("title: mine\nkind: measured\n", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    with pytest.raises(UserError, match="unknown board 'measured'") as caught:
        device("mine")
    assert caught.value.where.endswith("mine.yaml:2, key 'kind'")
    assert caught.value.hint == "known: roofline, systolic"


def _step(**parts):
    """A step that trains the weights of some parts: body a convolution, head a linear layer."""
    ops = {"body": ("convolution", 16), "head": ("mm", 10)}
    return Work.of(
        Kernel(ops[part][0], "dense", role, part, 8, ops[part][1], 64, 1, 10**4, 10**4)
        for part, roles in parts.items()
        for role in roles
    )


def test_the_edge_tpu_refuses_more_than_the_last_layer():
    """Training the body is refused with the reason and its source; training the head alone is not."""
    coral = device("coral-edge-tpu")
    refused = coral.refusal(_step(body=[FORWARD, GRAD_WEIGHT], head=[FORWARD, GRAD_WEIGHT]), "int8")
    assert "only the last layer" in refused
    assert "coral.ai" in refused
    assert coral.refusal(_step(body=[FORWARD], head=[FORWARD, GRAD_WEIGHT]), "int8") == ""


MCUS = ("arduino-nano-33-ble", "stm32f746")


@pytest.mark.parametrize("name", MCUS)
def test_a_microcontroller_infers_and_trains_the_last_layer(name):
    """In fp32 and int8, with time and energy; deeper training in fp32 alone; every such number is assumed."""
    board = device(name)
    assert board.dtypes() == ("fp32", "int8")
    head, whole = _step(body=[FORWARD], head=[FORWARD, GRAD_WEIGHT]), _step(body=[FORWARD, GRAD_WEIGHT])
    for dtype in board.dtypes():
        assert board.refusal(head, dtype) == ""
        price = priced(Pricer(name, board, dtype), cost(head), link("ethernet"))
        assert price.compute_s > 0
        assert price.energy.joules > 0
        assert board.clock(name, dtype, inference=True).time(_step(body=[FORWARD])).seconds > 0
    assert board.refusal(whole, "fp32") == ""
    assert "last layer only" in board.refusal(whole, "int8")
    used = ("peak.", "efficiency", "launch_overhead", "power.")
    assert {number.status for key, number in sourced(board) if key.startswith(used)} == {"assumed"}


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_can_be_priced(name):
    """Each member's device exists and prices a job behind its link; energy is known where its numbers are."""
    fleet = profile(name)
    links = links_of(fleet, name)
    for member in fleet.members:
        board, behind = device(member.device), links[member.link]
        price = priced(Pricer(member.device, board, member.dtype), JOB, behind)
        assert price.seconds > 0
        powers = (board.power.idle.value, board.power.active.value, behind.radio.value)
        assert (price.energy.joules is None) == (None in powers)


# A million clients take ten seconds.
BY_DAY = [one for one in SCENARIOS if "/" not in one and one != "fleet-million"]


@sampled(6, "name", mostly(SCENARIOS, BY_DAY))
def test_a_scenario_runs_on_the_clock_alone(name, tmp_path, monkeypatch):
    """Each run loads, and the first dry-runs without any data file; test_command_line.py plans each kind."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing here"))
    first, *_ = drafts(name, ["server.rounds=1"])
    (one,) = run(first.document.data, engine="null", offline=True, out=tmp_path / "run").runs
    assert (one.status, one.reason) == ("done", "")
    events = one.table("events")
    assert {"dispatched", "received", "worked", "arrived", "merged", "evaluated"} <= {
        row["kind"] for row in events
    }
    worked = [row for row in events if row["kind"] == "worked"]
    assert any(row["flops"] for row in worked)
    assert all(row["seconds"] > 0 for row in worked if row["flops"])
