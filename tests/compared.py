"""Runs with something in every row of a comparison, and comparisons with every row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import RenderableType

import edgefl
from edgefl.analysis.carbon import Amount
from edgefl.analysis.settings import dotted
from edgefl.core.units import show_grams
from edgefl.runs import Result
from edgefl.show.compare import comparison
from edgefl.show.table import Line, Table, parts
from edgefl.show.values import between

every = partial(comparison, every=True)


def tables_of(view: RenderableType) -> list[Table]:
    """A view's tables."""
    return [one for one in parts(view) if isinstance(one, Table)]


def lines_of(view: RenderableType) -> list[str]:
    """What stands between a view's tables."""
    return [one.text for one in parts(view) if isinstance(one, Line) and one.text]


# Late jobs, batteries, emissions, measures, both models, and a target that is reached at once.
RICH: dict[str, Any] = {
    "name": "rich",
    "task": {
        "dataset": "digits",
        "clients": 6,
        "partition": {"name": "dirichlet", "alpha": 0.5, "min_samples": 20},
    },
    "model": {"name": "mlp", "hidden": [8]},
    "method": "fedavg",
    "local": {"epochs": 1, "batch_size": 16, "optimizer": {"name": "sgd", "lr": 0.3}},
    "fleet": {
        "members": [
            {"device": "pixel-6", "link": "4g"},
            {"device": "raspberry-pi-4b", "link": "ethernet"},
            {"device": "raspberry-pi-zero-2w", "link": "wifi-pi4"},
        ],
        "carbon": {"regions": "DE", "server": {"power": "20 W"}, "embodied": "busy"},
    },
    "server": {"participants": 3, "rounds": 3, "policy": {"name": "overselect", "factor": 2}},
    "evaluate": {
        "target": 0.05,
        "models": ["global", "personal"],
        "measures": ["class-accuracy", "weight-divergence"],
    },
}


def rich(out: Path, **changes: Any) -> Result:
    """Runs them, with some settings changed."""
    return edgefl.run({**RICH, **changes}, engine="loop", out=out)


def emission(amount: Amount) -> str:
    """An amount as tables have it; of some clients with their number."""
    if amount.grams is not None and amount.between is None and amount.known < amount.clients:
        return f"{show_grams(amount.grams)} ({amount.known} of {amount.clients} clients)"
    return between(amount.grams, amount.between, "g")


def at(figures: Mapping[str, Any], key: str) -> Any:
    """What a ``Row``'s key stands for in a record as nested mappings; None where it is unknown."""
    flat = dotted(figures)
    first, *more = re.split(r" ([+-]) ", key)
    found = flat[first]
    for sign, term in zip(more[::2], more[1::2], strict=True):
        if found is None or flat[term] is None:
            return None
        found += flat[term] if sign == "+" else -flat[term]
    return found
