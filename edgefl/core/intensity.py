"""The carbon intensity of regions' grids, by hour; from the shipped table or a user's CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.core.draws import Floats
from edgefl.core.errors import UserError
from edgefl.core.nodes import short
from edgefl.core.poisson import Ints
from edgefl.core.yamls import Document, text_of

HOUR_S = 3600.0
J_PER_KWH = 3.6e6
_DAY = 24

# A year of lignite is 1,100 g/kWh; beyond this it is a mistake in the unit.
MOST_G_PER_KWH = 10_000.0
# Of a file, and of a region: ten years.
_MOST_BYTES = 50_000_000
_MOST_HOURS = 87_840
_COLUMNS = ["region", "hour", "g_per_kwh"]

_TABLE = Path(__file__).with_name("carbon.yaml")


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The shipped table as plain data."""
    return dict(Document.read(_TABLE).data)


def shipped(name: str, *, hourly: bool) -> dict[str, Any]:
    """A region of the shipped table: "g_per_kwh", "status" and "source" of a ``carbon.Region``.

    Args:
        name: the country's two letters (ISO 3166-1), one of the table's.
        hourly: take the means by hour where there are any, and the year's mean elsewhere.
    """
    found = table()
    sources, mean = found["sources"], found["means"][name]
    by_hour = found["hours"].get(name) if hourly else None
    if by_hour is None:
        source = f"mean of {mean['year']}: {sources['mix']}"
        return {"g_per_kwh": f"{mean['mean']}", "status": "derived", "source": source}
    source = f"{by_hour['file']}, {by_hour['year']}: {sources['hours']}"
    return {"g_per_kwh": by_hour["hours"], "status": "derived", "source": source}


def numbers(hours: str) -> list[float]:
    """The intensities of a text, g CO2e/kWh.

    Raises:
        ValueError: one of them is no number between 0 and ``MOST_G_PER_KWH``, or their number is not 1 or of
            whole days.
    """
    found = [_intensity(word) for word in hours.split()]
    _check_count(len(found))
    return found


def _check_count(count: int) -> None:
    if count != 1 and (count % _DAY or not 0 < count <= _MOST_HOURS):
        raise ValueError(f"give 1 intensity, or one for each hour of up to 3,660 whole days, not {count:,}")


def _intensity(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_G_PER_KWH:
        raise ValueError(f"{short(word)!r} must be g CO2e/kWh, between 0 and {MOST_G_PER_KWH:,.0f}")
    return value


def written(values: Iterable[float]) -> str:
    """Intensities as text, as ``numbers`` reads it."""
    return " ".join(f"{value:.10g}" for value in values)


@lru_cache(maxsize=4)
def read(path: Path, text: str) -> dict[str, str]:
    """The regions of a CSV file: their intensities by hour, as text.

    Args:
        path: the file, for messages.
        text: what is in it; see ``text_of_csv``.

    Raises:
        UserError: a line is wrong.
    """
    lines = csv.reader(text.splitlines(), strict=True)
    found: dict[str, list[float]] = {}
    try:
        _check_columns(next(lines, []))
        for fields in lines:
            if fields:
                _add(fields, found)
    except (csv.Error, ValueError) as error:
        raise UserError(str(error), where=f"{path}:{max(lines.line_num, 1)}") from None
    if not found:
        raise UserError("there are no intensities", where=str(path))
    for region, values in found.items():
        try:
            _check_count(len(values))
        except ValueError as error:
            raise UserError(f"region {short(region)!r}: {error}", where=str(path)) from None
    return {region: written(values) for region, values in found.items()}


def text_of_csv(path: Path) -> str:
    """What is in a CSV file.

    Raises:
        ScenarioError: it cannot be read, is not UTF-8 or too large.
    """
    return text_of(path, _MOST_BYTES)


def _check_columns(fields: list[str]) -> None:
    if [name.strip() for name in fields] != _COLUMNS:
        raise ValueError(f"the first line must be {','.join(_COLUMNS)}")


def _add(fields: list[str], found: dict[str, list[float]]) -> None:
    """Adds a row; the hours of a region come in order, from 0."""
    if len(fields) != len(_COLUMNS):
        raise ValueError(f"{short(','.join(fields))!r} must be a region, an hour and g CO2e/kWh")
    region, hour, word = (field.strip() for field in fields)
    if not region:
        raise ValueError("the region has no name")
    values = found.setdefault(region, [])
    if hour != str(len(values)):
        raise ValueError(
            f"region {short(region)!r}: its next hour must be {len(values)}, not {short(hour)!r}"
        )
    values.append(_intensity(word))


class Intensities:
    """Intensities of several regions, which repeat when their last hour is over.

    Attributes:
        regions: their places, by name.
    """

    def __init__(self, hours: Mapping[str, str], start_h: float) -> None:
        """Reads them.

        Args:
            hours: by region, as ``numbers`` reads them, from hour 0.
            start_h: the hour at which the virtual clock begins.
        """
        values = [np.array(numbers(text)) for text in hours.values()]
        self.regions = {name: place for place, name in enumerate(hours)}
        self._start_h = start_h
        self._period = np.array([len(each) for each in values])
        self._first = np.cumsum(self._period) - self._period
        self._values = np.concatenate(values)
        # Sums of the hours before each one, and of all.
        self._before = np.concatenate([np.cumsum(each) - each for each in values])
        self._whole = np.array([each.sum() for each in values])

    def mean(self, region: Ints, start_s: Floats, end_s: Floats) -> Floats:
        """The mean intensity of regions (n,) from one virtual second to another, (n,) each, in g/kWh.

        An interval that ends where it begins has the intensity of that time.
        """
        start, end = start_s / HOUR_S + self._start_h, end_s / HOUR_S + self._start_h
        found = self._at(region, np.floor(start))
        over = np.flatnonzero(np.floor(start) != np.floor(end))
        if len(over):
            found[over] = self._over_hours(region[over], start[over], end[over])
        return found

    def _over_hours(self, region: Ints, start: Floats, end: Floats) -> Floats:
        """The mean over intervals that end in a later hour than they begin in."""
        first, last = np.floor(start), np.floor(end)
        ends = (first + 1 - start) * self._at(region, first) + (end - last) * self._at(region, last)
        between = self._sum(region, last) - self._sum(region, first + 1)
        mean: Floats = (ends + between) / (end - start)
        return mean

    def _place(self, region: Ints, hour: Floats) -> Ints:
        place: Ints = self._first[region] + np.mod(hour, self._period[region]).astype(np.int64)
        return place

    def _at(self, region: Ints, hour: Floats) -> Floats:
        value: Floats = self._values[self._place(region, hour)]
        return value

    def _sum(self, region: Ints, hour: Floats) -> Floats:
        """The sum of the hours before an hour."""
        periods = np.floor(hour / self._period[region])
        total: Floats = periods * self._whole[region] + self._before[self._place(region, hour)]
        return total


def grams(joules: Floats, intensity: Floats) -> Floats:
    """What energy emits, g CO2e; linear in the joules, so that bounds of them give bounds of it."""
    return joules * (intensity / J_PER_KWH)
