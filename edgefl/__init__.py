"""edgefl: real federated training on a fleet you do not own.

``run`` runs a scenario and returns a ``Result``, ``resume`` goes on with one that stopped, and ``open`` reads
one from its directory. Names are loaded when they are first used, so that importing edgefl does not import
torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.core.errors import EdgeflError, RunError, UserError
    from edgefl.importing import Imported, import_traces
    from edgefl.runs import Callbacks, Progress, Result, RunResult, run
    from edgefl.runs import open_result as open  # noqa: A004, F401 - as other libraries call it
    from edgefl.runs.replaying import replay
    from edgefl.runs.resuming import resume

__version__: str

_PLACES = {
    "Callbacks": ("edgefl.runs", "Callbacks"),
    "EdgeflError": ("edgefl.core.errors", "EdgeflError"),
    "Imported": ("edgefl.importing", "Imported"),
    "Progress": ("edgefl.runs", "Progress"),
    "Result": ("edgefl.runs", "Result"),
    "RunError": ("edgefl.core.errors", "RunError"),
    "RunResult": ("edgefl.runs", "RunResult"),
    "UserError": ("edgefl.core.errors", "UserError"),
    "import_traces": ("edgefl.importing", "import_traces"),
    "open": ("edgefl.runs", "open_result"),
    "replay": ("edgefl.runs.replaying", "replay"),
    "resume": ("edgefl.runs.resuming", "resume"),
    "run": ("edgefl.runs", "run"),
}

# Without ``open``: a star import must not replace the built-in function.
__all__ = [
    "Callbacks",
    "EdgeflError",
    "Imported",
    "Progress",
    "Result",
    "RunError",
    "RunResult",
    "UserError",
    "import_traces",
    "replay",
    "resume",
    "run",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("edgefl.core.host").version()
    if name not in _PLACES:
        raise AttributeError(f"module 'edgefl' has no attribute {name!r}")
    module, inside = _PLACES[name]
    return getattr(import_module(module), inside)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, "__version__"})
