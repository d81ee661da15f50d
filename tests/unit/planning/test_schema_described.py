"""The JSON Schema that editors read describes every key of a scenario."""

from __future__ import annotations

from edgefl.core.fleet import Failures, Fleet
from edgefl.core.scenario import Server, TaskSpec, Until
from edgefl.core.training import LocalTraining
from edgefl.planning.schema import schema


def test_every_key_is_described():
    """Those of the file and of its sections."""
    found = schema()
    sections = [
        found,
        *(found["$defs"][one.__name__] for one in (TaskSpec, LocalTraining, Server, Until, Fleet, Failures)),
    ]
    assert all(key["description"] for one in sections for key in one["properties"].values())
