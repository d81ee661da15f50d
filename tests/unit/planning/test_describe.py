"""How ``edgefl show`` describes parameters."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from edgefl.core import catalogue
from edgefl.core.params import Strict
from edgefl.core.units import Bytes, Seconds
from edgefl.planning import describe as describe_module
from edgefl.planning.describe import describe


def test_quantities_are_shown_with_their_units():
    """An engine's bytes, as they would be written in a scenario; other numbers as they are."""
    _, _, rows, heads = describe("engine", "ray")
    assert heads[:2] == ("parameter", "default")
    defaults = {name: default for name, default, *_ in rows}
    assert (defaults["state_memory"], defaults["memory"]) == ("1 GB", "2 GB")
    assert (defaults["group"], defaults["workers"], defaults["inner"]) == ("64", "null", "loop")


def test_defaults_are_written_as_in_a_scenario():
    """Records in YAML, and true, not True."""
    rows = describe("policy", "fedbuff").rows
    assert ("staleness", "{shape: polynomial, a: 0.5, b: 4.0}") in [row[:2] for row in rows]
    assert ("nesterov", "false") in [row[:2] for row in describe("optimizer", "sgd").rows]


@pytest.mark.parametrize("kind", ["optimizers", "samplers", "schedules", "policies", "selectors", "methods"])
def test_every_parameter_has_a_meaning(kind):
    """Of everything that is shipped."""
    for name in catalogue.entries(kind):
        assert all(meaning for *_, meaning in describe(kind, name).rows), name


@pytest.mark.parametrize("kind", ["availability", "samplers", "speed"])
def test_no_description_writes_powers_as_python_does(kind):
    """Two stars look like markup for bold."""
    assert not [name for name, entry in catalogue.entries(kind).items() if "**" in catalogue.summary(entry)]


class Params(Strict):
    """Quantities of two kinds, one of them with a description of its own."""

    room: Annotated[Bytes, Field(gt=0, description="how much")] = 20_500
    wait: Seconds = 90.0
    needed: Bytes
    share: float = 0.5


def test_each_quantity_has_its_own_unit():
    """Whatever describes the parameter."""
    rows = describe_module._parameters(Params)  # noqa: SLF001
    assert [row[:2] for row in rows] == [
        ("room", "20.5 kB"),
        ("wait", "1 min 30 s"),
        ("needed", "required"),
        ("share", "0.5"),
    ]
