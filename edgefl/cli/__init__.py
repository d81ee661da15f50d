"""The command line."""

from edgefl.cli import exporting as _exporting  # noqa: F401 - registers its commands
from edgefl.cli import serving as _serving  # noqa: F401 - likewise
from edgefl.cli.app import main

__all__ = ["main"]
