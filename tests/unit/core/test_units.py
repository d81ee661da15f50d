"""Quantities: parsed from text, and formatted for display."""

from __future__ import annotations

import pytest

from edgefl.core.units import parse, show_bytes, show_count, show_flops, show_joules, show_seconds

GOOD = [
    ("2 s", "time", 2),
    ("5 ms", "time", 5e-3),
    ("7 us", "time", 7e-6),
    ("9 ns", "time", 9e-9),
    ("3 min", "time", 180),
    ("2 h", "time", 7200),
    ("7.2 W", "power", 7.2),
    ("300 mW", "power", 0.3),
    ("1.5 kW", "power", 1500),
    ("4 J", "energy", 4),
    ("4 mJ", "energy", 4e-3),
    ("4 kJ", "energy", 4e3),
    ("15 Wh", "energy", 54e3),
    ("8 B", "bytes", 8),
    ("1 kB", "bytes", 1e3),
    ("1 KB", "bytes", 1e3),
    ("1 MB", "bytes", 1e6),
    ("4 GB", "bytes", 4e9),
    ("1 TB", "bytes", 1e12),
    ("1 KiB", "bytes", 1024),
    ("1 MiB", "bytes", 2**20),
    ("4 GiB", "bytes", 2**32),
    ("1 TiB", "bytes", 2**40),
    ("2.74 GB/s", "byte rate", 2.74e9),
    ("1 MiB/s", "byte rate", 2**20),
    ("3 B/s", "byte rate", 3),
    ("12 Mbit/s", "bit rate", 12e6),
    ("264 bit/s", "bit rate", 264),
    ("1 Gbit/s", "bit rate", 1e9),
    ("1 kbit/s", "bit rate", 1e3),
    ("1 Tbit/s", "bit rate", 1e12),
    ("57.6 GFLOP/s", "operation rate", 57.6e9),
    ("1 TFLOP/s", "operation rate", 1e12),
    ("1 FLOP/s", "operation rate", 1),
    ("1.8 GHz", "frequency", 1.8e9),
    ("100 MHz", "frequency", 1e8),
    ("5 Hz", "frequency", 5),
    (" 1e3ms ", "time", 1),
    (".5 s", "time", 0.5),
    ("+1.5e-3 s", "time", 1.5e-3),
    ("0 s", "time", 0),
    (0, "time", 0),
]


@pytest.mark.parametrize(("text", "dimension", "expected"), GOOD)
def test_every_unit(text, dimension, expected):
    """Text with a unit gives the amount in the base unit; spaces and exponents are accepted."""
    assert parse(text, dimension) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "dimension", "says"),
    [
        (5, "time", "write a number and a unit, such as '5 ms'"),
        ("5", "time", "write a number and a unit"),
        ("", "bytes", "such as '4 GB'"),
        (None, "power", "such as '7.2 W'"),
        (False, "time", "False is not a time"),
        (True, "time", "True is not a time"),
        ([], "time", "is not a time"),
        ("fast", "bit rate", "such as '12 Mbit/s'"),
        ("1,5 s", "time", "is not a time"),
        ("1 2 s", "time", "is not a time"),
        ("0x5 s", "time", "is not a time"),
        ("nan s", "time", "is not a time"),
        ("12 MB/s", "bit rate", "'MB/s' is not a unit of bit rate; use one of bit/s"),
        ("12 mbit/s", "bit rate", "'mbit/s' is not a unit"),
        ("5 S", "time", "'S' is not a unit of time"),
        ("-5 ms", "time", "must be finite and not negative"),
        ("1e999 s", "time", "must be finite and not negative"),
        ("1e300 TB", "bytes", "must be finite and not negative"),
    ],
)
def test_bad_text_says_what_to_write(text, dimension, says):
    """Bare numbers, booleans, negative and infinite amounts are refused, and the right form is shown."""
    with pytest.raises(ValueError, match=r"time|power|bytes|rate") as caught:
        parse(text, dimension)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("show", "value", "expected"),
    [
        (show_bytes, 0, "0 B"),
        (show_bytes, 999, "999 B"),
        (show_bytes, 20480, "20.5 kB"),
        (show_bytes, 999_499, "999 kB"),
        (show_bytes, 999_600, "1 MB"),
        (show_bytes, 4.47e7, "44.7 MB"),
        (show_bytes, 5e15, "5,000 TB"),
        (show_flops, 1.236e9, "1.24 GFLOP"),
        (show_flops, 0, "0 FLOP"),
        (show_joules, 12_400, "12.4 kJ"),
        (show_joules, 0, "0 J"),
        (show_joules, 0.0021, "2.1 mJ"),
        (show_joules, 3e-9, "0.003 uJ"),
        (show_seconds, 0, "0 s"),
        (show_seconds, 0.012, "12 ms"),
        (show_seconds, 4.314, "4.31 s"),
        (show_seconds, 59.4, "59.4 s"),
        (show_seconds, 59.7, "1 min 00 s"),
        (show_seconds, 192, "3 min 12 s"),
        (show_seconds, 3599.7, "1 h 00 min"),
        (show_seconds, 7500, "2 h 05 min"),
    ],
)
def test_shown_to_people(show, value, expected):
    """Three digits in the unit that fits after rounding; never 60 s, 60 min or 1,000 of a smaller unit."""
    assert show(value) == expected


@pytest.mark.parametrize(("count", "text"), [(0, "0 runs"), (1, "1 run"), (1200, "1,200 runs")])
def test_counts_shown_to_people(count, text):
    """One thing is singular."""
    assert show_count(count, "run") == text
