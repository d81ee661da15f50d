"""The settings of runs by dotted key, and those in which runs differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from edgefl.core.units import show_bits
from edgefl.show.table import MISSING
from edgefl.store import Reader


def dotted(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, by dotted key: ``{"method.name": "flexchill", "method.temperature": 4}``."""
    found: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{prefix}{key}"
        found |= dotted(inner, f"{name}.") if isinstance(inner, Mapping) else {name: inner}
    return found


def settings_of(reader: Reader) -> tuple[dict[str, Any], str]:
    """A run's resolved scenario by dotted key, and a digest of its fleet and devices.

    Raises:
        UserError: ``plan.yaml`` is missing or damaged.
    """
    resolved = reader.resolved()
    scenario = resolved.pop("scenario")
    return dotted(scenario), hashlib.sha256(canonical(resolved).encode()).hexdigest()[:16]


def canonical(value: Any) -> str:
    """A text that equal values have in common."""
    return json.dumps(value, sort_keys=True, default=str)


def differences(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The keys in which some settings differ: their values in order, None where there is no such key."""
    keys = dict.fromkeys(key for each in settings for key in each)
    rows = {key: [each.get(key) for each in settings] for key in keys}
    return {key: values for key, values in rows.items() if len(set(map(canonical, values))) > 1}


# Numbers in base units that are shown with their unit, by dotted key.
_QUANTITIES = {"server.uplink": show_bits, "server.downlink": show_bits}


def setting_text(value: Any, key: str = "") -> str:
    """A setting's value for display.

    Args:
        value: the setting's.
        key: its dotted key, by which some numbers have a unit.
    """
    if value is None:
        return MISSING
    if key in _QUANTITIES:
        return _QUANTITIES[key](value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {setting_text(one)}" for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(setting_text, value)) or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
