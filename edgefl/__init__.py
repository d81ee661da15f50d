"""edgefl: real federated training on a fleet you do not own.

``run`` runs a scenario and returns a ``Result``. Names are loaded when they are first used, so that importing
edgefl does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.core.errors import EdgeflError, RunError, UserError
    from edgefl.runs import Result, RunResult, Watch, run

_PLACES = {
    "EdgeflError": "edgefl.core.errors",
    "Result": "edgefl.runs",
    "RunError": "edgefl.core.errors",
    "RunResult": "edgefl.runs",
    "UserError": "edgefl.core.errors",
    "Watch": "edgefl.runs",
    "run": "edgefl.runs",
}

__all__ = ["EdgeflError", "Result", "RunError", "RunResult", "UserError", "Watch", "run"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'edgefl' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
