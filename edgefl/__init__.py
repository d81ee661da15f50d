"""edgefl: real federated training on a fleet you do not own.

``run`` runs a scenario and returns a ``Result``. Names are loaded when they are first used, so that importing
edgefl does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.core.errors import EdgeflError, RunError, UserError
    from edgefl.runs import Callbacks, Result, RunResult, run

_PLACES = {
    "Callbacks": "edgefl.runs",
    "EdgeflError": "edgefl.core.errors",
    "Result": "edgefl.runs",
    "RunError": "edgefl.core.errors",
    "RunResult": "edgefl.runs",
    "UserError": "edgefl.core.errors",
    "run": "edgefl.runs",
}

__all__ = ["Callbacks", "EdgeflError", "Result", "RunError", "RunResult", "UserError", "run"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'edgefl' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
