"""What an order of two figures depends on: by hand, and of runs priced again."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from commands import run_command, shown
from plans import board, link, sourced

from edgefl.core import catalogue
from edgefl.core.devices.roofline import Roofline
from edgefl.core.link import Link
from edgefl.core.sourced import Costs, replaced
from edgefl.core.sourced import sourced as numbers_of
from edgefl.core.yamls import RESOLVED
from edgefl.planning import fleets
from edgefl.planning.sensitivity import Side, scaled, study, swept
from edgefl.show.sensitivity import sensitivity


def found(first, second, record, factor=1.0):
    """The study of two figures of a board."""
    sides = [
        Side("one", lambda at: {"energy": first(at["board"])}),
        Side("two", lambda at: {"energy": second(at["board"])}),
    ]
    return study(sides, ["energy"], {"board": record}, factor)


ACTIVE = {"low": 5.0, "value": 6.0, "high": 15.0, "status": "assumed", "source": "test"}


def test_the_value_at_which_the_order_turns_is_found():
    """One side draws the active power, the other 9.3 W: the order turns there, and nowhere else."""
    result = found(lambda one: one.power.active.value, lambda _: 9.3, board(active=ACTIVE))
    (verdict,) = result.verdicts
    assert (verdict.less, verdict.more, verdict.robust) == ("one", "two", False)
    (turn,) = verdict.turns
    assert (turn.number, turn.value, turn.above) == ("board power.active", "9.3 W", True)
    assert 0 < verdict.holds < 1
    text = shown(sensitivity(result), 120)
    assert "  turns where board power.active rises above 9.3 W" in text
    assert f"and in {verdict.holds:.1%} of 256 samples" in text


def test_a_number_that_may_be_nothing_is_shown_first():
    """A power of which only the most is known changes the energy by more than any ratio."""
    record = board(idle={"high": 10.0, **GUESS}, active={"high": 10.0, **GUESS}, single_core=ACTIVE)
    result = found(
        lambda one: one.power.active.value * one.power.single_core.value, lambda _: math.nan, record
    )
    assert [effect.number for effect in result.effects] == ["board power.active", "board power.single_core"]
    assert re.search(r"board power.active +│ 0 to 10 W", shown(sensitivity(result), 120))


GUESS = {"status": "assumed", "source": "test"}


def test_figures_that_overlap_may_keep_their_order():
    """Both sides run on the same device: twice its power is less than three times it, whatever it is."""
    result = found(
        lambda one: 2 * one.power.active.value, lambda one: 3 * one.power.active.value, board(active=ACTIVE)
    )
    (verdict,) = result.verdicts
    one, two = (result.between["energy"][name] for name in ("one", "two"))
    assert one.high > two.low
    assert verdict.robust
    assert verdict.ratio == pytest.approx((1.5, 1.5))
    assert "one takes less energy than two over all intervals" in shown(sensitivity(result), 120)


def test_numbers_that_turn_it_only_together_are_found_by_sampling():
    """Neither of two numbers at its end turns the order; both of them together do."""
    idle = {"low": 1.0, "value": 2.0, "high": 4.0, "status": "assumed", "source": "test"}
    record = board(idle=idle, active={**ACTIVE, "high": 12.0})
    result = found(lambda one: one.power.active.value * one.power.idle.value, lambda _: 30.0, record)
    (verdict,) = result.verdicts
    assert verdict.turns == []
    assert 0 < verdict.holds < 1
    assert not verdict.robust


def four_numbers():
    """A device of which two powers and two efficiencies are intervals."""
    power = {"status": "assumed", "source": "test"} | {"low": 1.0, "value": 2.0, "high": 4.0}
    data = board(idle=power, active={**ACTIVE, "high": 12.0}).model_dump(mode="json")
    share = {**power, "low": 0.25, "value": 0.5, "high": 1.0}
    data["efficiency"] = dict.fromkeys(data["efficiency"], share)
    return Roofline.model_validate(data, context=RESOLVED)


def test_numbers_that_turn_it_only_at_their_ends_together_are_found():
    """No sample comes so near to all ends at once that the order turns, as it does there."""

    def product(one):
        efficiency = one.efficiency.dense.value * one.efficiency.depthwise.value
        return one.power.active.value * one.power.idle.value * efficiency

    result = found(product, lambda _: 47.9, four_numbers())
    (verdict,) = result.verdicts
    assert (verdict.holds, verdict.turns, verdict.together, verdict.robust) == (1.0, [], True, False)
    assert verdict.ratio == pytest.approx((47.9 / 48, 47.9 / (5 / 16)))
    text = " ".join(shown(sensitivity(result), 120).split())
    assert "in 100% of 256 samples; no number alone turns it, several together do" in text


def test_the_end_of_a_number_may_depend_on_another():
    """Alone, each of two is greater at its high end; together they are greatest at different ends."""

    def figure(one):
        idle = math.log2(one.power.idle.value / 2)
        share = math.log2(one.efficiency.dense.value / 0.5)
        return 10 + idle + share - 5 * idle * share

    (verdict,) = found(figure, lambda _: 14.99, four_numbers()).verdicts
    assert (verdict.holds, verdict.turns, verdict.together) == (1.0, [], True)


def test_samples_are_the_same_each_time_and_cover_every_range():
    """The seed is fixed; each number has one sample in each 256th of its range."""
    seen = []

    def figure(one):
        seen.append(one.power.active.value)
        return 1.0

    first, second = (found(figure, lambda _: 2.0, board(active=ACTIVE)) for _ in range(2))
    assert first == second
    drawn = np.array(seen[3 : 3 + 256])
    shares = np.where(drawn < 6.0, np.log(drawn / 6) / np.log(6 / 5), np.log(drawn / 6) / np.log(15 / 6))
    assert sorted(np.floor((shares + 1) * 128).astype(int)) == list(range(256))


def test_an_unknown_figure_is_not_compared():
    """It is said instead."""
    result = found(lambda one: one.power.active.value, lambda _: math.nan, board(active=ACTIVE))
    assert result.verdicts == []
    assert "energy of two is unknown, so it is not compared" in shown(sensitivity(result), 120)


def test_assumed_numbers_are_swept_by_the_factor():
    """By 1/2 and 2, or to their interval's ends if these lie farther out; measured ones to their ends."""
    measured = {"value": 2.0, "status": "measured", "source": "test"}
    record = board(idle={**measured, "high": 3.0}, active={**ACTIVE, "low": 1.0, "high": 7.0})
    ranges = {one.name: (one.low, one.high) for one in swept("board", record, 2.0)}
    assert ranges["power.idle"] == (2.0, 3.0)
    assert ranges["power.active"] == (1.0, 12.0)
    assert ranges["launch_overhead"] == (0.5e-3, 2e-3)
    assert ranges["efficiency.dense"] == (0.25, 1.0)
    assert ranges["efficiency.depthwise"] == (0.05, 0.2)
    alone = {one.name: (one.low, one.high) for one in swept("board", record, 1.0)}
    assert alone == {"power.idle": (2.0, 3.0), "power.active": (1.0, 7.0)}


