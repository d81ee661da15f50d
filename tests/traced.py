"""A timeline's file, read back with Perfetto's own messages: tracks, slices, counters and flows."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

_CLEARED = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED


@dataclass
class Slice:
    """A slice, or an instant, which has no end."""

    track: str
    name: str
    categories: list[str]
    from_ns: int
    to_ns: int | None
    depth: int
    arguments: dict[str, Any]
    through: list[int]
    into: list[int]

    @property
    def ns(self) -> int:
        """Its duration."""
        return self.to_ns - self.from_ns


@dataclass
class Traced:
    """What a trace shows."""

    tracks: dict[str, str | None] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))

    def on(self, track: str) -> list[Slice]:
        """The slices and instants of a track whose name begins so."""
        return [one for one in (*self.slices, *self.instants) if one.track.startswith(track)]

    def named(self, name: str) -> list[Slice]:
        """The instants of a name."""
        return [one for one in self.instants if one.name == name]


def read_back(content: bytes) -> Traced:
    """A trace from a file's content.

    It is an error if a name's number is not known, a track was not made before its events, or slices of a
    track do not nest.
    """
    found, names = Traced(), {}
    tracks, open_slices, times = {}, defaultdict(list), defaultdict(int)
    root = None
    for packet in Trace.FromString(content).packet:
        if packet.sequence_flags & _CLEARED:
            assert not names
        for kind, entries in packet.interned_data.ListFields():
            for entry in entries:
                text = entry.str.decode() if kind.name.endswith("string_values") else entry.name
                assert (kind.name, entry.iid) not in names, "a name is written twice"
                names[kind.name, entry.iid] = text
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in tracks
            tracks[descriptor.uuid] = descriptor.name
            if root is None:
                root = descriptor.uuid
                continue
            assert descriptor.parent_uuid == root
            assert descriptor.name not in found.tracks
            is_counter = descriptor.HasField("counter")
            found.tracks[descriptor.name] = descriptor.counter.unit_name if is_counter else None
            found.about[descriptor.name] = descriptor.description
        elif packet.HasField("track_event"):
            _event(found, packet, tracks, names, open_slices, times)
    assert not any(open_slices.values()), "a slice does not end"
    return found


def _event(found, packet, tracks, names, open_slices, times) -> None:
    event, t_ns = packet.track_event, packet.timestamp
    track = tracks[event.track_uuid]
    # On a track, packets are in order: at one time, it is theirs.
    assert t_ns >= times[track], f"{track} goes back in time"
    times[track] = t_ns
    if event.type == TrackEvent.TYPE_COUNTER:
        assert found.tracks[track] is not None
        found.counters[track].append((t_ns, event.double_counter_value))
        return
    assert found.tracks[track] is None
    if event.type == TrackEvent.TYPE_SLICE_END:
        open_slices[track].pop().to_ns = t_ns
        return
    one = Slice(
        track,
        names["event_names", event.name_iid],
        [names["event_categories", iid] for iid in event.category_iids],
        t_ns,
        None,
        len(open_slices[track]),
        {
            names["debug_annotation_names", each.name_iid]: _value(each, names)
            for each in event.debug_annotations
        },
        list(event.flow_ids),
        list(event.terminating_flow_ids),
    )
    if event.type == TrackEvent.TYPE_INSTANT:
        found.instants.append(one)
    else:
        assert event.type == TrackEvent.TYPE_SLICE_BEGIN
        found.slices.append(one)
        open_slices[track].append(one)


def _value(annotation, names) -> Any:
    kind = annotation.WhichOneof("value")
    value = getattr(annotation, kind)
    return names["debug_annotation_string_values", value] if kind == "string_value_iid" else value


def as_text(found: Traced) -> str:
    """All of a trace, a line each: tracks in order, and below each what it shows; times in seconds."""
    lines = []
    for track, unit in found.tracks.items():
        lines.append(f"{track}{f' ({unit})' if unit else ''}: {found.about[track]}".rstrip(": "))
        lines += [f"  {t_ns / 1e9:g}: {value:g}" for t_ns, value in found.counters[track]]
        lines += [_line(one) for one in found.slices + found.instants if one.track == track]
    return "\n".join(lines) + "\n"


def _line(one: Slice) -> str:
    ends = "" if one.to_ns is None else f" to {one.to_ns / 1e9:g}"
    shown = [
        f"{name}={f'{value:.6g}' if isinstance(value, float) else value}"
        for name, value in one.arguments.items()
        if value != 0
    ]
    flows = [f"flow {number}" for number in one.through] + [f"flow {number} ends" for number in one.into]
    marks = [] if one.categories == [one.name] else one.categories
    return f"{'  ' * (one.depth + 1)}{one.from_ns / 1e9:g}{ends}: " + ", ".join(
        [one.name + "".join(f" [{mark}]" for mark in marks), *shown, *flows]
    )
