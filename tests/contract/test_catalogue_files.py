"""Every device, network class, profile and scenario file: it loads, names its sources, is shown and runs."""

from __future__ import annotations

import re

import pytest
from plans import cost, kernel

from edgefl.cli import main
from edgefl.core import catalogue
from edgefl.core.cost import FORWARD, GRAD_WEIGHT, OP_CLASSES, Kernel, Work
from edgefl.core.devices import Systolic
from edgefl.core.errors import UserError
from edgefl.core.pricer import Pricer
from edgefl.core.sourced import sourced
from edgefl.core.units import parse
from edgefl.planning.fleets import device, link, links_of, profile
from edgefl.runs import drafts, run

DEVICES = tuple(catalogue.entries("devices"))
LINKS = tuple(catalogue.entries("links"))
PROFILES = tuple(catalogue.entries("profiles"))
SCENARIOS = tuple(catalogue.entries("scenarios"))

CATEGORIES = {"sbc", "edge-gpu", "phone", "laptop", "mcu", "fpga", "npu", "server-gpu"}

# What a device works on: one kernel of each class, the dense one a product whose weights train.
JOB = cost(
    Work.of(
        [
            Kernel("mm", "dense", FORWARD, "head", 10, 100, 500, 1, 10**6, 10**6),
            *(kernel(kind, 10**6, 10**6) for kind in OP_CLASSES if kind == "elementwise"),
        ]
    ),
    down=10**6,
    up=10**6,
)

# How much a status claims; no file may claim more for a number than the survey of sources that it came from.
CLAIMS = ("unknown", "assumed", "derived", "measured")


def _roofline(peak, *, bandwidth=None, memory=None, active=None, **more):
    """A survey's row for a roofline device in fp32."""
    row = {"peak.fp32": peak, "memory_bandwidth": bandwidth, "memory": memory, "power.active": active, **more}
    return {number: claim for number, claim in row.items() if claim}


_UNKNOWN = (None, "unknown")
_FROM_PI = {"efficiency.dense": (0.11, "assumed"), "efficiency.depthwise": (0.0044, "assumed")}
_UNTRAINED = {f"efficiency.{kind}": _UNKNOWN for kind in OP_CLASSES}
_BOARD = dict.fromkeys(("rows", "columns", "clock_rate", "power.idle", "power.active"), _UNKNOWN)