def test_a_share_of_losses_stays_below_one():
    """What is left below the limit shrinks by the factor."""
    data = link().model_dump(mode="json") | {"loss": sourced(0.6), "handshakes": sourced(1)}
    way = Link.model_validate(data, context=RESOLVED)
    ranges = {one.name: (one.low, one.high) for one in swept("link", way, 2.0)}
    assert ranges["loss"] == (0.3, pytest.approx(0.8))
    assert ranges["handshakes"] == (0, 2)


@pytest.mark.parametrize("kind", ["devices", "links"])
def test_every_number_that_is_swept_stays_valid(kind):
    """At both ends of its range, alone, every number of every file is one that the file might have."""
    for name in catalogue.entries(kind):
        record = fleets.device(name) if kind == "devices" else fleets.link(name)
        for one in swept(name, record, 3.0):
            if one.name.startswith("power."):
                continue
            for share in (-1.0, 1.0):
                changed = replaced(record, {one.name: one.fixed(share)})
                type(record).model_validate(changed.model_dump(mode="json"), context=RESOLVED)


def test_scaling_follows_the_number():
    """More of what costs costs more, whatever kind of number it is."""
    for name, number in numbers_of(board()):
        if number.costs() is not None:
            assert scaled(number, number.value, 2.0) >= number.value, name
            assert number.costs() in set(Costs)


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Two methods' runs on one fleet, of which the clock alone ran."""
    from edgefl.runs import run

    folder = tmp_path_factory.mktemp("swept") / "runs"
    run(
        "quickstart",
        overrides=["sweep={method: [fedavg, fedclassavg]}", "server.rounds=3", "engine=null"],
        out=folder,
    )
    return folder


