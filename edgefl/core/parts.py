"""Plain data of many YAML texts that have whole parts in common, such as the plans of a sweep's runs."""

from __future__ import annotations

import re
from copy import deepcopy
from functools import lru_cache
from typing import Any

from edgefl.core.errors import ScenarioError
from edgefl.core.yamls import Document

# A top-level key with all that stands below it.
_PART = re.compile(r"^(?P<key>[a-z_]+):.*\n(?:(?![a-z_]+:).*\n?)*", re.MULTILINE)
_KEPT = 32


def plain_data(text: str, file: str) -> dict[str, Any]:
    """The data of a mapping as ``Document.parse`` gives them, each part read once in a process.

    Args:
        text: YAML, which is not limited in length.
        file: its source, for messages.

    Raises:
        ScenarioError: as ``Document.parse``.
    """
    parts = {part["key"]: part[0] for part in _PART.finditer(text)}
    # Not so where a key comes twice, or something else than such keys.
    if "".join(parts.values()) == text:
        try:
            return {key: value for part in parts.values() for key, value in deepcopy(_read(part)).items()}
        except ScenarioError:
            # An anchor of another part, or a mistake, whose message has the line of the whole.
            pass
    whole: dict[str, Any] = Document.parse(text, file, limited=False).data
    return whole


@lru_cache(_KEPT)
def _read(part: str) -> dict[str, Any]:
    data: dict[str, Any] = Document.parse(part, "", limited=False).data
    return data
