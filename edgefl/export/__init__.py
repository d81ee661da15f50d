"""From a run to a device: verified ONNX files, and what they cost there.

Names are loaded when they are first used: what only runs a file does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgefl.export.compact import Compact
    from edgefl.export.graph import ExportError, Form
    from edgefl.export.make import Exported, SomeFailedError, Wanted, export
    from edgefl.export.mobile import Ort
    from edgefl.export.quantise import Precision
    from edgefl.export.trained import Trained
    from edgefl.export.verify import Parity

_PLACES = {
    "Compact": "compact",
    "Ort": "mobile",
    "Precision": "quantise",
    "SomeFailedError": "make",
    "ExportError": "graph",
    "Exported": "make",
    "Form": "graph",
    "Parity": "verify",
    "Trained": "trained",
    "Wanted": "make",
    "export": "make",
}

__all__ = [
    "Compact",
    "ExportError",
    "Exported",
    "Form",
    "Ort",
    "Parity",
    "Precision",
    "SomeFailedError",
    "Trained",
    "Wanted",
    "export",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'edgefl.export' has no attribute {name!r}")
    return getattr(import_module(f"edgefl.export.{_PLACES[name]}"), name)
