"""Exchanges that bring all clients a head, before or after the rounds."""

from __future__ import annotations

from edgefl.protocol.values import Exchange, Fold, When


def delivery(name: str, when: When, *, kept: bool) -> Exchange:
    """An exchange in which all clients receive the server's head; ``kept`` says whether in their state."""
    fold = Fold(
        start=lambda payload, state, ctx: dict(payload),  # noqa: ARG005
        phases=(),
        finish=lambda carry, ctx: ({}, {"head": carry["head"]} if kept else None),  # noqa: ARG005
    )
    return Exchange(
        name,
        down=lambda server, client: {"head": server["head"]},  # noqa: ARG005
        work=fold,
        merge=lambda server, arrivals: server,  # noqa: ARG005
        when=when,
        who="all",
        stateful=kept,
    )
