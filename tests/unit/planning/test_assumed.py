"""What the numbers of devices and links assume, in short."""

from plans import board

from edgefl.core.plan import Assumption
from edgefl.planning.assumed import assumptions, in_short


def test_assumed_numbers_become_one_line():
    """All are counted, three records are named; equal consequences are told once, other lines as they are."""
    numbers = ("power.idle", "memory.total")
    lines = [Assumption("device", f"board-{number}", "assumed both", numbers) for number in range(2)]
    lines += [*[Assumption("link", "link 5g", "assumed loss", ["loss"])] * 2, "the radio is always on"]
    unknown = "power unknown, so its clients' energy is unknown"
    lines += [Assumption("device", f"board-{number}", unknown) for number in range(2)]
    assert in_short(lines) == [
        "the radio is always on",
        "board-0, board-1: power unknown, so its clients' energy is unknown",
        "5 numbers are assumed, of device board-0, device board-1, link 5g: edgefl show device board-0",
    ]
    (many,) = in_short([*lines[:3], Assumption("device", "board-7", "assumed power.idle", ["power.idle"])])
    assert many.startswith("6 numbers are assumed, of device board-0, device board-1, link 5g and 1 more: ")
    assert in_short(lines[2:3]) == ["1 number is assumed, of link 5g: edgefl show link 5g"]


def test_energies_without_a_value_are_told_from_unknown_ones():
    """A power that has only bounds bounds the energy; one that has nothing makes it unknown."""
    bounded = {"high": 10.0, "status": "assumed", "source": "test"}
    boards = {"one": board(active=bounded), "two": board(idle=bounded, active=bounded)}
    boards["three"] = board(single_core={"status": "unknown", "source": "test"})
    boards["four"] = board()
    assert in_short(line for line in assumptions(boards, {}) if "assumed" not in line) == [
        "one, two: power has no value, so its clients' energy has bounds alone",
        "three: power unknown, so its clients' energy is unknown",
    ]
