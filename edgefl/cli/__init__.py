"""The command line."""

from edgefl.cli import onnx as _onnx  # noqa: F401 - registers its commands
from edgefl.cli.app import main

__all__ = ["main"]
