"""From a run to a device: verified ONNX files, and what they cost there."""

from edgefl.export.graph import ExportError, Form
from edgefl.export.make import Exported, Wanted, export
from edgefl.export.trained import Trained, trained
from edgefl.export.verify import Parity

__all__ = ["ExportError", "Exported", "Form", "Parity", "Trained", "Wanted", "export", "trained"]
