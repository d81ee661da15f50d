"""Settings that do not stand in a scenario's own place: ``--set KEY=VALUE``, options, those of a sweep."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from edgefl.core.errors import ScenarioError, short
from edgefl.core.yamls import Document

SWEEP, PAIRS = "sweep", "runs"
SCALE, SCALES = "scale", "scales"


class Override(NamedTuple):
    """A setting, by its dotted key; the place of its value is what gave it, such as "--seed 3"."""

    key: str
    value: Document

    @classmethod
    def parse(cls, text: str) -> "Override":
        """One that was given as KEY=VALUE."""
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            what = f"{short(text)!r} is not KEY=VALUE"
            raise ScenarioError(what, where="--set", hint="for example --set server.rounds=5")
        return cls(key.strip(), Document.value(value, f"--set {short(text.strip())}", lines=False))

    @property
    def keys(self) -> list[str]:
        """The keys on the way to the value.

        Those of a sweep are dotted themselves: ``sweep.server.rounds`` is its axis ``server.rounds``, and
        ``sweep.runs.0.server.rounds`` a setting of the first of its runs.
        """
        first, _, rest = self.key.partition(".")
        if first != SWEEP or not rest:
            return self.key.split(".")
        return [SWEEP, *rest.split(".", 2)] if rest.split(".")[0] == PAIRS else [SWEEP, rest]


def put(document: Document, keys: Sequence[str], value: Document, above: int = 0) -> Document:
    """A document in which the value under ``keys`` is replaced.

    Mappings that are not there are made, and a component's bare name becomes a mapping. A component whose
    ``name`` changes loses its parameters, since another component has others. Of a part of a scenario,
    ``above`` says how many of the keys lead to it.
    """
    path: list[str | int] = [*keys[:above]]
    data = _put(document.data, keys, value, path)
    cut = tuple(path[above:])
    places = {at: place for at, place in document.places.items() if at[: len(cut)] != cut}
    places[cut] = value.file, 0
    places |= {(*cut, *at): place for at, place in value.places.items()}
    return replace(document, data=data, places=places)


def _is_renamed(keys: Sequence[str], component: Any, value: Document) -> bool:
    """Whether a component's name is replaced by another; see ``core.catalogue.find`` for what is the same."""
    before = component.get("name")
    if keys[-1] != "name" or keys[0] in {"name", SWEEP} or not isinstance(before, str):
        return False
    one, two = (name.casefold().replace("_", "-") for name in (before, str(value.data)))
    return one != two


def _put(data: Any, keys: Sequence[str], value: Document, path: list[str | int]) -> Any:
    """Data with another value; ``path`` takes the keys of what is replaced, with numbers in lists."""
    depth = len(path)
    if depth == len(keys):
        return value.data
    key = keys[depth]
    if isinstance(data, list):
        if key not in map(str, range(len(data))):
            what = ".".join(keys[:depth])
            hint = f"give a place from 0 to {len(data) - 1}" if data else "it is empty"
            raise ScenarioError(f"{'.'.join(keys)!r}: {what!r} is a list", where=value.place(), hint=hint)
        path.append(place := int(key))
        return [*data[:place], _put(data[place], keys, value, path), *data[place + 1 :]]
    if isinstance(data, str) and depth:
        data = {"like" if keys[depth - 1] == "fleet" else "name": data}
    data = {} if data is None else data
    if not isinstance(data, dict):
        what = f"{'.'.join(keys)!r}: {keys[depth - 1]!r} is not a mapping"
        raise ScenarioError(what, where=value.place())
    if depth == len(keys) - 1 and _is_renamed(keys, data, value):
        # All of the component is the value's then.
        return {key: value.data}
    path.append(key)
    return {**data, key: _put(data.get(key), keys, value, path)}


def within(key: str, other: str) -> bool:
    """Whether a dotted key equals another, or is one of its parts."""
    return f"{key}.".startswith(f"{other}.")
