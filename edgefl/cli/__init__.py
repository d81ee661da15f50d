"""The command line."""

# Each registers its commands, in the order that `edgefl --help` lists them.
from edgefl.cli import runs, report, timeline, plot, tables, costs, validate, catalogue, onnx  # noqa: F401, I001
from edgefl.cli.main import main

__all__ = ["main"]
