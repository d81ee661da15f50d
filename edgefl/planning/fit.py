"""``batch_size: fit``: the largest batch that the fleet's devices can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from edgefl.compute import meta
from edgefl.core.cost import Work
from edgefl.core.dealing import kinds
from edgefl.core.devices import TRACED, WIDTHS, Board
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.fleet import Fleet
from edgefl.core.plan import Assumption
from edgefl.core.training import Local
from edgefl.core.units import show_bytes
from edgefl.core.yamls import Document
from edgefl.planning.fleets import devices_of
from edgefl.planning.learning import Learning, methods_of
from edgefl.planning.memory import without_margin
from edgefl.protocol import Exchange, Method, Net

FIT = "fit"


def fitted(learning: Learning, document: Document, fleet: Fleet, samples: Iterable[int]) -> Learning:
    """The learning with a number where its batch size is "fit".

    One number for all clients, since a batch size is part of the learning: the largest with which every
    exchange fits each device, with the margin for libraries, on every model that fits the device at all; the
    smallest where that has no margin. A device that cannot do the work, or cannot hold a model's smallest
    batch, is disregarded for it, since its clients are refused at any batch size; so is a device whose memory
    is unknown.

    Raises:
        ScenarioError: not even the smallest batch fits, or no memory is known.
    """
    if learning.spec.local.batch_size != FIT:
        return learning
    where = str(document.place(["local", "batch_size"]))
    needs = [_Needs(method, net) for method, net in zip(learning.methods, learning.nets, strict=True)]
    rooms = list(_rooms(fleet, devices_of(fleet, where), [work for one in needs for work in one.works]))
    if not rooms:
        raise ScenarioError(
            "cannot fit a batch: no device that can do the work has a known memory",
            where=where,
            hint="give a batch size, or a fleet with known memory",
        )
    # A model's limit is the smallest memory that can hold it at all.
    tight = [(one, [room for room in rooms if room >= one.bytes(one.smallest)]) for one in needs]
    held = [(one, min(able)) for one, able in tight if able]
    if not held:
        least = min(one.bytes(one.smallest) for one in needs)
        raise ScenarioError(
            f"not even a batch of {needs[0].smallest} fits: it needs {show_bytes(least)}, "
            f"and the largest device has {show_bytes(max(rooms))}",
            where=where,
            hint="choose a smaller model, or a fleet with more memory",
        )
    batch_size = min(_largest(one, without_margin(room), set(samples)) for one, room in held)
    local = learning.spec.local.model_copy(update={"batch_size": batch_size})
    spec = learning.spec.model_copy(update={"local": local})
    return replace(
        learning, spec=spec, methods=methods_of(spec, document, learning.nets, learning.federation)
    )


def fit_note(asked: Local, found: Local) -> list[Assumption]:
    """The batch size that "fit" gave, in words; nothing where the scenario has a number."""
    where = "the largest that every device able to train can hold"
    return [fitted_size(found.size, where)] if asked.batch_size == FIT else []


def fitted_size(size: int, where: str) -> Assumption:
    """A fitted batch size in words, and where it comes from."""
    return Assumption(FIT, "batch_size", f"fit is {size}, {where}")


def _rooms(fleet: Fleet, devices: Mapping[str, Board], works: Sequence[Work]) -> Iterator[float]:
    """The memory of each device that can do the work, in bytes as if in fp32: narrower types need less."""
    for name, dtype in dict.fromkeys((kind.device, kind.dtype) for kind in kinds(fleet)):
        device = devices[name]
        room = device.usable_memory_bytes
        if room is not None and not any(device.refusal(work, dtype) for work in works):
            yield room * WIDTHS[TRACED] / WIDTHS[dtype]


def _largest(needs: _Needs, room: float, samples: set[int]) -> int:
    """By bisection, as memory never falls with the batch. A remainder of 1 joins a batch, which must fit."""
    low, high = needs.smallest, max(*samples, needs.smallest) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needs.bytes(middle) <= room else (low, middle)
    joined = any(count > low > 1 and count % low == 1 for count in samples)
    return max(low - joined, needs.smallest)


class _Needs:
    """The peak memory of a method's exchanges on one model, by batch size.

    Attributes:
        smallest: the smallest batch that trains: 1, or 2 if a norm needs more than one value.
        works: one step of each exchange.
    """

    def __init__(self, method: Method, net: Net) -> None:
        self._method, self._net = method, net
        self._known: dict[int, int] = {}
        self.works = [self._work(exchange) for exchange in method.exchanges]
        self.smallest = 1
        try:
            self.bytes(1)
        except UserError:
            self.smallest = 2

    def bytes(self, batch_size: int) -> int:
        """The largest of all exchanges."""
        if batch_size not in self._known:
            self._known[batch_size] = max(
                meta.peak_bytes(self._method, exchange, self._net, batch_size)
                for exchange in self._method.exchanges
            )
        return self._known[batch_size]

    def _work(self, exchange: Exchange) -> Work:
        # Two samples, which every model can train on.
        steps = [{2: 1} for _ in exchange.work.phases]
        return meta.trace(self._method, exchange, self._net, [steps]).cost(steps).work
