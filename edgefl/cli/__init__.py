"""The command line."""

# Each registers its commands, in the order that `edgefl --help` lists them.
from edgefl.cli import runs, report, explain, plot, tables, costs, validate, catalogue, onnx  # noqa: F401, I001
from edgefl.cli import timeline  # noqa: F401
from edgefl.cli.main import main

__all__ = ["main"]