def test_compare_says_whether_the_order_holds(capsys, group):
    """The figures at the numbers' own values are the runs'; verdicts are in the text and in the document."""
    status, out, _ = run_command(capsys, "compare", str(group), "--sensitivity", "2", "--json")
    document = json.loads(out)
    assert status == 0
    (energy, time) = (document["sensitivity"]["figures"][key] for key in ("energy", "time"))
    for run in document["runs"]:
        assert energy[run["name"]] == pytest.approx(run["joules"], rel=1e-9)
        assert time[run["name"]] == pytest.approx(run["virtual_s"], rel=1e-9)
    for verdict in document["sensitivity"]["verdicts"]:
        assert (verdict["less"], verdict["more"]) == ("fedavg", "fedclassavg")
    status, out, _ = run_command(capsys, "compare", str(group), "--sensitivity", "1")
    assert status == 0
    assert "fedavg takes less energy than fedclassavg" in out
    assert "256 Latin hypercube samples (seed 0)" in " ".join(out.split())


@pytest.mark.parametrize("factor", ["0.5", "nan", "inf", "1e300"])
def test_a_factor_that_makes_no_sense_is_refused(capsys, group, factor):
    """With a message, before anything overflows."""
    status, _, err = run_command(capsys, "compare", str(group), "--sensitivity", factor)
    assert status == 2
    assert f"the factor must be between 1 and 1,000, not {float(factor):g}" in err


def test_profiles_are_swept_by_device(capsys):
    """The figures at the numbers' own values are the profile's; a device without a price is left out."""
    given = ("--device", "raspberry-pi-4b", "--device", "coral-edge-tpu", "--json")
    status, out, _ = run_command(capsys, "profile", "quickstart", *given, "--sensitivity", "2")
    assert status == 0
    document = json.loads(out)
    (one,) = document["sensitivity"]
    assert one["name"].startswith("raspberry-pi-4b, fp32, ")
    figures = one["figures"]
    for run in document["profiles"]:
        rounds = [
            work["exchange"] for work in run["exchanges"] if work["at"] == "round" and work["every"] == 1
        ]
        rows = [
            row for row in run["prices"] if row["device"] == "raspberry-pi-4b" and row["exchange"] in rounds
        ]
        seconds = sum(row["down_s"] + row["work_s"] + row["up_s"] for row in rows)
        assert figures["energy"][run["scenario"]] == pytest.approx(sum(row["joules"] for row in rows))
        assert figures["time"][run["scenario"]] == pytest.approx(seconds)
    assert {verdict["quantity"] for verdict in one["verdicts"]} == {"energy", "time"}
    assert len(one["verdicts"]) == 6


def test_runs_on_other_numbers_are_not_compared(capsys, tmp_path):
    """A link of one name whose rate was changed between two runs would not be the same for both."""
    from edgefl.runs import run

    folders = []
    for rate in ("1 Mbit/s", "2 Mbit/s"):
        numbers = {"down": rate, "up": "1 Mbit/s", "latency": "10 ms", "radio": {"base": "0 W"}}
        cable = {"title": "a cable", **{name: sourced(value) for name, value in numbers.items()}}
        fleet = {"members": [{"device": "raspberry-pi-4b", "link": "cable"}], "links": {"cable": cable}}
        folders.append(str(tmp_path / rate[0]))
        settings = [f"fleet={json.dumps(fleet)}", "sweep=null", "server.rounds=1", "engine=null"]
        run("quickstart", overrides=settings, out=tmp_path / rate[0])
    status, _, err = run_command(capsys, "compare", *folders, "--sensitivity", "2")
    assert status == 2
    assert "link cable has other numbers than in the runs before" in err
