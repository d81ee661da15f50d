"""What the numbers of devices and links assume, in short."""

from edgefl.planning.assumed import in_short


def test_assumed_numbers_become_one_line():
    """All are counted, three records are named; equal consequences are told once, other lines as they are."""
    lines = [f"board-{number}: assumed power.idle, memory.total" for number in range(2)]
    lines += ["link 5g: assumed loss", "link 5g: assumed loss", "the radio is always on"]
    lines += [f"board-{number}: power unknown, so its clients' energy is unknown" for number in range(2)]
    assert in_short(lines) == [
        "the radio is always on",
        "board-0, board-1: power unknown, so its clients' energy is unknown",
        "5 numbers are assumed, of device board-0, device board-1, link 5g: edgefl show device board-0",
    ]
    (many,) = in_short([*lines[:3], "board-7: assumed power.idle"])
    assert many.startswith("6 numbers are assumed, of device board-0, device board-1, link 5g and 1 more: ")
    assert in_short(["link 5g: assumed loss"]) == ["1 number is assumed, of link 5g: edgefl show link 5g"]
