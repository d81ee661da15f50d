"""The command line."""

# Each registers its commands, in the order that `edgefl --help` lists them.
from edgefl.cli import (  # noqa: I001
    runs,  # noqa: F401
    manage,  # noqa: F401
    replay,  # noqa: F401
    report,  # noqa: F401
    explain,  # noqa: F401
    timeline,  # noqa: F401
    plot,  # noqa: F401
    tables,  # noqa: F401
    costs,  # noqa: F401
    validate,  # noqa: F401
    importing,  # noqa: F401
    catalogue,  # noqa: F401
    onnx,  # noqa: F401
)
from edgefl.cli.main import main

__all__ = ["main"]
