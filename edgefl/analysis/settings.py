"""The settings of runs by dotted key, and those in which runs differ, as far as they tell something."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from edgefl.store.reader import Reader


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
    resolved = dict(reader.document.data)
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


# Of a fleet that has no name.
_TITLE = "fleet.title"
_LINKS = "fleet.links."


def differing(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The settings in which they differ, by dotted key: their values in order, None where there is none.

    A fleet without a name is its title. A setting that differs only because runs have other components, which
    lack it, is left out. So is a link of the fleet's own that some lack; who is on which is told besides.
    """
    found = differences(settings)
    if "fleet" in found:
        found["fleet"] = [fleet_name(one) or None for one in settings]
    return {
        key: values
        for key, values in found.items()
        if not _is_another_component(key, values, found) and not _is_another_link(key, settings)
    }


def fleet_name(settings: Mapping[str, Any]) -> str:
    """The fleet's name, or its title where it has none; empty where it has neither."""
    return str(settings.get("fleet") or settings.get(_TITLE) or "")


def _is_another_component(key: str, values: Sequence[Any], found: Mapping[str, Sequence[Any]]) -> bool:
    """Whether runs differ in a setting only because they have another component, which lacks it."""
    if not _of_another(key, found):
        return False
    texts = [None if value is None else canonical(value) for value in values]
    if len(set(texts) - {None}) < 2:  # noqa: PLR2004 - one value is no difference
        return True
    if None not in texts or key.endswith(".name"):
        return False
    # Those of one name and different components, such as the mu of fedprox and of moon, are not compared.
    groups: dict[tuple[Any, ...], set[str | None]] = {}
    for place, text in enumerate(texts):
        owners = tuple(found[owner][place] for owner in _owners(key) if owner in found)
        groups.setdefault(owners, set()).add(text)
    return all(len(group) == 1 for group in groups.values())


def _is_another_link(key: str, settings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a setting is of a link that not all fleets have: one that is replayed has all that it names."""
    if not key.startswith(_LINKS):
        return False
    own = f"{_LINKS}{key.removeprefix(_LINKS).partition('.')[0]}."
    return any(all(not other.startswith(own) for other in each) for each in settings)


def _of_another(key: str, found: Mapping[str, Sequence[Any]]) -> bool:
    """Whether runs lack a setting because they have another component, or a fleet that is given by name."""
    if "fleet" in found and key.startswith("fleet."):
        return key != "fleet.link"
    names = (found.get(owner, ()) for owner in _owners(key))
    return any(len({name for name in each if name is not None}) > 1 for each in names)


def _owners(key: str) -> list[str]:
    """The keys of the names of the components that a setting is in."""
    keys = key.split(".")
    return [".".join([*keys[:depth], "name"]) for depth in range(1, len(keys))]
