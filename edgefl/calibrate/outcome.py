"""What a calibration comes to: the file's content, and how it compares with what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edgefl.calibrate.fit import STEP_WEIGHT, Observation
from edgefl.calibrate.host import Host
from edgefl.calibrate.measure import Timing
from edgefl.calibrate.workloads import FIT, STEP
from edgefl.core.cost import Work
from edgefl.core.devices import KINDS, Board
from edgefl.core.yamls import Document, dump, plain, validate

_BUSY = 0.9


@dataclass(frozen=True)
class Outcome:
    """What was found.

    Attributes:
        data: the device file's content.
        steps: a row for each network and batch size in training; see ``row``.
        inference: likewise in inference.
        notes: what a reader of the numbers should know.
    """

    data: dict[str, Any]
    steps: list[dict[str, Any]]
    inference: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def observations(timings: Sequence[Timing], works: Mapping[str, Work]) -> list[Observation]:
    """What the fit may see."""
    return [
        Observation(works[one.workload.name], one.seconds, STEP_WEIGHT if one.workload.kind == STEP else 1.0)
        for one in timings
        if one.workload.use == FIT
    ]


def row(timing: Timing, predicted_s: float | None, use: str) -> dict[str, Any]:
    """One network at one batch size; without a prediction where the file has nothing to predict it from."""
    return {
        "network": timing.workload.name.removeprefix("inference: "),
        "use": use,
        "measured_s": timing.seconds,
        "spread": timing.spread,
        "predicted_s": predicted_s,
        "error": None if predicted_s is None else predicted_s / timing.seconds - 1,
    }


def checked(name: str, data: Mapping[str, Any]) -> Board:
    """The device as it will be read back from its file.

    Raises:
        UserError: the file would not be valid.
    """
    document = Document.parse(dump(dict(data)), name)
    return validate(KINDS[data["kind"]], plain(document.data), document)


def notes_of(timings: Sequence[Timing], machine: Host) -> list[str]:
    """What a reader of the numbers should know."""
    notes = []
    least = min(one.share for one in timings)
    if least < _BUSY:
        notes.append(
            f"other programs were at work: at worst the measuring had {least:.0%} of a core. On one thread "
            "seconds are CPU time, which leaves that out, but caches and memory were shared"
        )
    if machine.why_no_power:
        notes.append(f"power is unknown: {machine.why_no_power}")
    return notes
