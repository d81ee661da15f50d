"""From a run to a device: verified ONNX files, and what they cost there."""

from edgefl.export.compact import Compact
from edgefl.export.graph import ExportError, Form
from edgefl.export.make import Exported, Wanted, export
from edgefl.export.mobile import Ort
from edgefl.export.quantise import Precision
from edgefl.export.trained import Trained, trained
from edgefl.export.verify import Parity

__all__ = [
    "Compact",
    "ExportError",
    "Exported",
    "Form",
    "Ort",
    "Parity",
    "Precision",
    "Trained",
    "Wanted",
    "export",
    "trained",
]
