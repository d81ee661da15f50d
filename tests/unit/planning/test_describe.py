"""How ``edgefl show`` describes parameters."""

from typing import Annotated

import pytest
from pydantic import Field

from edgefl.core import catalogue
from edgefl.core.fleet import Failures, Fleet
from edgefl.core.params import Component
from edgefl.core.scenario import LocalTraining, Server, TaskSpec, Until
from edgefl.core.units import Bytes, Seconds
from edgefl.planning import describe as describe_module
from edgefl.planning.describe import describe
from edgefl.planning.schema import schema


@pytest.mark.parametrize("kind", ["optimizers", "samplers", "schedules", "policies", "selectors", "methods"])
def test_every_parameter_has_a_meaning(kind):
    for name in catalogue.entries(kind):
        assert all(meaning for *_, meaning in describe(kind, name).rows), name


class Params(Component):
    """Quantities of two kinds, one of them with a description of its own."""

    room: Annotated[Bytes, Field(gt=0, description="how much")] = 20_500
    wait: Seconds = 90.0
    needed: Bytes
    share: float = 0.5
    exact: bool = False


def test_defaults_are_written_as_in_a_scenario():
    """Each quantity in its own unit, records in YAML, and true, not True."""
    records = [row[:2] for row in describe("policy", "fedbuff").rows]
    assert ("staleness", "{shape: polynomial, a: 0.5, b: 4.0}") in records
    rows = describe_module.parameters(Params)
    assert [row[:2] for row in rows] == [
        ("room", "20.5 kB"),
        ("wait", "1 min 30 s"),
        ("needed", "required"),
        ("share", "0.5"),
        ("exact", "false"),
    ]


def test_the_schema_describes_every_key():
    found = schema()
    sections = [
        found,
        *(found["$defs"][one.__name__] for one in (TaskSpec, LocalTraining, Server, Until, Fleet, Failures)),
    ]
    assert all(key["description"] for one in sections for key in one["properties"].values())
