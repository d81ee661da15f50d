"""What a figure reads like, in every state that it may have."""

import pytest

from edgefl.analysis.values import NOT_REACHED, Difference, Value
from edgefl.core.corners import Interval
from edgefl.show.values import alike, cell, difference_text, setting_text


def bounded(mean, low, high, **more):
    """A figure with its bounds."""
    return Value(mean, Interval(low, high), **more)


def some(joules, known=12, clients=24, between=None):
    """A sum over clients that is known of some."""
    return Value.over_clients(joules, known, clients, between)


CELLS = [
    (None, "J", "-"),
    (NOT_REACHED, "s", "not reached"),
    (Value(None), "J", "unknown"),
    # Bounds: the unit once where all have the same; an end that is equal as shown is not repeated.
    (bounded(12.0, 8.0, 21.0), "J", "12 J (8 to 21)"),
    (bounded(12.0, 12.001, 12.002), "J", "12 J"),
    (bounded(12.0, 12.0, 21.0), "J", "12 J (at most 21 J)"),
    (bounded(12.0, 12.0, None), "J", ">12 J"),
    (bounded(12.0, 8.0, None), "J", "12 J (at least 8 J)"),
    (bounded(1200.0, 800.0, 2100.0), "J", "1.2 kJ (800 J to 2.1 kJ)"),
    (bounded(120.0, 80.0, 2100.0), "J", "120 J (80 J to 2.1 kJ)"),
    (bounded(None, 0.0, 25.0), "J", "at most 25 J"),
    (bounded(None, 8.0, 25.0), "J", "8 to 25 J"),
    (bounded(None, 8.0, 2500.0), "J", "8 J to 2.5 kJ"),
    (bounded(None, 25.0, 25.0), "J", "25 J"),
    (bounded(None, 8.0, None), "J", "at least 8 J"),
    (bounded(None, 0.0, None), "J", "unknown"),
    # A duration in two units is never cut.
    (bounded(200.0, 100.0, 300.0), "s", "3 min 20 s (1 min 40 s to 5 min 00 s)"),
    # Seeds: the interval, and of how many runs.
    (Value(11.0, half=2.48, runs=3, of=3), "s", "11 ±2.48 s"),
    (Value(1.5, half=0.25, runs=3, of=3), "s", "1.5 s ±250 ms"),
    (bounded(15.0, 10.0, 27.5, half=3.0, runs=2, of=2), "g", "15 ±3 g (10 to 27.5)"),
    (Value(2.0, runs=1, of=3), "s", "2 s (1 of 3)"),
    (Value(0.3, half=1e-17, runs=2, of=2), "J", "300 mJ"),
    # Sums over some clients.
    (some(10.0), "J", "unknown"),
    (Value(10.0, known=(9, 12), clients=(2000, 2400)), "J", "10 J (9 to 12 of 2,000 to 2,400 clients)"),
    # A share of a whole, or how many times it; of nothing there is none.
    (Value(3.0, whole=10.0), "J", "3 J (30%)"),
    (Value(3.0, whole=0.01), "J", "3 J (300x)"),
    (Value(0.0, whole=0.0), "B", "0 B"),
    (Value(3.0, whole=10.0, name="pixel-6"), "s", "pixel-6 3 s (30%)"),
    (Value(4.0, half=1.0, runs=2, of=3, whole=8.0), "s", "4 ±1 s (50%, 2 of 3)"),
    # Units.
    (Value(0.123), "share", "12.3%"),
    (Value(0.95, half=0.01, runs=2, of=2), "share", "95.0 ±1.0%"),
    (Value(5e6), "FLOP", "5 MFLOP"),
    (Value(1234.0), "", "1,234"),
    (Value(0.1), "index", "0.10"),
    (Value(1.82779), "nats", "1.83 nats"),
    (Value(2e-6), "battery", "<0.001%"),
    (Value(0.0312), "battery", "3.12%"),
    (Value(23.4), "battery", "2,340%"),
    (Value(0.99), "days", "23 h 46 min"),
    (Value(1.001), "days", "1 day"),
    (Value(4321.0), "days", "4,321 days"),
]


@pytest.mark.parametrize(("value", "unit", "text"), CELLS)
def test_a_figure_in_words(value, unit, text):
    """As few characters as tell it."""
    assert cell(value, unit) == text


def test_a_figure_without_its_bounds():
    """As the short table has it; what is unknown has them anyway."""
    values = bounded(12.0, 8.0, 21.0), bounded(12.0, 12.0, None), bounded(None, 8.0, 25.0)
    assert [cell(value, "J", bounds=False) for value in values] == ["12 J", "12 J", "8 to 25 J"]


def apart(mean, half, pairs=5, of=5, *, paired=True):
    """A difference."""
    return Difference.within(mean, half, pairs, of, paired=paired)


@pytest.mark.parametrize(
    ("found", "unit", "text"),
    [
        (apart(-1.5, 0.25), "s", "-1.5 s ±250 ms"),
        (apart(0.012, 0.03), "share", "+1.2 ±3.0 points (not separable at 5 seeds)"),
        (apart(0.012, 0.03, 3), "share", "+1.2 ±3.0 points (not separable at 3 of 5 seeds)"),
        (apart(12.0, 3.0, 3), "J", "+12 ±3 J (3 of 5 seeds)"),
        (apart(12.0, 3.0, 3, 3, paired=False), "B", "+12 ±3 B (unpaired)"),
        (apart(12.0, None, 1), "FLOP", "+12 FLOP (one seed)"),
        (apart(12.0, 0.0, 2, 2), "B", "+12 B"),
        (apart(0.0, 0.0, 2, 2), "B", "equal"),
        (apart(0.0, 1.0, 2, 2), "B", "0 ±1 B (not separable at 2 seeds)"),
        (None, "B", "-"),
    ],
)
def test_a_difference_in_words(found, unit, text):
    """A sign, half of the interval, and what else must be known of it."""
    assert difference_text(found, unit) == text


@pytest.mark.parametrize(
    ("unit", "amounts", "name", "shown"),
    [
        ("s", [0.0124, 3.1], "s", ["0.012", "3.100"]),
        ("s", [5400, 0], "min", ["90.0", "0.0"]),
        ("s", [1e-5, 200], "min", ["<0.0001", "3.3333"]),
        ("s", [86400 * 4, 7200], "days", ["4.000", "0.083"]),
        ("B", [1_240_000, 86_000_000], "MB", ["1.2", "86.0"]),
        ("J", [-0.5, 0.002], "mJ", ["-500.0", "2.0"]),
        ("g", [2e-6, 5e-6], "µg", ["2.00", "5.00"]),
    ],
)
def test_the_unit_of_a_row_suits_the_greatest(unit, amounts, name, shown):
    """Which has three digits or two more; the least has two, or is said to be less than what is shown."""
    found, write = alike("it", unit, amounts)
    assert (found, [write(amount) for amount in amounts]) == (f"it ({name})", [(text, "") for text in shown])
    for same, none in ((unit, [0.0]), ("share", amounts), ("nats", amounts)):
        assert alike("it", same, none) == ("it", None)
    values = [cell(Value(amount), unit, write=write) for amount in amounts]
    assert values == shown


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [
        (None, "", "-"),
        (0.5, "", "0.5"),
        ([1, 2], "", "1, 2"),
        ([], "", "none"),
        ({"name": "sgd", "lr": 0.1}, "", "name sgd, lr 0.1"),
        (2e5, "server.uplink", "200 kbit/s"),
    ],
)
def test_a_setting_in_words(value, key, text):
    """With its unit where its key tells it."""
    assert setting_text(value, key) == text
