"""Every device, network class, profile and scenario file: it loads, names its sources, is shown and runs."""

from __future__ import annotations

import re
from unittest.mock import Mock

import pytest
from alone import priced
from commands import run_command
from nightly import mostly
from plans import JOB, cost

from edgefl.core import catalogue
from edgefl.core.corners import Corner, at_corner
from edgefl.core.cost import FORWARD, GRAD_WEIGHT, Kernel, Work
from edgefl.core.devices import Systolic
from edgefl.core.errors import UserError
from edgefl.core.pricer import Pricer
from edgefl.core.sourced import sourced
from edgefl.core.yamls import Document
from edgefl.planning.fleets import device, link, links_of, profile
from edgefl.planning.recorded import recorded_devices
from edgefl.runs import drafts, run

DEVICES = tuple(catalogue.entries("devices"))
PROFILES = tuple(catalogue.entries("profiles"))
SCENARIOS = tuple(catalogue.entries("scenarios"))


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_file_loads(name):
    """It has a title and at least ten numbers; test_number_sources.py holds them to their sources."""
    one = device(name)
    assert len(dict(sourced(one))) >= 10
    assert one.title


def unknown(board):
    """The names of a device's unknown numbers."""
    return [name for name, number in sourced(board) if number.value is None]


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_is_priced(name):
    """In each of its number types."""
    one = device(name)
    for dtype in one.dtypes():
        assert priced(Pricer(name, one, dtype), JOB, link("ethernet")).seconds > 0


@pytest.mark.parametrize("number", ["memory_bandwidth", "launch_overhead"])
def test_a_device_that_lacks_a_number_says_which(number):
    """A number that timing needs is unknown: no price, but its name."""
    kind = type(getattr(device("pynq-z2"), number))
    unknown_ = kind(status="unknown", source="a matter of the design")
    with pytest.raises(UserError, match=f"no value for {number}") as caught:
        Pricer("board", device("pynq-z2").model_copy(update={number: unknown_}))
    assert "--like board" in caught.value.hint


def test_a_kind_of_device_that_there_is_not_is_named(tmp_path, monkeypatch):
    """In a device's file, and in the plan of a run that knew more kinds."""
    (tmp_path / "devices").mkdir()
    (tmp_path / "devices" / "mine.yaml").write_text("title: mine\nkind: measured\n", encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    plan = Document.parse("devices:\n  mine: {kind: measured}\n", "plan.yaml")
    for read, where in (
        (lambda: device("mine"), "mine.yaml:2, key 'kind'"),
        (lambda: recorded_devices(Mock(document=lambda: plan)), "key 'devices.mine.kind'"),
    ):
        with pytest.raises(UserError, match="unknown board 'measured'") as caught:
            read()
        assert caught.value.where.endswith(where)
        assert caught.value.hint == "known: roofline, systolic"


@pytest.mark.parametrize("kind", ["devices", "links"])
def test_every_device_and_link_can_be_shown(kind, capsys):
    """``edgefl show`` prints each file's title, and a row for every number with its status."""
    for name in catalogue.entries(kind):
        status, printed, _ = run_command(capsys, "show", kind.removesuffix("s"), name)
        assert status == 0
        record = device(name) if kind == "devices" else link(name)
        assert record.title in " ".join(printed.split())
        for number, known in sourced(record):
            assert re.search(rf"^{re.escape(number)} .*\b{known.status}\b", printed, re.MULTILINE), number


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


MCUS = tuple(name for name in DEVICES if device(name).category == "mcu")


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


def test_tensor_cores_have_an_efficiency_of_their_own():
    """fp16 on tensor cores is timed with the fp16 efficiency, not with fp32's share of a larger peak."""
    card = device("titan-rtx")
    work = Work.of([Kernel("mm", "dense", FORWARD, "head", 10, 10, 10, 1, 10**12, 0)])
    seconds = {dtype: Pricer("titan-rtx", card, dtype).time(cost(work)).compute_s for dtype in card.dtypes()}
    assert seconds["fp32"] == pytest.approx(1e12 / (0.64 * 16.312e12))
    assert seconds["fp16"] == pytest.approx(1e12 / (0.21 * 130e12))


def test_the_array_of_spherefed_is_an_array():
    """32 x 64 cells at 100 MHz: near 409.6 GFLOP/s where all are busy, a 64th where one column is."""
    array = device("vc707-systolic")
    assert isinstance(array, Systolic)
    clock = Pricer("vc707-systolic", array)
    full = Kernel("mm", "dense", FORWARD, "body", 320, 640, 1000, 1, 2 * 320 * 640 * 1000, 0)
    rates = [
        one.flops / clock.time(cost(Work.of([one]))).compute_s
        for one in (full, full._replace(n=1, flops=full.flops // 640))
    ]
    filling = 32 + 64 - 2
    assert rates[0] == pytest.approx(409.6e9 * 1000 / (1000 + filling))
    assert rates[1] == pytest.approx(rates[0] / 64)


def test_a_small_upload_on_4g_costs_its_tail():
    """After 10 kB, falling asleep takes more energy than sending: 12 J in 2012, 1.2 J (to 1.8) since."""
    pricer = Pricer("raspberry-pi-4b", device("raspberry-pi-4b"))
    for name, tail_j in (("4g-2012", 1.06 * 11.6), ("4g", 0.122 * 10.2)):
        energy = priced(pricer, cost(up=10**4), link(name)).energy
        assert energy.tail_j == pytest.approx(tail_j)
        assert energy.tail_j > 10 * energy.transmit_j
    most = priced(pricer, cost(up=10**4), at_corner(link("4g"), Corner.COSTLY)).energy.tail_j
    assert most == pytest.approx(0.178 * 10.2)


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


# By day a few of the papers' tables; test_papers.py plans all of them.
BY_DAY = [name for nth, name in enumerate(SCENARIOS) if "table" not in name or nth % 5 == 0]


@pytest.mark.parametrize("name", mostly(SCENARIOS, BY_DAY))
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
