"""Records: strictness, sourced numbers, ledgers and errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from plans import device, link, sourced

from edgefl.core.devices import Power, Roofline
from edgefl.core.errors import (
    DataError,
    EdgeflError,
    Place,
    RunError,
    ScenarioError,
    UnknownNameError,
    UserError,
    nearest,
)
from edgefl.core.event import JOB
from edgefl.core.ledger import Ledger
from edgefl.core.link import Radio
from edgefl.core.params import Component, Strict
from edgefl.core.pricer import Pricer
from edgefl.core.sourced import Sourced


class Sample(Strict):
    """A record with one field of each kind."""

    count: int = 1
    rate: float = 0.5
    name: str = ""
    widths: tuple[int, ...] = ()
    pairs: tuple[tuple[float, float], ...] = ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": "5"},
        {"count": 5.0},
        {"count": True},
        {"rate": "0.5"},
        {"rate": False},
        {"rate": float("nan")},
        {"rate": float("inf")},
        {"name": 5},
        {"widths": ["5"]},
        {"widths": "55"},
        {"unknown": 1},
    ],
)
def test_a_record_takes_no_lookalikes(wrong):
    """Strings, booleans and infinities are not accepted as numbers, and unknown keys are errors."""
    with pytest.raises(ValueError, match="Sample"):
        Sample.model_validate(wrong)


def test_a_record_takes_what_yaml_writes():
    """Lists become tuples, also nested ones, and an integer is accepted as a rate."""
    sample = Sample.model_validate({"rate": 1, "widths": [64, 32], "pairs": [[0, 1], [2, 3.5]]})
    assert (sample.rate, sample.widths, sample.pairs) == (1.0, (64, 32), ((0, 1), (2, 3.5)))
    assert Sample.model_validate(sample.model_dump(mode="json")) == sample


def test_a_component_may_be_a_bare_name():
    """``cnn2`` is ``{name: cnn2}``; the keys beside the name are its parameters."""
    assert Component.model_validate("cnn2") == Component(name="cnn2")


@pytest.mark.parametrize(
    "number",
    [
        {"value": 1.0, "status": "unknown", "source": "x"},
        {"status": "measured", "source": "x"},
        {"value": 1.0, "status": "measured", "source": ""},
        {"value": 1.0, "status": "guessed", "source": "x"},
        {"value": 1.0, "status": "measured"},
    ],
)
def test_a_number_needs_a_standing_and_a_source(number):
    """There is a value if and only if it is not unknown, and always a source."""
    with pytest.raises(ValueError, match="Sourced"):
        Sourced[float].model_validate(number)


@pytest.mark.parametrize("value", ["0", "1e-320", "0.5"])
@pytest.mark.parametrize("number", ["peak", "memory_bandwidth"])
def test_a_device_that_would_never_end_is_refused(number, value):
    """A peak or bandwidth below 1 per second is not realistic, and the smallest floats overflow."""
    data = device().model_dump()
    unit = "FLOP/s" if number == "peak" else "B/s"
    plain = _as_text(data)
    (plain["peak"]["fp32"] if number == "peak" else plain[number])["value"] = f"{value} {unit}"
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        Roofline.model_validate(plain)


def _as_text(data):
    data["peak"]["fp32"]["value"] = f"{data['peak']['fp32']['value']} FLOP/s"
    units = {
        "memory_bandwidth": "B/s",
        "launch_overhead": "s",
        "memory": "B",
        "reserved_memory": "B",
    }
    for name, unit in units.items():
        data[name]["value"] = f"{data[name]['value']} {unit}"
    for power in filter(None, data["power"].values()):
        power["value"] = f"{power['value']} W"
    return data


@pytest.mark.parametrize("broken", [{"down": 0.0}, {"up": 0.0}, {"down": 1e-320}, {"up": 0.5}])
def test_a_link_without_a_rate_is_refused(broken):
    """A transfer at a tiny rate would never end."""
    with pytest.raises(ValueError, match="must be at least 1 bit/s"):
        link(**broken)


def test_working_takes_no_less_power_than_idling():
    """Equal is allowed, and so is either unknown."""
    with pytest.raises(ValueError, match="active, 2 W, is below idle, 4 W"):
        device(idle=4.0, active=2.0)
    for idle, active in ((4.0, 4.0), (None, 1.0), (4.0, None)):
        assert device(idle=idle, active=active).power.idle.value == idle


def test_one_busy_core_draws_between_idle_and_all_cores():
    """Equal to either is allowed, and so is either unknown."""
    with pytest.raises(ValueError, match="single_core, 1 W, is below idle, 2 W"):
        device(idle=2.0, single_core=1.0, active=4.0)
    with pytest.raises(ValueError, match="active, 4 W, is below single_core, 5 W"):
        device(idle=2.0, single_core=5.0, active=4.0)
    with pytest.raises(ValueError, match="active, 4 W, is below single_core, 5 W"):
        device(idle=None, single_core=5.0, active=4.0)
    for one_core in (2.0, 3.0, 4.0):
        assert device(single_core=one_core).power.overhead_bound.value == one_core
    assert device(active=None, single_core=3.0).power.overhead_bound.value == 3.0
    assert device().power.overhead_bound.value == 4.0


def test_bounds_of_powers_do_not_contradict_each_other():
    """A power that has no value counts as its bound: 2 W at most do not suffice where idling takes 4 W."""

    def power(**watts):
        return Power.model_validate({name: {**bounds, **_GUESS} for name, bounds in watts.items()})

    with pytest.raises(ValueError, match="active, 2 W, is below idle, 4 W"):
        power(idle={"value": "4 W"}, active={"high": "2 W"})
    with pytest.raises(ValueError, match="active, 15 W, is below idle, 20 W"):
        power(idle={"low": "20 W", "high": "30 W"}, active={"high": "15 W"})
    with pytest.raises(ValueError, match="active, 15 W, is below idle, 20 W"):
        power(idle={"low": "20 W"}, single_core={"low": "1 W"}, active={"value": "15 W"})
    assert power(idle={"high": "30 W"}, active={"high": "15 W"}).active.high == 15.0
    assert power(idle={"value": "4 W"}, active={"low": "2 W"}).active.low == 2.0


_GUESS = {"status": "assumed", "source": "test"}


def test_a_tail_needs_its_time():
    """A tail of no time would cost nothing without a word; none at all needs neither."""
    with pytest.raises(ValueError, match="a tail of 1 W needs a tail_time"):
        Radio.model_validate({"base": "1 W", "tail": "1 W"})
    assert Radio.model_validate({"base": "1 W", "tail": "1 W", "tail_time": "2 s"}).tail_time == 2.0
    assert Radio.model_validate({"base": "1 W", "tail_time": "2 s"}).tail == 0.0


def test_the_system_leaves_something_of_memory():
    """A board whose system takes all memory could do no work: its file is wrong."""
    with pytest.raises(ValueError, match="reserved_memory, 2 kB, is not below memory, 1 kB"):
        device(memory=1e3, reserved=2e3)
    assert device(memory=2e3, reserved=1e3).usable_memory_bytes == 1e3


def test_watts_for_each_mbit_are_a_plain_number():
    """The message for a value with a unit shows the right form."""
    with pytest.raises(ValueError, match="valid number"):
        Radio.model_validate({"base": "1 W", "up_w_per_mbps": "0.1 W"})
    assert Radio.model_validate({"base": "1 W", "up_w_per_mbps": 0.1}).up_w_per_mbps == 0.1


def test_a_cache_is_no_slower_than_the_memory_behind_it():
    """Equal is allowed, and so is an unknown one."""

    def cached(bandwidth):
        cache = {"size": sourced("1 MB"), "bandwidth": sourced(bandwidth)}
        return Roofline.model_validate({**_as_text(device().model_dump()), "cache": cache})

    with pytest.raises(ValueError, match="is below memory_bandwidth, 1e\\+09 B/s"):
        cached("0.9 GB/s")
    assert cached("1 GB/s").cache.bandwidth.value == 1e9
    assert cached(None).cache.bandwidth.value is None


def test_a_device_with_an_unknown_peak_cannot_be_priced():
    """Pricing refuses what it would have to invent, and says which number."""
    board = device().model_copy(update={"peak": {"fp32": Sourced[float].model_validate(sourced(None))}})
    with pytest.raises(UserError, match=r"device 'board' cannot be priced: no value for peak\.fp32"):
        Pricer("board", board)


def test_memory_left_for_training():
    """Usable memory is what the system leaves; unknown if either number is."""
    board = device()
    assert board.usable_memory_bytes == 1e9
    unknown = board.model_copy(update={"memory": Sourced[float].model_validate(sourced(None))})
    assert unknown.usable_memory_bytes is None


def _jobs(*rows):
    """Ended jobs: client, bytes down, bytes up, operations and joules of the work."""
    jobs = np.zeros(len(rows), dtype=JOB)
    for place, row in enumerate(rows):
        for name, value in zip(("client", "down_bytes", "up_bytes", "flops", "work_j"), row, strict=True):
            jobs[name][place] = value
    return jobs


def test_a_ledger_by_hand():
    """Totals of four jobs of three clients; one energy is unknown, and its client's sum with it."""
    ledger = Ledger(5)
    assert ledger.totals(_jobs()[:0]) == (0, 0, 0, (None, 0, 0))
    ledger.add(_jobs((1, 100, 0, 70, math.nan), (1, 30, 4, 0, 1.0)))
    ledger.add(_jobs((2, 1, 2, 3, 0.5)))
    assert ledger.totals(_jobs((4, 10, 0, 0, 2.0))) == (141, 6, 73, (2.5, 2, 3))
    # What is only looked at is not added.
    assert ledger.totals(_jobs()[:0]) == (131, 6, 73, (0.5, 1, 2))


