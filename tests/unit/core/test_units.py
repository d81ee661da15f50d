"""Quantities: parsed from text, and formatted for display."""

import pytest

from edgefl.core.units import parse, show_bytes, show_count, show_flops, show_joules, show_seconds, show_share

GOOD = {
    "time": {"2 s": 2, "5 ms": 5e-3, "7 us": 7e-6, "9 ns": 9e-9, "3 min": 180, "2 h": 7200, "0 s": 0, 0: 0},
    "power": {"7.2 W": 7.2, "300 mW": 0.3, "1.5 kW": 1500},
    "energy": {"4 J": 4, "4 mJ": 4e-3, "4 kJ": 4e3, "15 Wh": 54e3},
    "size": {
        "8 B": 8, "1 kB": 1e3, "1 KB": 1e3, "1 MB": 1e6, "4 GB": 4e9, "1 TB": 1e12,
        "1 KiB": 1024, "1 MiB": 2**20, "4 GiB": 2**32, "1 TiB": 2**40,
    },
    "byte rate": {"2.74 GB/s": 2.74e9, "1 MiB/s": 2**20, "3 B/s": 3},
    "bit rate": {"264 bit/s": 264, "1 kbit/s": 1e3, "12 Mbit/s": 12e6, "1 Gbit/s": 1e9, "1 Tbit/s": 1e12},
    "operation rate": {"57.6 GFLOP/s": 57.6e9, "1 TFLOP/s": 1e12, "1 FLOP/s": 1},
    "frequency": {"1.8 GHz": 1.8e9, "100 MHz": 1e8, "5 Hz": 5},
}  # fmt: skip
SPELLED = {" 1e3ms ": 1, ".5 s": 0.5, "+1.5e-3 s": 1.5e-3}


@pytest.mark.parametrize("dimension", GOOD)
def test_every_unit(dimension):
    for text, expected in {**GOOD[dimension], **(SPELLED if dimension == "time" else {})}.items():
        assert parse(text, dimension) == pytest.approx(expected, rel=1e-15), text


@pytest.mark.parametrize(
    ("text", "dimension", "says"),
    [
        (5, "time", "write a number and a unit, such as '5 ms'"),
        (None, "power", "such as '7.2 W'"),
        (True, "time", "True is no time"),
        ("1,5 s", "time", "is no time"),
        ("nan s", "time", "is no time"),
        ("12 MB/s", "bit rate", "'MB/s' is no unit of bit rate; use bit/s"),
        ("-5 ms", "time", "must be finite and not negative"),
        ("1e300 TB", "size", "must be finite and not negative"),
    ],
)
def test_bad_text_says_what_to_write(text, dimension, says):
    with pytest.raises(ValueError, match=r"time|power|size|rate") as caught:
        parse(text, dimension)
    assert says in str(caught.value)


SHOWN = {
    show_bytes: {
        0: "0 B", 999: "999 B", 999_499: "999 kB", 999_600: "1 MB", 4.47e7: "44.7 MB", 5e15: "5,000 TB",
    },
    show_flops: {1.236e9: "1.24 GFLOP", 0: "0 FLOP"},
    show_joules: {12_400: "12.4 kJ", 0: "0 J", 0.0021: "2.1 mJ", 3e-9: "0.003 uJ"},
    show_seconds: {
        0: "0 s", 0.012: "12 ms", 4.314: "4.31 s", 59.4: "59.4 s", 59.7: "1 min 00 s",
        192: "3 min 12 s", 3599.7: "1 h 00 min", 7500: "2 h 05 min",
    },
    lambda count: show_count(count, "run"): {0: "0 runs", 1: "1 run", 1200: "1,200 runs"},
    # What is not nothing is not shown as nothing; no digits below a hundredth of a percent are shown.
    lambda share: show_share(share, 0): {0.0: "0%", 0.0003: "0.03%", 0.004: "0.4%", 1.0: "100%"},
    lambda share: show_share(share, 1): {0.0: "0.0%", 2.5e-5: "<0.01%", -2.5e-5: ">-0.01%", 0.8667: "86.7%"},
}  # fmt: skip


@pytest.mark.parametrize("show", SHOWN)
def test_shown_to_people(show):
    """Three digits in the unit that fits after rounding; never 60 s, 60 min or 1,000 of a smaller unit."""
    assert {value: show(value) for value in SHOWN[show]} == SHOWN[show]
