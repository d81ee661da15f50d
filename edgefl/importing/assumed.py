"""What a trace does not say, as the catalogue has it for a base link or device."""

from __future__ import annotations

from typing import Any


def assumed(value: Any, of: str) -> Any:
    """A copy of part of a record whose numbers are assumed: they are those of something else.

    Args:
        value: plain data.
        of: whose it is, such as "the link 4g".
    """
    if isinstance(value, list):
        return [assumed(one, of) for one in value]
    if not isinstance(value, dict):
        return value
    if "status" not in value:
        return {key: assumed(one, of) for key, one in value.items()}
    status = value["status"]
    numbers = {key: assumed(one, of) for key, one in value.items() if key in {"low", "value", "high"}}
    if status == "unknown":
        return {**numbers, "status": status, "source": f"not in the trace, and unknown of {of}"}
    return {**numbers, "status": "assumed", "source": f"not in the trace: {of}'s, {status} there"}
