"""Traces as text, compressed: what an exchange costs any device, without the method's code or data."""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from edgefl.core.cost import Kernel, PhaseTrace, Trace, Work

Steps: TypeAlias = tuple[Counter[int], ...]
"""For each phase of an exchange, how many steps of each batch size."""


class Traced(NamedTuple):
    """An exchange's work for every kind of client.

    Attributes:
        traces: by model.
        steps: by kind of client.
    """

    traces: tuple[Trace, ...]
    steps: tuple[Steps, ...]


def written(traced: Traced) -> str:
    """Traces and steps as text; every kernel and every kind of steps is written once."""
    kernels: dict[Kernel, int] = {}
    traces = [_trace(trace, kernels) for trace in traced.traces]
    kinds: dict[tuple[tuple[tuple[int, int], ...], ...], int] = {}
    taken = (tuple(tuple(counts.items()) for counts in steps) for steps in traced.steps)
    of_kind = [kinds.setdefault(steps, len(kinds)) for steps in taken]
    document = {
        "kernels": [list(kernel) for kernel in kernels],
        "traces": traces,
        "steps": list(kinds),
        "of_kind": of_kind,
    }
    return base64.b85encode(zlib.compress(json.dumps(document).encode())).decode()


def read_back(text: str) -> Traced:
    """What ``written`` was given.

    Raises:
        ValueError: the text is something else.
    """
    try:
        document = json.loads(zlib.decompress(base64.b85decode(text)))
        kernels = [Kernel(*values) for values in document["kernels"]]
        steps = [tuple(Counter(dict(counts)) for counts in each) for each in document["steps"]]
        traces = tuple(_read_trace(each, kernels) for each in document["traces"])
        return Traced(traces, tuple(steps[place] for place in document["of_kind"]))
    except (zlib.error, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError("this is no trace") from error


def _trace(trace: Trace, kernels: dict[Kernel, int]) -> dict[str, Any]:
    return {
        "exchange": trace.exchange,
        "down": dict(trace.down),
        "up": dict(trace.up),
        "start": _work(trace.start, kernels),
        "phases": [
            [phase.name, _by_size(phase.steps, kernels), _by_size(phase.batches, kernels), phase.trains]
            for phase in trace.phases
        ],
        "finish": _work(trace.finish, kernels),
        "peaks": [[list(sizes), dict(peak)] for sizes, peak in trace.peaks.items()],
        "resident": trace.resident,
    }


def _by_size(works: Mapping[int, Work], kernels: dict[Kernel, int]) -> list[tuple[int, list[list[int]]]]:
    return [(size, _work(work, kernels)) for size, work in works.items()]


def _work(work: Work, kernels: dict[Kernel, int]) -> list[list[int]]:
    """Kernels by their places, in their order, by which times are summed."""
    return [[kernels.setdefault(kernel, len(kernels)), count] for kernel, count in work]


def _read_trace(given: Mapping[str, Any], kernels: Sequence[Kernel]) -> Trace:
    def work(pairs: Sequence[tuple[int, int]]) -> Work:
        return Work({kernels[place]: count for place, count in pairs})

    def by_size(works: Sequence[tuple[int, Any]]) -> dict[int, Work]:
        return {size: work(pairs) for size, pairs in works}

    return Trace(
        exchange=given["exchange"],
        down=given["down"],
        up=given["up"],
        start=work(given["start"]),
        phases=tuple(
            PhaseTrace(name, by_size(steps), by_size(batches), *trains)
            for name, steps, batches, *trains in given["phases"]
        ),
        finish=work(given["finish"]),
        peaks={tuple(sizes): peak for sizes, peak in given["peaks"]},
        resident=given["resident"],
    )
