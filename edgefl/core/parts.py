"""Plain data of many YAML texts that have whole parts in common, such as the plans of a sweep's runs."""

from __future__ import annotations

import re
from contextlib import suppress
from copy import deepcopy
from functools import lru_cache
from typing import Any

from edgefl.core.errors import ScenarioError
from edgefl.core.yamls import Document

# A top-level key with all that stands below it.
_PART = re.compile(r"^(?P<key>[a-z_]+):.*\n(?:(?![a-z_]+:).*\n?)*", re.MULTILINE)
# Mappings of so many levels are divided: a run's scenario has its seed among parts that others have too.
_LEVELS, _INDENT = 2, "  "
_KEPT = 256


def plain_data(text: str, file: str) -> dict[str, Any]:
    """The data of a mapping as ``Document.parse`` gives them, each part read once in a process.

    Args:
        text: YAML, which is not limited in length.
        file: its source, for messages.

    Raises:
        ScenarioError: as ``Document.parse``.
    """
    # An anchor of another part, or a mistake, has a message with the line of the whole.
    with suppress(ScenarioError):
        if (found := _divided(text, _LEVELS)) is not None:
            return found
    whole: dict[str, Any] = Document.parse(text, file, limited=False).data
    return whole


def _divided(text: str, levels: int) -> dict[str, Any] | None:
    """The data, part by part; None where a key comes twice, or something else than such keys."""
    parts = {part["key"]: part[0] for part in _PART.finditer(text)} if levels else {}
    if not parts or "".join(parts.values()) != text:
        return None
    found: dict[str, Any] = {}
    for key, part in parts.items():
        head, _, below = part.partition("\n")
        lines = below.splitlines(keepends=True) if head == f"{key}:" else []
        inner = "".join(line.removeprefix(_INDENT) for line in lines)
        nested = _divided(inner, levels - 1) if all(line.startswith(_INDENT) for line in lines) else None
        found |= deepcopy(_read(part)) if nested is None else {key: nested}
    return found


@lru_cache(_KEPT)
def _read(part: str) -> dict[str, Any]:
    data: dict[str, Any] = Document.parse(part, "", limited=False).data
    return data