# name: (value, the most that may be claimed). The survey marks numbers as verified ("measured" here), derived
# or recalled ("assumed"); its memory column has no standing of its own, and counts as verified.
# A power limit, however well verified, is an assumption about what training draws.
SURVEY = {
    # 57.6 derived; 2.74 memcpy, 4096, 1.6 and 7.2 verified; 0.11 verified, of a derived peak
    "raspberry-pi-4b": _roofline(
        ("57.6 GFLOP/s", "derived"),
        bandwidth=("2.74 GB/s", "measured"),
        memory=("4096 MiB", "measured"),
        active=("7.2 W", "measured"),
        **{
            "power.idle": ("1.6 W", "measured"),
            "efficiency.dense": (0.11, "derived"),
            "efficiency.depthwise": (0.0044, "assumed"),
            # 1.8 G multiply-adds of ResNet-18 in 83.92 ms, measured by ncnn; the peak by width of registers
            "peak.int8": ("115.2 GFLOP/s", "derived"),
            "efficiency_in.int8.dense": (0.37, "derived"),
        },
    ),
    # 153.6, 4.81 memcpy, 8192, 2.8 and 13.8 verified; no training measurement
    "raspberry-pi-5": _roofline(
        ("153.6 GFLOP/s", "measured"),
        bandwidth=("4.81 GB/s", "measured"),
        memory=("8192 MiB", "measured"),
        active=("13.8 W", "measured"),
        **{"power.idle": ("2.8 W", "measured"), **_FROM_PI},
    ),
    # 32 recalled; 0.59 memcpy, 512, 1.2 and 2.1 verified; no training measurement
    "raspberry-pi-zero-2w": _roofline(
        ("32 GFLOP/s", "assumed"),
        bandwidth=("0.59 GB/s", "measured"),
        memory=("512 MiB", "measured"),
        active=("2.1 W", "measured"),
        **{"power.idle": ("1.2 W", "measured"), **_FROM_PI},
    ),
    # 235.9 derived; 25.6, 4096 and 10 verified; idle empty; training table not found
    "jetson-nano": _roofline(
        ("235.9 GFLOP/s", "derived"),
        bandwidth=("25.6 GB/s", "measured"),
        memory=("4096 MiB", "measured"),
        active=("10 W", "assumed"),
        **{"power.idle": _UNKNOWN, **_FROM_PI},
    ),
    # 665 derived from fp16, 1330; 59.7 recalled; 15 verified; no training measurement
    "jetson-tx2": _roofline(
        ("665 GFLOP/s", "derived"),
        bandwidth=("59.7 GB/s", "assumed"),
        memory=("8192 MiB", "measured"),
        active=("15 W", "assumed"),
        **{"peak.fp16": ("1330 GFLOP/s", "measured"), "power.idle": _UNKNOWN, **_FROM_PI},
    ),
    # 845 derived from fp16, 1690; 59.7 recalled; 20 verified; training table not found
    "jetson-xavier-nx": _roofline(
        ("845 GFLOP/s", "derived"),
        bandwidth=("59.7 GB/s", "assumed"),
        memory=("8192 MiB", "measured"),
        active=("20 W", "assumed"),
        **{"peak.fp16": ("1690 GFLOP/s", "measured"), "power.idle": _UNKNOWN, **_FROM_PI},
    ),
    # 1280 with a recalled clock; 68 verified; 15 recalled; no training measurement
    "jetson-orin-nano": _roofline(
        ("1280 GFLOP/s", "assumed"),
        bandwidth=("68 GB/s", "measured"),
        memory=("8192 MiB", "measured"),
        active=("15 W", "assumed"),
        **{"power.idle": _UNKNOWN, **_FROM_PI},
    ),
    # 5325 and 204.8 recalled; 60 verified; training figures not found
    "jetson-agx-orin": _roofline(
        ("5325 GFLOP/s", "assumed"),
        bandwidth=("204.8 GB/s", "assumed"),
        memory=("65536 MiB", "measured"),
        active=("60 W", "assumed"),
        **{"power.idle": _UNKNOWN, **_FROM_PI},
    ),
    # 4 TOPS int8, 8 MB and 2 W verified; no bandwidth; inference only
    "coral-edge-tpu": {
        "peak.int8": ("4 TFLOP/s", "measured"),
        "memory_bandwidth": _UNKNOWN,
        "memory": ("8 MiB", "measured"),
        "power.active": ("2 W", "assumed"),
        "efficiency.dense": (0.06, "assumed"),
    },
    # 2170.9, 51.2 and a TDP of 10 verified; no training measurement
    "pixel-6": _roofline(
        ("2170.9 GFLOP/s", "measured"),
        bandwidth=("51.2 GB/s", "measured"),
        memory=("8192 MiB", "measured"),
        active=("10 W", "assumed"),
        **_UNTRAINED,
    ),
    # neither peak nor bandwidth
    "pixel-8": _roofline(_UNKNOWN, bandwidth=_UNKNOWN, memory=("8192 MiB", "measured"), **_UNTRAINED),
    # sources disagree on the peak; 51.2 derived
    "galaxy-s22": _roofline(
        _UNKNOWN, bandwidth=("51.2 GB/s", "derived"), memory=("8192 MiB", "measured"), **_UNTRAINED
    ),
    # 1536 derived; sources disagree on 34.1; a TDP of 6 verified
    "iphone-14": _roofline(
        ("1536 GFLOP/s", "derived"),
        bandwidth=("34.1 GB/s", "assumed"),
        memory=("6144 MiB", "measured"),
        active=("6 W", "assumed"),
        **_UNTRAINED,
    ),
    # 134 from a recalled rate; 17 verified
    "android-sd680": _roofline(
        ("134 GFLOP/s", "assumed"),
        bandwidth=("17 GB/s", "measured"),
        memory=("4096 MiB", "measured"),
        active=_UNKNOWN,
        **_FROM_PI,
    ),
    # 178 derived (achieved, not peak); 26.6 memcpy, 2.7 and 41.6 verified
    "laptop-cpu": _roofline(
        ("178 GFLOP/s", "derived"),
        bandwidth=("26.6 GB/s", "measured"),
        memory=("16384 MiB", "assumed"),
        active=("41.6 W", "measured"),
        **{"power.idle": ("2.7 W", "measured"), "efficiency.dense": (0.5, "assumed")},
    ),
    # effective rates, if a verified batch is 10 samples; see test_fedscale.py
    **{
        name: _roofline((peak, "assumed"), active=_UNKNOWN, **{"power.idle": _UNKNOWN})
        for name, peak in (
            ("phone-low", "0.626 GFLOP/s"),
            ("phone-mid", "1.78 GFLOP/s"),
            ("phone-high", "6.16 GFLOP/s"),
        )
    },
    # 0.064 from a recalled rate; below 0.05 W by its class; no training measurement: rates of inference, in
    # cycles a multiply-add: 9 in fp32, recalled, and 2.13 in int8, measured on another Cortex-M4
    "arduino-nano-33-ble": _roofline(
        ("0.064 GFLOP/s", "assumed"),
        memory=("256 KiB", "measured"),
        active=("0.05 W", "assumed"),
        **{
            "efficiency.dense": (0.22, "assumed"),
            "peak.int8": ("256 MFLOP/s", "assumed"),
            "efficiency_in.int8.dense": (0.23, "assumed"),
        },
    ),
    # 0.216 recalled; training was shown, its speed not found: rates of inference, in cycles a multiply-add: 6
    # in fp32, recalled, and 1.23 in int8, measured on another Cortex-M7, as is its power
    "stm32f746": _roofline(
        ("0.216 GFLOP/s", "assumed"),
        memory=("320 KiB", "measured"),
        active=("0.14 W", "assumed"),
        **{
            "efficiency.dense": (0.33, "assumed"),
            "peak.int8": ("864 MFLOP/s", "assumed"),
            "efficiency_in.int8.dense": (0.41, "assumed"),
        },
    ),
    # 32 x 64 at 100 MHz from the paper; 12.8 from verified 1600 MT/s x 64 bit; 1024
    "vc707-systolic": {
        "rows": (32, "measured"),
        "columns": (64, "measured"),
        "clock_rate": ("100 MHz", "measured"),
        "memory_bandwidth": ("12.8 GB/s", "derived"),
        "memory": ("1024 MiB", "measured"),
        "power.idle": _UNKNOWN,
        "power.active": _UNKNOWN,
    },
    # 17.1 and 2.1 with recalled widths; peaks are a matter of the design
    "zcu102": {"memory_bandwidth": ("17.1 GB/s", "assumed"), "memory": ("4096 MiB", "measured"), **_BOARD},
    "zcu104": {"memory_bandwidth": ("17.1 GB/s", "assumed"), "memory": ("2048 MiB", "assumed"), **_BOARD},
    "pynq-z2": {"memory_bandwidth": ("2.1 GB/s", "assumed"), "memory": ("512 MiB", "measured"), **_BOARD},
    # 11340 and 484 derived; 250 recalled; efficiencies here and below from one benchmark of ResNet-50
    "gtx-1080-ti": _roofline(
        ("11340 GFLOP/s", "derived"),
        bandwidth=("484 GB/s", "derived"),
        memory=("11264 MiB", "measured"),
        active=("250 W", "assumed"),
        **{"efficiency.dense": (0.42, "derived")},
    ),
    # 13448 derived; 616 verified; 250 recalled
    "rtx-2080-ti": _roofline(
        ("13448 GFLOP/s", "derived"),
        bandwidth=("616 GB/s", "measured"),
        memory=("11264 MiB", "measured"),
        active=("250 W", "assumed"),
        **{"efficiency.dense": (0.5, "derived")},
    ),
    # 13800, 27.6 T in fp16, 652.8 and 250 verified
    "titan-v": _roofline(
        ("13800 GFLOP/s", "measured"),
        bandwidth=("652.8 GB/s", "measured"),
        memory=("12288 MiB", "measured"),
        active=("250 W", "assumed"),
        **{"peak.fp16": ("27.6 TFLOP/s", "measured"), "efficiency.dense": (0.5, "derived")},
    ),
    # 16312 derived; 130 T of tensor cores, 672 and 280 verified
    "titan-rtx": _roofline(
        ("16312 GFLOP/s", "derived"),
        bandwidth=("672 GB/s", "measured"),
        memory=("24576 MiB", "measured"),
        active=("280 W", "assumed"),
        **{
            "peak.fp16": ("130 TFLOP/s", "measured"),
            "efficiency.dense": (0.46, "derived"),
            "efficiency_in.fp16.dense": (0.115, "assumed"),
        },
    ),
    # 66900 recalled; 989 T dense, bandwidth and 700 verified
    **{
        name: _roofline(
            ("66900 GFLOP/s", "assumed"),
            bandwidth=(bandwidth, "measured"),
            memory=(memory, "measured"),
            active=("700 W", "assumed"),
            **{"peak.fp16": ("989 TFLOP/s", "measured"), "efficiency.dense": (0.46, "assumed")},
        )
        for name, bandwidth, memory in (
            ("h100-sxm", "3350 GB/s", "81920 MiB"),
            ("h200-sxm", "4800 GB/s", "144384 MiB"),
        )
    },
}

