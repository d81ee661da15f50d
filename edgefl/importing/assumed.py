"""What a trace does not say, as the catalogue has it for a base link."""

from __future__ import annotations

from typing import Any


def assumed(value: Any, of: str) -> Any:
    """A copy of a number that is assumed: it is that of something else.

    Args:
        value: the number as its file has it; returned as it is where it has no status.
        of: whose it is, such as "the link 4g".
    """
    if not isinstance(value, dict) or "status" not in value:
        return value
    status = value["status"]
    numbers = {key: one for key, one in value.items() if key in {"low", "value", "high"}}
    if status == "unknown":
        return {**numbers, "status": status, "source": f"not in the trace, and unknown of {of}"}
    return {**numbers, "status": "assumed", "source": f"not in the trace: {of}'s, {status} there"}
