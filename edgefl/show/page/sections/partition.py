"""Which client has how many samples of which class."""

from collections.abc import Sequence

import numpy as np

from edgefl.show.page.frames import Block, Frame, FrameColumn, Plot, Switch, shared
from edgefl.show.page.records import Read, Section, Told, once
from edgefl.store.reader import Reader

# What a picture of clients and classes can show.
_MOST_CELLS, _MOST_CLIENTS = 50_000, 1000
_SQL = "SELECT client, label, samples FROM class_counts"
_DTYPES = dict.fromkeys(("client", "label", "samples"), np.int64)
_COLUMNS = {
    "client": FrameColumn("client"),
    "class": FrameColumn("class"),
    "samples": FrameColumn("samples", "samples"),
}


def section(told: Told, read: Sequence[Block]) -> Section:
    """The data of all runs; those that share theirs share a map."""
    blocks = []
    for runs, one in shared(enumerate(read)):
        blocks.append({"title": once(map(told.run_name, runs)), **one})
    plot = Plot(
        "partition",
        "Class distribution by client",
        "Training samples by client and class. Runs that share their data share the map.",
        "no run says which classes its clients have.",
        "heat",
        Frame(_COLUMNS, blocks),
        x=["class"],
        y=["client"],
        z="samples",
        by=[Switch("title", "Data of", "select")],
        share=True,
        left="more clients are not listed",
    )
    return Section("partition", "Data", [plot])


def read(one: Read) -> Block:
    """Training samples of a run's clients, or of some at even distances; or why there are none."""
    reader: Reader = one.run.reader
    classes = reader.meta["classes"]
    if why := reader.meta["class_counts"]:
        return {"client": [], "class": classes, "samples": [], "left": 0, "notes": {"": f"{why}."}}
    clients = len(one.run.clients.kind)
    listed = max(1, min(_MOST_CLIENTS, _MOST_CELLS // len(classes), clients))
    chosen = np.unique(np.linspace(0, clients - 1, listed).round().astype(np.int64))
    found = reader.arrays(_SQL, **_DTYPES)
    counts = np.zeros((clients, len(classes)), dtype=np.int64)
    counts[found["client"], found["label"]] = found["samples"]
    return {
        "client": chosen.tolist(),
        "class": classes,
        "samples": counts[chosen].tolist(),
        "left": clients - len(chosen),
        "notes": {"": ""},
    }
