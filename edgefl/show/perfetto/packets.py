"""Perfetto's trace format, as far as a timeline needs it: tracks, slices, instants, counters and flows.

A trace is a sequence of packets, https://perfetto.dev/docs/reference/synthetic-track-event. What is
repeated - names, categories, texts - is written once and referred to by number. At one time, events of a
track happen in the order in which they are written; otherwise packets may come in any order.
"""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, TypeAlias

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    CounterDescriptor,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

Arguments: TypeAlias = Mapping[str, int | float | str | None]
"""A slice's arguments; what is None or NaN is left out."""

_ROOT = 1

# All packets are of one sequence, which the names' numbers belong to.
_SEQUENCE = 1
_FIRST, _LATER = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED, TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
_BEGIN, _END = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END
_INSTANT, _COUNTER = TrackEvent.TYPE_INSTANT, TrackEvent.TYPE_COUNTER
_PACKETS = 4096


class Packets:
    """Writes packets to a stream, some thousand at a time; ``count`` is of events."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        """Begins the trace of a run of that name."""
        self.count = 0
        self._stream = stream
        self._tracks = 0
        self._trace = Trace()
        self._names = Trace()
        self._known: dict[tuple[str, str], int] = {}
        packet = self._descriptor(name)
        packet.track_descriptor.description = "edgefl timeline"
        packet.track_descriptor.child_ordering = TrackDescriptor.EXPLICIT
        packet.sequence_flags = _FIRST
        # What is numbered later must come after it.
        self.finish()

    def track(self, name: str, *, unit: str | None = None, about: str = "") -> int:
        """A new track, which is shown below those made before; its number. Without a unit it is of slices."""
        descriptor = self._descriptor(name).track_descriptor
        descriptor.parent_uuid = _ROOT
        descriptor.sibling_order_rank = self._tracks
        if about:
            descriptor.description = about
        if unit is not None:
            descriptor.counter.unit = CounterDescriptor.UNIT_UNSPECIFIED
            descriptor.counter.unit_name = unit
        return int(descriptor.uuid)

    def begin(
        self,
        track: int,
        t_ns: int,
        name: str,
        categories: Sequence[str] = (),
        arguments: Arguments | None = None,
        *,
        through: Sequence[int] = (),
        into: Sequence[int] = (),
        kind: int = _BEGIN,
    ) -> None:
        """The beginning of a slice, in virtual nanoseconds from the run's start.

        It is found by its categories; flows begin in it or pass ``through`` it, or end ``into`` it.
        """
        event = self._event(track, t_ns, kind)
        number = self._number
        event.name_iid = number("event_names", name)
        event.category_iids.extend([number("event_categories", each) for each in categories])
        add = event.debug_annotations.add
        for key, value in (arguments or {}).items():
            # NaN alone differs from itself.
            if value is None or value != value:  # noqa: PLR0124
                continue
            annotation = add()
            annotation.name_iid = number("debug_annotation_names", key)
            if isinstance(value, str):
                annotation.string_value_iid = number("debug_annotation_string_values", value)
            elif isinstance(value, int):
                annotation.int_value = value
            else:
                annotation.double_value = value
        event.flow_ids.extend(through)
        event.terminating_flow_ids.extend(into)

    def end(self, track: int, t_ns: int) -> None:
        """The end of the slice that began last."""
        self._event(track, t_ns, _END)

    def instant(self, track: int, t_ns: int, name: str, arguments: Arguments, **flows: Sequence[int]) -> None:
        """Something without a duration; the arguments are those of ``begin``."""
        self.begin(track, t_ns, name, (name,), arguments, kind=_INSTANT, **flows)

    def counter(self, track: int, t_ns: int, value: float) -> None:
        """A counter's value from a time on."""
        self._event(track, t_ns, _COUNTER).double_counter_value = value

    def finish(self) -> None:
        """Writes what has not been written."""
        for part in (self._names, self._trace):
            self._stream.write(part.SerializeToString())
        # A message that is cleared keeps its memory.
        self._names, self._trace = Trace(), Trace()

    def _packet(self) -> Any:
        if len(self._trace.packet) >= _PACKETS:
            self.finish()
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _descriptor(self, name: str) -> Any:
        packet = self._packet()
        descriptor = packet.track_descriptor
        self._tracks += 1
        descriptor.uuid = self._tracks
        descriptor.name = name
        return packet

    def _event(self, track: int, t_ns: int, kind: int) -> Any:
        packet = self._packet()
        packet.timestamp = t_ns
        packet.sequence_flags = _LATER
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        self.count += 1
        return event

    def _number(self, kind: str, text: str) -> int:
        """The number of a text; a new one is written before what refers to it."""
        known = self._known.get((kind, text))
        if known is not None:
            return known
        number = self._known[kind, text] = len(self._known) + 1
        packet = self._names.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = _LATER
        entry = getattr(packet.interned_data, kind).add()
        entry.iid = number
        if kind == "debug_annotation_string_values":
            entry.str = text.encode()
        else:
            entry.name = text
        return number
