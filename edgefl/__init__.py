"""edgefl: real federated training on a fleet you do not own.

``run`` runs a scenario and returns a ``Result``, ``resume`` goes on with one that stopped, and ``open`` reads
one from its directory; the others are the commands of their names. Names are loaded when they are first used,
so that importing edgefl does not import torch.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.cli.costs import profile
    from edgefl.cli.onnx import bench, export
    from edgefl.cli.runs import check, compare
    from edgefl.cli.saved import replay, report
    from edgefl.core.errors import EdgeflError, RunError, UserError
    from edgefl.importing import Imported, import_traces
    from edgefl.runs.group import run
    from edgefl.runs.results import Result, RunResult
    from edgefl.runs.results import open_result as open  # noqa: A004, F401 - as other libraries call it
    from edgefl.runs.resuming import resume
    from edgefl.trackers import Callbacks, Progress

__version__: str

_PLACES = {
    "Callbacks": "edgefl.trackers",
    "EdgeflError": "edgefl.core.errors",
    "Imported": "edgefl.importing",
    "Progress": "edgefl.trackers",
    "Result": "edgefl.runs.results",
    "RunError": "edgefl.core.errors",
    "RunResult": "edgefl.runs.results",
    "UserError": "edgefl.core.errors",
    "bench": "edgefl.cli.onnx",
    "check": "edgefl.cli.runs",
    "compare": "edgefl.cli.runs",
    "export": "edgefl.cli.onnx",
    "import_traces": "edgefl.importing",
    "open": "edgefl.runs.results",
    "profile": "edgefl.cli.costs",
    "replay": "edgefl.cli.saved",
    "report": "edgefl.cli.saved",
    "resume": "edgefl.runs.resuming",
    "run": "edgefl.runs.group",
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
    "bench",
    "check",
    "compare",
    "export",
    "import_traces",
    "profile",
    "replay",
    "report",
    "resume",
    "run",
]


class _Edgefl(ModuleType):
    """Keeps its functions' names from the package ``edgefl.export``."""

    def __setattr__(self, name: str, value: Any) -> None:
        # Importing a package would put it in the function's place.
        if name not in _PLACES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Edgefl


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("edgefl.core.host").version()
    if name not in _PLACES:
        raise AttributeError(f"module 'edgefl' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), "open_result" if name == "open" else name)


def __dir__() -> list[str]:
    return sorted([*_PLACES, "__version__"])
