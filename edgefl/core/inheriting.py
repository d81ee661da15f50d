"""Files that say what they are like, and then only what differs: fleets and devices."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgefl.core import catalogue
from edgefl.core.errors import UserError, short
from edgefl.core.notes import note
from edgefl.core.overrides import put
from edgefl.core.sourced import UNSOURCED, Record, Sourced, changed
from edgefl.core.yamls import Document

# The source of a number that another device's file has.
TAKEN = re.compile(r"^(taken from ([^\s:]+)): .*")


def inherited(kind: str, own: Document, where: str = "") -> Document:
    """A profile or a device merged over the one that it names under "like", at ``where`` if that is given.

    Each key of a profile replaces the other's; mappings of devices are merged, and null takes a key away.
    """
    layers, below, deep = [own], list[str](), kind == "devices"
    while (parent := layers[-1].data.get("like")) is not None:
        name, where = str(parent), where if where and not below else layers[-1].place(["like"])
        if name in below:
            cycle = " -> ".join([*below, name])
            raise UserError(f"{kind} inherit from each other in a cycle: {cycle}", where=where)
        below.append(name)
        layers.append(Document.read(catalogue.find(kind, name, where=where).path))
    merged = layers.pop()
    for layer in reversed(layers):
        # Titles and notes are said of one device alone.
        merged = _over(layer, merged.without("title", "notes") if deep else merged, deep=deep)
    return replace(own, data=merged.data, places=merged.places).without("like")


def _over(own: Document, base: Document, *, deep: bool) -> Document:
    """A mapping over another: each key replaces the other's; if ``deep``, mappings but numbers are merged."""
    known = base.inside() if deep else {}
    for key, part in own.inside().items():
        found, below = part, known.get(key)
        if deep and part.data is None:
            base = base.without(key)
            continue
        if below and _is_number(part.data) and isinstance(below.data, dict) and "capacity" in below.data:
            # A battery's number alone is its capacity.
            found = put(below, ["capacity"], part)
        elif below and not (_is_number(part.data) or _is_number(below.data)):
            found = _over(part, below, deep=True)
        base = put(base, [key], found)
    return base


def _is_number(value: Any) -> bool:
    """Whether it is a value, or a number with its source, which is replaced as a whole."""
    return not isinstance(value, dict) or value.keys() <= Sourced.model_fields.keys()


def attributed(record: Record, document: Document, *, taken: bool = False) -> Record:
    """A record whose numbers without a source name their file, with a note on those of this one.

    If ``taken``, those from other devices' files are assumed: measured there, they are not this one's.
    """
    own = list[str]()

    def named(key: str, number: Sourced[Any]) -> Sourced[Any]:
        file, _ = document.written(key.split("."))
        status, source, is_own = number.status, number.source, file == document.file
        if source == UNSOURCED:
            source = f"{UNSOURCED} in {Path(file).name}"
            if is_own:
                own.append(key)
        if taken and not is_own:
            status = status if status == "unknown" else "assumed"
            source = f"taken from {Path(file).stem}: {source}"
        if source == number.source:
            return number
        return number.model_copy(update={"status": status, "source": source})

    record = changed(record, named)
    if own:
        what = f"{Path(document.file).name}: without a source, and so assumed: {short(', '.join(own))}"
        note(f"{what}; state one as {{value: NUMBER, status: measured, source: ...}}")
    return record
