"""Parsing and formatting of quantities with units ("12 Mbit/s", "4 GB", "7.2 W").

Each dimension is stored as a float in one base unit, which names show: ``_s``, ``_bytes``, ``_bps`` (bits a
second), ``_w``, ``_j``, ``_flops`` (operations), ``_flops_s`` (operations a second), ``_hz``, ``_g`` (grams).
"""

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from edgefl.core.errors import short
from edgefl.core.sourced import Costs
from edgefl.core.yamls import WRITTEN

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}

# dimension -> (an example, its units)
_DIMENSIONS: dict[str, tuple[str, dict[str, float]]] = {
    "time": ("5 ms", {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}),
    "power": ("7.2 W", {"W": 1.0, "mW": 1e-3, "kW": 1e3}),
    "energy": ("15 Wh", {"J": 1.0, "mJ": 1e-3, "kJ": 1e3, "Wh": 3600.0}),
    "size": ("4 GB", {f"{p}B": f for p, f in {**_DECIMAL, **_BINARY}.items()}),
    "byte rate": ("2.74 GB/s", {f"{p}B/s": f for p, f in {**_DECIMAL, **_BINARY}.items()}),
    "bit rate": ("12 Mbit/s", {f"{p}bit/s": f for p, f in _DECIMAL.items()}),
    "operation rate": ("57.6 GFLOP/s", {f"{p}FLOP/s": f for p, f in _DECIMAL.items()}),
    "frequency": ("1.8 GHz", {f"{p}Hz": f for p, f in _DECIMAL.items()}),
    "mass": ("84 kg", {"g": 1.0, "kg": 1e3, "t": 1e6}),
    "energy per byte": ("0.008 kWh/GB", {"kWh/GB": 1.0, "Wh/GB": 1e-3}),
}

_MINUTE_S = 60
_HOUR_S = 3600
_DAY_S = 86_400
# Of a full battery; below it digits say nothing.
_LEAST_CHARGE = 1e-5

_QUANTITY = re.compile(r"^\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z/]+)\s*$")


def parse(text: object, dimension: str) -> float:
    """A quantity in the dimension's base unit; a ``ValueError`` where it is none, negative or not finite."""
    example, units = _DIMENSIONS[dimension]
    if text == 0 and not isinstance(text, bool):
        return 0.0
    match, shown = _QUANTITY.match(text) if isinstance(text, str) else None, short(repr(text))
    if match is None:
        raise ValueError(f"{shown} is no {dimension}; write a number and a unit, such as '{example}'")
    number, unit = match[1], match[2]
    if unit not in units:
        raise ValueError(f"{unit!r} is no unit of {dimension}; use {', '.join(units)}, as in '{example}'")
    amount = float(number) * units[unit]
    if amount < 0 or not math.isfinite(amount):
        raise ValueError(f"{shown} is not a valid {dimension}: it must be finite and not negative")
    return amount


def _field(dimension: str) -> tuple[BeforeValidator, WithJsonSchema]:
    schema = {"type": "string", "description": f"{dimension}, as in '{_DIMENSIONS[dimension][0]}'"}

    def read(value: object, info: ValidationInfo) -> float:
        resolved = info.context not in (None, WRITTEN) and isinstance(value, (int, float))
        return float(value) if resolved else parse(value, dimension)  # type: ignore[arg-type]

    return BeforeValidator(read), WithJsonSchema(schema)


Seconds = Annotated[float, *_field("time"), Costs.MORE]
Watts = Annotated[float, *_field("power"), Costs.MORE]
Joules = Annotated[float, *_field("energy")]
Bytes = Annotated[float, *_field("size")]
BytesPerSecond = Annotated[float, *_field("byte rate"), Costs.LESS]
BitsPerSecond = Annotated[float, *_field("bit rate"), Costs.LESS]
FlopsPerSecond = Annotated[float, *_field("operation rate"), Costs.LESS]
Hertz = Annotated[float, *_field("frequency"), Costs.LESS]
Grams = Annotated[float, *_field("mass"), Costs.MORE]
KwhPerGb = Annotated[float, *_field("energy per byte"), Costs.MORE]


