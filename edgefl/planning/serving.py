"""The server's work: traced off the method's merges, and priced on the scenario's ``server.device``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from edgefl.compute.serving import merge_trace
from edgefl.core.devices import Board
from edgefl.core.drafts import Draft
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.ledger import known
from edgefl.core.serving import Serving
from edgefl.core.units import show_bytes
from edgefl.planning.assumed import assumptions
from edgefl.planning.fleets import device
from edgefl.planning.learning import Learning


@dataclass(frozen=True)
class ServerCost:
    """What one merge costs the server.

    Attributes:
        exchange: whose.
        device: the server's.
        uploads: how many are merged: those of the clients that are asked at a time.
        flops: operations.
        moved_bytes: what they move.
        seconds: how long the merge takes.
        joules: of the whole device meanwhile; None where a power is unknown.
        peak_bytes: memory at the worst moment, uploads included.
    """

    exchange: str
    device: str
    uploads: int
    flops: int
    moved_bytes: int
    seconds: float
    joules: float | None
    peak_bytes: int


def server_board(draft: Draft) -> Board | None:
    """The server's device; None where its work is free.

    Raises:
        UserError: no file has its name, or the file is wrong.
    """
    name = draft.scenario.server.device
    return None if name is None else device(name, where=str(draft.document.place(["server", "device"])))


def serving(draft: Draft, learning: Learning, board: Board | None) -> Serving | None:
    """The server and its work; None where its work is free.

    Args:
        draft: the run.
        learning: what is trained.
        board: see ``server_board``.

    Raises:
        UserError: a merge cannot be traced, or the device cannot do it or lacks a number that timing needs.
    """
    name = draft.scenario.server.device
    if name is None or board is None:
        return None
    method, net, clients = learning.methods[0], learning.nets[0], draft.scenario.task.clients
    where = str(draft.document.place(["server", "device"]))
    try:
        traces = {one.name: merge_trace(method, one, net, clients) for one in method.exchanges}
        found = Serving(name, board, traces)
        for cost in server_costs(draft, learning, found):
            work = traces[cost.exchange].work(cost.uploads)
            if reason := board.refusal(work, found.dtype):
                what = f"the server's merge in {cost.exchange!r} is more than {name} can do: {reason}"
                raise ScenarioError(what, where=where, hint="choose another server.device")
    except UserError as error:
        error.where = error.where or where
        error.hint = error.hint or "without server.device, the server's work is free"
        raise
    return found


def server_costs(draft: Draft, learning: Learning, server: Serving) -> Iterator[ServerCost]:
    """What a merge of each exchange costs, with the uploads of all clients that are asked at a time."""
    clients = draft.scenario.task.clients
    for one in learning.methods[0].exchanges:
        uploads = clients if one.who == "all" else draft.scenario.server.participants or clients
        price = server.price(one.name, uploads)._asdict()
        joules = known(price.pop("joules"))
        yield ServerCost(one.name, server.name, uploads, joules=joules, **price)


def server_notes(draft: Draft, learning: Learning, server: Serving | None) -> Iterator[str]:
    """What the server's numbers assume, and where its memory is too small, as sentences."""
    if server is None:
        return
    yield from (line for line in assumptions({server.name: server.board}, {}) if ": assumed" in line)
    room = server.board.usable_memory_bytes
    for cost in server_costs(draft, learning, server):
        if room is not None and cost.peak_bytes > room:
            yield (
                f"server.device: merging {cost.uploads:,} uploads in {cost.exchange!r} needs "
                f"{show_bytes(cost.peak_bytes)}, and {server.name} has {show_bytes(room)}"
            )
