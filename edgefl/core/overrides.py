"""Settings that do not stand in a scenario's own place: ``--set KEY=VALUE``, options, those of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from edgefl.core.errors import Place, ScenarioError, short
from edgefl.core.nodes import Node, compose, written

SWEEP, PAIRS = "sweep", "runs"
SCALE, SCALES = "scale", "scales"


class Override(NamedTuple):
    """A setting that replaces what the file says.

    Attributes:
        key: its dotted key.
        node: its value; its place is what gave it, such as "--seed 3".
    """

    key: str
    node: Node

    @classmethod
    def of(cls, key: str, value: Any, where: str) -> Override:
        """A value of Python's, and what gave it."""
        return cls(key, written(value, where))

    @classmethod
    def parse(cls, text: str) -> Override:
        """One that was given as KEY=VALUE.

        Raises:
            ScenarioError: it has no "=" or no key, or its value is not valid YAML.
        """
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            what = f"{short(text)!r} is not KEY=VALUE"
            raise ScenarioError(what, where="--set", hint="for example --set server.rounds=5")
        return cls(key.strip(), compose(value, f"--set {short(text.strip())}", lines=False))

    @property
    def where(self) -> str:
        """What gave it."""
        return _where(self.node)

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


def put(node: Node, keys: Sequence[str], value: Node, depth: int = 0) -> Node:
    """A mapping in which the value under ``keys`` is replaced; everything else is shared with the old one.

    Mappings that are not there are made, and a component's bare name becomes a mapping. A component whose
    ``name`` changes loses its parameters, since another component has others.

    Args:
        node: the mapping.
        keys: from a scenario's root.
        value: the new one.
        depth: how many of the keys lead to ``node``.

    Raises:
        ScenarioError: what a key is to be looked up in has no keys.
    """
    if depth == len(keys):
        return value
    key = keys[depth]
    if isinstance(node.value, list):
        place = _place(node.value, keys, depth, _where(value))
        inner = put(node.value[place], keys, value, depth + 1)
        return node._replace(value=[*node.value[:place], inner, *node.value[place + 1 :]])
    if node.value is None:
        node = value._replace(value={})
    elif isinstance(node.value, str) and depth:
        node = node._replace(value={"like" if keys[depth - 1] == "fleet" else "name": node})
    if not isinstance(node.value, dict):
        raise ScenarioError(f"{'.'.join(keys)!r}: {keys[depth - 1]!r} is not a mapping", where=_where(value))
    before = node.value.get(key)
    if depth == len(keys) - 1 and key == "name" and keys[0] not in {key, SWEEP} and _differ(before, value):
        return value._replace(value={key: value})
    inner = put(before or Node(None, value.file), keys, value, depth + 1)
    return node._replace(value={**node.value, key: inner})


def _differ(before: Node | None, value: Node) -> bool:
    """Whether one name is replaced by another; see ``core.catalogue.find`` for what is the same name."""
    if before is None or not isinstance(before.value, str):
        return False
    return _folded(before.value) != _folded(str(value.value))


def _folded(name: str) -> str:
    return name.casefold().replace("_", "-")


def _where(value: Node) -> str:
    return str(Place(value.file, value.line))


def _place(values: Sequence[Node], keys: Sequence[str], depth: int, where: str) -> int:
    key = keys[depth]
    if key.isdecimal() and key.isascii() and len(key) < 6 and int(key) < len(values):  # noqa: PLR2004
        return int(key)
    what = ".".join(keys[:depth])
    raise ScenarioError(
        f"{'.'.join(keys)!r}: {what!r} is a list",
        where=where,
        hint=f"give a place from 0 to {len(values) - 1}, as in {what}.0" if values else "it is empty",
    )


def within(key: str, other: str) -> bool:
    """Whether a dotted key equals another, or is one of its parts."""
    return f"{key}.".startswith(f"{other}.")


def meet(key: str, other: str) -> bool:
    """Whether one of two dotted keys equals or contains the other."""
    return within(key, other) or within(other, key)
