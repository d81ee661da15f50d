"""The command line."""

from edgefl.cli.app import main

__all__ = ["main"]