# network class: down, up and round trip, and the most that may be claimed of each
SURVEYED_LINKS = {
    "3g": (("2 Mbit/s", "assumed"), ("0.7 Mbit/s", "assumed"), ("120 ms", "assumed")),
    "4g": (("13 Mbit/s", "measured"), ("6 Mbit/s", "measured"), ("70 ms", "assumed")),
    "5g": (("166 Mbit/s", "measured"), ("21.1 Mbit/s", "measured"), ("25 ms", "assumed")),
    # the survey has no median upwards
    "mobile-median": (("61.5 Mbit/s", "measured"), ("12.6 Mbit/s", "assumed"), ("28 ms", "measured")),
    "wifi-pi4": (("108 Mbit/s", "measured"), ("108 Mbit/s", "measured"), ("5 ms", "assumed")),
    "wifi-pi5": (("186 Mbit/s", "measured"), ("186 Mbit/s", "measured"), ("5 ms", "assumed")),
    "ethernet": (("940 Mbit/s", "assumed"), ("940 Mbit/s", "assumed"), ("1 ms", "assumed")),
    "flash-wifi": (("34.5 Mbit/s", "measured"), ("26.3 Mbit/s", "measured"), ("5 ms", "assumed")),
    "nb-iot": (("264 bit/s", "measured"), ("264 bit/s", "measured"), ("837 ms", "measured")),
    "lorawan": (("55 bit/s", "assumed"), ("55 bit/s", "assumed"), ("2 s", "assumed")),
}


