"""The server's work: traced off the method's merges, and priced on the scenario's ``server.device``."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from edgefl.compute.merging import merge_trace
from edgefl.core.corners import Interval
from edgefl.core.devices import Board
from edgefl.core.drafts import Draft
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.merging import MergeCost, ServerWork
from edgefl.core.units import show_bytes
from edgefl.planning.assumed import assumed_numbers
from edgefl.planning.fleets import device
from edgefl.planning.learning import Learning
from edgefl.planning.repricing import Pricer


def server_board(draft: Draft) -> Board | None:
    """The server's device; None where its work is free. A ``UserError`` if its file is missing or wrong."""
    name = draft.scenario.server.device
    return None if name is None else device(name, where=str(draft.document.place(["server", "device"])))


def server_work(draft: Draft, learning: Learning, board: Board | None) -> ServerWork | None:
    """The server's device and its merges; None where its work is free.

    Raises:
        UserError: a merge cannot be traced, or the device cannot do it or lacks a number that timing needs.
    """
    name, place = draft.scenario.server.device, str(draft.document.place(["server", "device"]))
    if name is None or board is None:
        return None
    method, net, clients = learning.methods[0], learning.nets[0], draft.scenario.task.clients
    try:
        traces = {one.name: merge_trace(method, one, net, clients) for one in method.exchanges}
        found = ServerWork(name, board, traces)
        for exchange, cost in merge_costs(draft, learning, found).items():
            if reason := board.refusal(traces[exchange].work(cost.uploads), found.dtype):
                raise ScenarioError(f"merging in {exchange!r} is more than {name} can do: {reason}")
    except UserError as error:
        error.where, error.hint = error.where or place, error.hint or "without server.device, merging is free"
        raise
    return found


def merge_costs(draft: Draft, learning: Learning, server: ServerWork) -> dict[str, MergeCost]:
    """What a merge of each exchange costs, with the uploads of all clients that are asked at a time."""
    clients, server_ = draft.scenario.task.clients, draft.scenario.server
    exchanges = learning.methods[0].exchanges
    asked = {one.name: clients if one.who == "all" else server_.participants or clients for one in exchanges}
    return {name: server.price(name, uploads) for name, uploads in asked.items()}


def merge_bounds(draft: Draft, learning: Learning, server: ServerWork) -> dict[str, dict[str, Interval]]:
    """The bounds of its seconds and joules by exchange; none where no number is open."""
    pricer = Pricer(server.name, server.board, server.dtype)
    if pricer.corners is None:
        return {}
    works = (replace(server, board=end.device, _known={}) for end in pricer.corners)
    cheap, costly = (merge_costs(draft, learning, work) for work in works)
    found = {}
    for name, low in cheap.items():
        open_ = pricer.is_lower_bound and low.seconds
        high_s, high_j = (None, None) if open_ else (costly[name].seconds, costly[name].joules)
        found[name] = {"seconds": Interval.of(low.seconds, high_s), "joules": Interval.of(low.joules, high_j)}
    return found


def server_notes(
    draft: Draft, learning: Learning, server: ServerWork | None, clients: Container[str]
) -> Iterator[str]:
    """What its numbers assume, if its device is none of its clients', and where its memory is too small."""
    if server is None:
        return
    if server.name not in clients:
        yield from assumed_numbers("server", server.name, server.board)
    room = server.board.usable_memory_bytes
    for name, cost in merge_costs(draft, learning, server).items():
        if room is not None and cost.peak_bytes > room:
            needs = f"merging {cost.uploads:,} uploads in {name!r} needs {show_bytes(cost.peak_bytes)}"
            yield f"server.device: {needs}, and {server.name} has {show_bytes(room)}"
