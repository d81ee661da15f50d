"""How ``edgefl show`` describes parameters."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from edgefl.core import catalogue
from edgefl.core.fleet import Failures, Fleet
from edgefl.core.params import Component
from edgefl.core.scenario import Server, TaskSpec, Until
from edgefl.core.training import LocalTraining
from edgefl.core.units import Bytes, Seconds
from edgefl.planning import describe as describe_module
from edgefl.planning.describe import describe
from edgefl.planning.schema import schema


def test_a_link_shows_between_what_it_changes(tmp_path, monkeypatch):
    (tmp_path / "profiles" / "links").mkdir(parents=True)
    rows = "{down: '0,8e6 5,0 10,0', up: '0,2e6 10,0', latency: '0,0.05 5,0.15 10,0'}"
    text = f"title: A bus\nradio: {{status: unknown, source: s}}\ntrace: {{rows: [{rows}]}}\n"
    (tmp_path / "profiles" / "links" / "bus.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("EDGEFL_PATH", str(tmp_path))
    bus = describe("link", "bus")
    assert bus.text == (
        "A bus\nfollows a trace of 10 s, which repeats, from a random time on: "
        "down 0 bit/s to 8 Mbit/s, up 2 Mbit/s, latency 50 to 150 ms"
    )
    assert bus.rows[0] == ("down", "4 Mbit/s", "derived", "mean over time of the link's trace")


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