_GUESSED = re.compile(r"\b(recalled|taken|assum\w+|no measurement|not measured|not stated|not published)\b")


def _sources_hold(record):
    """Each number says measured, derived, assumed or unknown, and a source in words."""
    for number, known in sourced(record):
        assert re.search(r"[A-Za-z]{3}", known.source), f"{number} has no source"
        assert (known.value is None) == (known.status == "unknown"), number
        # A guess says that it is one, or from where it was taken; a measurement never does.
        guessed = re.search(
            r"\b(recalled|taken|assum\w+|no measurement|not measured|not stated|not published)\b",
            known.source,
        )
        assert not (guessed and known.status == "measured"), number


def _claims_hold(known, value, most, number):
    expected = parse(value, _dimension(value)) if isinstance(value, str) else value
    assert known.value == (None if expected is None else pytest.approx(expected)), number
    assert CLAIMS.index(known.status) <= CLAIMS.index(most), f"{number} claims to be {known.status}"


def test_there_are_devices_of_every_category():
    """At least 24 devices, some of each category, and all three cost models but the measured one."""
    found = [device(name) for name in DEVICES]
    assert len(found) >= 24
    assert {one.category for one in found} == CATEGORIES
    assert {one.kind for one in found} >= {"roofline", "systolic"}


@pytest.mark.parametrize("name", DEVICES)
def test_every_number_of_a_device_has_a_standing_and_a_source(name):
    """A device file loads, and what it does not know it does not fill in."""
    one = device(name)
    assert len(dict(sourced(one))) >= 10
    assert one.title
    _sources_hold(one)


