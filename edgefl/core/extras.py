"""Packages that an installation may lack: each is an extra of the distribution."""

from importlib.util import find_spec

from edgefl.core.errors import UserError


def needs(module: str, what: str, extra: str = "", where: str = "") -> None:
    """Refuses ``what`` needs a package that is not installed, said with its verb, as in "figures need"."""
    spec = find_spec(module)
    # A directory of that name is a namespace package; W&B makes one where it is used.
    if spec is None or spec.origin is None:
        hint = f"pip install 'edgefl-emulator[{extra or module}]'"
        raise UserError(f"{what} {module}, which is not installed", where=where, hint=hint)
