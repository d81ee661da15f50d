"""Callbacks by what happened."""

from edgefl.trackers import Callbacks, Progress


class Hooks(Callbacks):
    """Calls the method of the name of what is told: ``ready``, ``merged``, ``evaluated`` and ``over``."""

    def told(self, so_far: Progress) -> None:
        """See ``Callbacks``."""
        getattr(self, so_far.what, lambda _: None)(so_far)
