"""The command line."""

# Each registers its commands, in the order that `edgefl --help` lists them.
from edgefl.cli import (  # noqa: I001
    runs,  # noqa: F401
    saved,  # noqa: F401
    costs,  # noqa: F401
    catalogue,  # noqa: F401
    onnx,  # noqa: F401
)
from edgefl.cli.answering import main

__all__ = ["main"]