LADDERS: dict[str, list[tuple[float, str]]] = {
    "s": [(86400, "days"), (3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "us")],
    # An hour of client-seconds is no unit of theirs.
    "client-seconds": [(1e9, "10⁹ s"), (1e6, "10⁶ s"), (1e3, "10³ s"), (1, "s"), (1e-3, "10⁻³ s")],
    "B": [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")],
    "J": [(1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ"), (1, "J"), (1e-3, "mJ"), (1e-6, "uJ")],
    "FLOP": [(1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"), (1, "FLOP")],
    "bit/s": [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1, "bit/s")],
    "g": [(1e6, "t"), (1e3, "kg"), (1, "g"), (1e-3, "mg"), (1e-6, "ug")],
}
"""The units of amounts, the largest first, each with how many of the base unit it is."""
# Of what is printed in one unit, the greatest is at least so many of it: 90 s are no 1.5 min.
_LEAST_TIMES = 3


def common_unit(unit: str, greatest: float) -> tuple[float, str]:
    """The unit in which amounts are printed alike, by the greatest: (base units in it, its name)."""
    steps = LADDERS[unit]
    least = _LEAST_TIMES if unit == "s" else 1
    fits = (step for step in steps if greatest >= (least if step[0] > 1 else 1) * step[0])
    scale, name = next(fits, steps[-1] if greatest else next(step for step in steps if step[0] == 1))
    return scale, f"µ{name[1:]}" if name.startswith("u") else name


def _scaled(value: float, steps: list[tuple[float, str]]) -> tuple[str, str]:
    """Three digits, in the largest unit that gives at least 1 after rounding; zero in the base unit."""
    reached = (step for step in steps if abs(value) >= 0.9995 * step[0] or (value == 0 and step[0] == 1))
    scale, unit = next(reached, steps[-1])
    return _three_digits(value / scale), unit


def amount(value: float, unit: str) -> tuple[str, str]:
    """A number for display and its unit: ``("12.4", "kJ")``; the unit is empty where the text has several.

    Args:
        value: in base units.
        unit: "s", "B", "J", "FLOP", "g", "bit/s", "share", "battery" (a full one), "days", "index", "loss",
            empty for a count, or any other, which stands behind the number as it is.
    """
    if unit == "s" and round(abs(value)) >= _MINUTE_S:
        return show_seconds(value), ""
    if unit == "days" and value < 1:
        return amount(value * _DAY_S, "s")
    if unit in LADDERS:
        return _scaled(value, LADDERS[unit][3 * (unit == "s") :])
    number = _NUMBERS.get(unit, _plain)(value)
    return number, "day" if unit == "days" and number == "1" else _NAMES.get(unit, unit)


def _charge(share: float) -> str:
    """A share of a full battery, with three digits; a day may take several of them."""
    return "<0.001" if 0 < share < _LEAST_CHARGE else _three_digits(100 * share)


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"  # noqa: PLR2004 - else it has an exponent


def _plain(value: float) -> str:
    """Three digits without an exponent."""
    return f"{Decimal(f'{value:.3g}'):f}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


_NUMBERS: Mapping[str, Callable[[float], str]] = {
    "share": lambda value: show_share(value, 1).removesuffix("%"),
    "battery": _charge,
    "days": _three_digits,
    "index": "{:.2f}".format,
    "": _count,
}
_NAMES = {"share": "%", "battery": "%", "index": "", "loss": ""}


def show(value: float, unit: str) -> str:
    """A number with its unit for display; see ``amount``."""
    number, name = amount(value, unit)
    return f"{number}{'' if name == '%' or not name else ' '}{name}"


show_bytes = partial(show, unit="B")
show_bits = partial(show, unit="bit/s")
show_flops = partial(show, unit="FLOP")
show_joules = partial(show, unit="J")
show_grams = partial(show, unit="g")


def show_seconds(value: float) -> str:
    """A duration for display: ``"2 h 05 min"``, ``"3 min 12 s"``, ``"4.31 s"``, ``"12 ms"``."""
    if round(value) >= _HOUR_S:
        hours, rest = divmod(round(value / 60), 60)
        return f"{hours:,} h {rest:02d} min"
    if round(value) >= _MINUTE_S:
        minutes, rest = divmod(round(value), 60)
        return f"{minutes} min {rest:02d} s"
    return " ".join(_scaled(value, LADDERS["s"][3:]))


_LEAST_SHARE = 1e-4


def show_share(value: float, digits: int = 0) -> str:
    """A share, 1 for all, as a percentage for display: ``"12%"``, ``"0.03%"``, ``"<0.01%"``.

    ``digits`` are decimals; as many more as a share that is not zero needs to show, two at most.
    """
    if value and abs(value) < _LEAST_SHARE:
        return "<0.01%" if value > 0 else ">-0.01%"
    while value and digits < 2 and not float(f"{abs(value):.{digits + 2}f}"):  # noqa: PLR2004 - two decimals
        digits += 1
    return f"{value:.{digits}%}"


def show_count(count: int, what: str) -> str:
    """A number of things for display: ``"1 run"``, ``"1,200 runs"``."""
    return f"{count:,} {what}{'s' * (count != 1)}"