def unknown(board):
    """The names of a device's unknown numbers."""
    return [name for name, number in sourced(board) if number.value is None]


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_agrees_with_the_survey(name):
    """Numbers are those of the survey of sources, and none claims more than the survey does."""
    numbers = dict(sourced(device(name)))
    for number, (value, most) in SURVEY[name].items():
        _claims_hold(numbers[number], value, most, number)


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_is_priced_or_says_which_number_is_missing(name):
    """A price where all that timing needs is known, in each of its number types; else the unknown names."""
    one = device(name)
    cable = link("ethernet")
    aside = ("power.", "memory", "reserved_memory", "battery")
    missing = [
        number
        for number in unknown(one)
        if not number.startswith(aside) or number.startswith("memory_bandwidth")
    ]
    for dtype in one.dtypes():
        if missing:
            with pytest.raises(UserError) as caught:
                Pricer(name, one, dtype)
            assert all(number in caught.value.what for number in missing if not number.startswith("peak"))
            assert "unknown" in caught.value.what
            assert "EDGEFL_PATH" in caught.value.hint
        else:
            assert Pricer(name, one, dtype).price(JOB, cable).seconds > 0


@pytest.mark.parametrize("kind", ["devices", "links"])
def test_every_device_and_link_can_be_shown(kind, capsys):
    """``edgefl show`` prints each file's title, and a row for every number with its status."""
    for name in catalogue.entries(kind):
        with pytest.raises(SystemExit) as ended:
            main(["show", kind.removesuffix("s"), name])
        assert ended.value.code == 0
        printed = capsys.readouterr().out
        record = device(name) if kind == "devices" else link(name)
        assert record.title in " ".join(printed.split())
        for number, known in sourced(record):
            assert re.search(rf"^ {re.escape(number)} .*\b{known.status}\b", printed, re.MULTILINE), number


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
        price = Pricer(name, board, dtype).price(cost(head), link("ethernet"))
        assert price.compute_s > 0
        assert price.energy.joules > 0
        assert board.clock(name, dtype, inference=True).time(_step(body=[FORWARD])).seconds > 0
    assert board.refusal(whole, "fp32") == ""
    assert "last layer only" in board.refusal(whole, "int8")
    used = ("peak.", "efficiency", "launch_overhead", "power.")
    assert {number.status for key, number in sourced(board) if key.startswith(used)} == {"assumed"}


def test_the_edge_tpu_has_no_fp32():
    """What its file has no figure for is refused by name."""
    with pytest.raises(UserError, match="no figure for fp32"):
        Pricer("coral-edge-tpu", device("coral-edge-tpu"))


def test_tensor_cores_have_an_efficiency_of_their_own():
    """fp16 on tensor cores is timed with the fp16 efficiency, not with fp32's share of a larger peak."""
    card = device("titan-rtx")
    work = Work.of([Kernel("mm", "dense", FORWARD, "head", 10, 10, 10, 1, 10**12, 0)])
    seconds = {dtype: Pricer("titan-rtx", card, dtype).time(cost(work)).compute_s for dtype in card.dtypes()}
    assert seconds["fp32"] == pytest.approx(1e12 / (0.46 * 16.312e12))
    assert seconds["fp16"] == pytest.approx(1e12 / (0.115 * 130e12))


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


