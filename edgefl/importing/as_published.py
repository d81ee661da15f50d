"""A device that takes the time that a trace states, whatever the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from edgefl.core import catalogue
from edgefl.core.devices import Board
from edgefl.core.draws import Floats
from edgefl.core.nodes import MOST_BYTES
from edgefl.core.yamls import Document, dump, text_of
from edgefl.importing.assumed import assumed
from edgefl.importing.fedscale import TRAINING_PER_FORWARD
from edgefl.importing.trace import Trace


def device_of(trace: Trace, ms_per_sample: Floats, base: str) -> bytes:
    """The file of a device as fast as the trace's median user.

    Args:
        trace: the trace.
        ms_per_sample: of a forward pass, (users,).
        base: the device whose memory, power and battery it has, which the trace does not say.

    Raises:
        UserError: the base is unknown.
    """
    path = catalogue.find("devices", base, where="--device").path
    below = Document.parse(text_of(path, MOST_BYTES), str(path)).data
    median_ms = float(np.median(ms_per_sample))
    shared = [key for key in Board.model_fields if key in below and key not in {"title", "notes"}]
    record: dict[str, Any] = {
        "title": f"The median user of {trace.kind}, as published",
        "kind": "per-sample",
        "forward_time": _time(median_ms, f"median of users, ms of a forward pass a sample: {trace.cited()}"),
        "training_time": _time(
            TRAINING_PER_FORWARD * median_ms, f"{TRAINING_PER_FORWARD} x forward_time, as FedScale takes it"
        ),
        **{key: assumed(below[key], f"the device {base}") for key in shared},
        "notes": (
            "A sample takes this long whatever the model is, which is how FedScale uses the trace. Memory, "
            f"power and all else that it does not say are {base}'s."
        ),
    }
    return dump(record).encode()


def _time(ms: float, source: str) -> dict[str, str]:
    return {"value": f"{ms:.9g} ms", "status": "derived", "source": source}
