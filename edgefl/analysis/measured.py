"""A run's measures, as far as they are of all clients, classes and layers together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edgefl.store import Reader


@dataclass(frozen=True)
class Measured:
    """A measure's last values.

    Attributes:
        round: the round after which it was taken, from 0.
        unit: of its values: "share", another, or empty.
        figures: by model and figure, as in "global" or "trained in-local"; in the order that the measure has.
    """

    round: int
    unit: str
    figures: Mapping[str, float]


# The last version of which a measure has values.
_LAST = """
SELECT one.* FROM measures AS one JOIN
  (SELECT measure, MAX(version) AS version FROM measures WHERE client IS NULL AND label = '' GROUP BY measure)
  USING (measure, version)
WHERE client IS NULL AND label = '' ORDER BY one.rowid
"""


def measured(reader: Reader) -> dict[str, Measured] | None:
    """The last values of a run's measures; None if it asked for none."""
    units: Mapping[str, str] = reader.meta.get("measures", {})
    rows = reader.query(_LAST)
    figures, rounds = together(rows), {row["measure"]: row["round"] for row in rows}
    found = {name: Measured(rounds[name], units.get(name, ""), values) for name, values in figures.items()}
    return {name: found[name] for name in units if name in found} if units else None


def together(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The figures of one version's measures, as in ``Measured``, by measure.

    Args:
        rows: of the table ``measures``.
    """
    figures: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["client"] is None and not row["label"]:
            key = f"{row['model']} {row['figure']}".strip()
            figures.setdefault(row["measure"], {})[key] = row["value"]
    return figures
