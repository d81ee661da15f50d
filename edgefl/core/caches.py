"""The folder for what can be downloaded, measured or computed again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``edgefl`` in ``XDG_CACHE_HOME``, by default in ``~/.cache``; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "edgefl"