def test_what_ended_jobs_cost_by_hand():
    """A client whose second energy is unknown takes its first out of the sum; without any it is None."""
    ledger = Ledger(5)
    assert ledger.spent().joules is None
    ledger.add(_jobs((1, 100, 0, 70, 3.0), (2, 1, 2, 3, 0.5)))
    assert ledger.spent().joules == 3.5
    ledger.add(_jobs((1, 30, 4, 0, math.nan)))
    assert (ledger.spent()[:4], ledger.spent().joules) == ((3, 131, 6, 73), 0.5)
    assert ledger.spent().wasted_bytes == 137
    ledger.spend(np.array([2, 2]), np.array([0.25, 0.25]))
    assert ledger.spent().joules == 1.0
    ledger.spend(np.array([2]), np.array([math.nan]))
    assert ledger.spent().joules is None


def test_totals_may_exceed_64_bits():
    """The operations of a large fleet do."""
    ledger, large = Ledger(2), 2**62 + 1
    ledger.add(_jobs((0, 0, 0, large, 0.0), (1, 0, 0, large, 0.0)))
    assert ledger.totals(_jobs((0, 5, 0, large, 0.0)))[:3] == (5, 0, 3 * large)


def test_an_error_tells_what_where_and_what_to_do():
    """The three parts each take a line, and absent ones none."""
    error = UserError("no such file", where="--out", hint="choose another")
    assert str(error) == "no such file\n  where: --out\n  hint:  choose another"
    assert str(RunError("it diverged")) == "it diverged"


def test_exit_statuses():
    """Bad input is 2, a failed run 1, and all are edgefl's own errors."""
    assert [error("x").exit_status for error in (UserError, ScenarioError, UnknownNameError, DataError)] == [
        2
    ] * 4
    assert RunError("x").exit_status == 1
    assert issubclass(UserError, EdgeflError)
    assert issubclass(RunError, EdgeflError)
    assert not issubclass(RunError, UserError)


def test_places():
    """A place is a file, with line and key if known."""
    assert str(Place("a.yaml", 3, "task.clients")) == "a.yaml:3, key 'task.clients'"
    assert str(Place("--set", 0, "seed")) == "--set, key 'seed'"
    assert str(Place("a.yaml")) == "a.yaml"


def test_the_nearest_name():
    """A close name is suggested, otherwise all are listed, otherwise there are none."""
    assert nearest("fedagv", ["fedavg", "fedprox"]) == "did you mean 'fedavg'?"
    assert nearest("zzz", ["fedprox", "fedavg"]) == "known: fedavg, fedprox"
    assert nearest("x", []) == "none are known"
