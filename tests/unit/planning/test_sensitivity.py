"""What an order of two figures depends on: by hand, and of runs priced again."""

import json

import pytest
from commands import run_command, shown
from plans import board, link, sourced

from edgefl.core import catalogue
from edgefl.core.devices.roofline import Roofline
from edgefl.core.link import Link
from edgefl.core.sourced import changed
from edgefl.core.yamls import RESOLVED
from edgefl.planning import fleets
from edgefl.planning.sensitivity import Side, study, swept
from edgefl.runs.group import run
from edgefl.show.sensitivity import sensitivity

GUESS = {"status": "assumed", "source": "test"}
ACTIVE = {"low": 5.0, "value": 6.0, "high": 15.0, **GUESS}


def found(first, second, record):
    """The study of two figures of a board."""
    sides = [
        Side("one", lambda at: {"energy": first(at["board"])}),
        Side("two", lambda at: {"energy": second(at["board"])}),
    ]
    return study(sides, ["energy"], {"board": record}, 1.0)


def active(board_):
    return board_.power.active.value


def test_the_value_at_which_the_order_turns_is_found():
    """One side draws the active power, the other 9.3 W: the order turns there, and nowhere else."""
    result = found(active, lambda _: 9.3, board(active=ACTIVE))
    (verdict,) = result.verdicts
    assert (verdict.less, verdict.more, verdict.robust) == ("one", "two", False)
    (turn,) = verdict.turns
    assert (turn.number, turn.value, turn.above) == ("board power.active", "9.3 W", True)
    assert 0 < verdict.holds < 1
    text = shown(sensitivity(result), 120)
    assert "  turns where board power.active rises above 9.3 W" in text
    assert f"and in {verdict.holds:.1%} of 256 samples" in text


def test_figures_that_overlap_may_keep_their_order():
    """Both sides run on the same device: twice its power is less than three times it, whatever it is."""
    result = found(lambda one: 2 * active(one), lambda one: 3 * active(one), board(active=ACTIVE))
    (verdict,) = result.verdicts
    one, two = (result.between["energy"][name] for name in ("one", "two"))
    assert one.high > two.low
    assert verdict.robust
    assert verdict.ratio == pytest.approx((1.5, 1.5))
    assert "one takes less energy than two over all intervals" in shown(sensitivity(result), 120)


@pytest.mark.parametrize(("limit", "all_samples"), [(10.0, False), (47.9, True)])
def test_numbers_that_turn_it_only_together_are_found(limit, all_samples):
    """By sampling, or at their ends, where no sample comes so near to all of them at once."""
    power, share = ({"low": low, "value": 2 * low, "high": 4 * low, **GUESS} for low in (1.0, 0.25))
    data = board(idle=power, active={**ACTIVE, "high": 12.0}).model_dump(mode="json")
    data["efficiency"] = dict.fromkeys(data["efficiency"], share)

    def product(one):
        efficiency = one.efficiency.dense.value * one.efficiency.depthwise.value
        return active(one) * one.power.idle.value * efficiency

    result = found(product, lambda _: limit, Roofline.model_validate(data, context=RESOLVED))
    (verdict,) = result.verdicts
    assert (verdict.turns, verdict.robust) == ([], False)
    assert (verdict.holds == 1, verdict.together) == (all_samples, True)
    if all_samples:
        assert verdict.ratio == pytest.approx((47.9 / 48, 47.9 / (5 / 16)))
        text = " ".join(shown(sensitivity(result), 120).split())
        assert "in 100% of 256 samples; no number alone turns it, several together do" in text


def test_assumed_numbers_are_swept_by_the_factor():
    """By 1/2 and 2, or to their interval's ends if these lie farther out; measured ones to their ends."""

    def ranges(record, factor):
        return {one.name: (one.low, one.high) for one in swept("record", record, factor)}

    measured = {"value": 2.0, "high": 3.0, "status": "measured", "source": "test"}
    record = board(idle=measured, active={**ACTIVE, "low": 1.0, "high": 7.0})
    expected = {"power.idle": (2.0, 3.0), "power.active": (1.0, 12.0), "launch_overhead": (0.5e-3, 2e-3)}
    expected |= {"efficiency.dense": (0.25, 1.0), "efficiency.depthwise": (0.05, 0.2)}
    assert ranges(record, 2.0).items() >= expected.items()
    assert ranges(record, 1.0) == {"power.idle": (2.0, 3.0), "power.active": (1.0, 7.0)}
    data = link().model_dump(mode="json") | {"loss": sourced(0.6), "handshakes": sourced(1)}
    way = ranges(Link.model_validate(data, context=RESOLVED), 2.0)
    assert (way["loss"], way["handshakes"]) == ((0.3, pytest.approx(0.8)), (0, 2))


@pytest.mark.parametrize("kind", ["devices", "links"])
def test_every_number_that_is_swept_stays_valid(kind):
    """At both ends of its range, alone, every number of every file is one that the file might have."""
    for name in catalogue.entries(kind):
        record = fleets.device(name) if kind == "devices" else fleets.link(name)
        for one in swept(name, record, 3.0):
            if one.name.startswith("power."):
                continue
            for share in (-1.0, 1.0):
                moved = changed(record, {one.name: one.fixed(share)}.get)
                type(record).model_validate(moved.model_dump(mode="json"), context=RESOLVED)


def test_runs_and_profiles_are_studied(capsys, tmp_path):
    """Their energies, on the same numbers at a time."""
    settings = ["sweep={method: [fedavg, spherefed]}", "server.rounds=1"]
    fleet = "fleet={members: [{device: raspberry-pi-4b, link: ethernet}]}"
    run("quickstart", overrides=[*settings, fleet, "engine=null"], out=tmp_path / "runs")
    board = ["--device", "raspberry-pi-4b", "--link", "ethernet", "--set", settings[0]]
    for command in (["compare", tmp_path / "runs"], ["profile", "quickstart", *board]):
        status, out, err = run_command(capsys, *command, "--sensitivity", "1", "--json")
        assert status == 0, err
        studied = json.loads(out)["sensitivity"]
        (one,) = studied if isinstance(studied, list) else [studied]
        assert {each["quantity"] for each in one["verdicts"]} >= {"energy"}
        assert "raspberry-pi-4b launch_overhead" in {each["number"] for each in one["effects"]}


def test_runs_on_other_numbers_are_not_compared(capsys, tmp_path):
    """A link of one name whose rate was changed between two runs would not be the same for both."""
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