def _dimension(text):
    units = {
        "FLOP/s": "operation rate",
        "B/s": "byte rate",
        "W": "power",
        "bit/s": "bit rate",
        "Hz": "frequency",
        "s": "time",
        "B": "bytes",
    }
    unit = text.split()[1]
    return next(dimension for end, dimension in units.items() if unit.endswith(end))


def test_the_survey_covers_what_is_shipped():
    """No row above is of a file that has gone, and no file is without its row."""
    assert set(SURVEY) == set(DEVICES)
    assert set(SURVEYED_LINKS) == set(LINKS)


@pytest.mark.parametrize("name", LINKS)
def test_a_network_class_says_where_it_is_from(name):
    """Rates and round trips are the survey's and claim no more; no radio was measured."""
    one = link(name)
    _sources_hold(one)
    for number, (value, most) in zip(("down", "up", "latency"), SURVEYED_LINKS[name], strict=True):
        _claims_hold(getattr(one, number), value, most, number)
    assert one.radio.status in {"assumed", "unknown"}
    if one.radio.value and one.radio.value.tail:
        assert "2010 to 2012" in one.notes


def test_a_small_upload_costs_mostly_its_tail():
    """On 4G, sending 10 kB takes longer to fall asleep from than to send, by energy."""
    energy = Pricer("raspberry-pi-4b", device("raspberry-pi-4b")).price(cost(up=10**4), link("4g")).energy
    assert energy.tail_j == pytest.approx(1.06 * 11.6)
    assert energy.tail_j > 10 * energy.transmit_j


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_can_be_priced(name):
    """Each member's device exists and prices a job behind its link; energy is known where its numbers are."""
    fleet = profile(name)
    links = links_of(fleet, name)
    for member in fleet.members:
        board, behind = device(member.device), links[member.link]
        price = Pricer(member.device, board, member.dtype).price(JOB, behind)
        assert price.seconds > 0
        powers = (board.power.idle.value, board.power.active.value, behind.radio.value)
        assert (price.energy.joules is None) == (None in powers)
    for own in fleet.links.values():
        _sources_hold(own)


def test_shipped_fleets_have_a_title_and_the_stress_test_differs_in_its_stragglers_alone():
    """The heavy-tailed home lab is the home lab but for title, notes and slowdown."""
    plain, heavy = (profile(name).model_dump() for name in ("home-lab", "home-lab-heavy-tail"))
    assert {key for key in plain if plain[key] != heavy[key]} == {"title", "notes", "slowdown"}
    assert all(profile(name).title for name in PROFILES)


def test_the_quickstart_fleet_knows_its_energy():
    """The fleet that new users meet has at least four kinds of device, and every number of them is known."""
    fleet = profile("home-lab")
    kinds = {member.device for member in fleet.members}
    assert len(kinds) >= 4
    assert all(unknown(device(kind)) == [] for kind in kinds)
    assert all(one.radio.value is not None for one in links_of(fleet, "home-lab").values())


def _apart(name):
    """A scenario's runs; one of those that differ in rate, seed or name alone, since they cost the same."""
    found = {}
    for draft in drafts(name, ["server.rounds=1"]):
        settings = draft.scenario.resolved()
        del settings["local"]["optimizer"]["lr"], settings["seed"]
        found.setdefault(repr(settings), draft.document.data)
    return list(found.values())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_runs_on_the_clock_alone(name, tmp_path, monkeypatch):
    """Each run loads, and each kind of run plans and dry-runs without any data file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing here"))
    for index, settings in enumerate(_apart(name)):
        out = tmp_path / str(index)
        result = run(settings, engine="null", download=False, out=out)
        (one,) = result.runs
        assert (one.status, one.reason) == ("done", "")
        events = one.table("events")
        assert {"dispatched", "received", "worked", "arrived", "merged", "evaluated"} <= {
            row["kind"] for row in events
        }
        worked = [row for row in events if row["kind"] == "worked"]
        assert any(row["flops"] for row in worked)
        assert all(row["seconds"] > 0 for row in worked if row["flops"])
