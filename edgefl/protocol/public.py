"""Methods that work on public data: images without labels that the server and every client have."""

from __future__ import annotations

from torch import Tensor

from edgefl.core.errors import UserError
from edgefl.protocol.values import Site


def public_images(site: Site, name: str) -> Tensor:
    """The task's public images, (P, C, H, W) of uint8.

    Args:
        site: what the method is built on.
        name: the method's.

    Raises:
        UserError: the task has none.
    """
    if site.public is None:
        raise UserError(
            f"{name} works on public data, and the task has none",
            where="task.public",
            hint="set task.public, such as {samples: 3000}",
        )
    return site.public
