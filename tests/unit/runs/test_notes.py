"""What a user is told of a run before it starts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from edgefl.core import catalogue
from edgefl.runs.group import run_notes

TOLD = [("oort", False, "loss_rms"), ("tiers", False, "loss"), ("oort", True, ""), ("fastest", False, "")]


@pytest.mark.parametrize(("selector", "trains", "told"), TOLD)
def test_a_selection_that_lacks_losses_says_so(selector, trains, told):
    """One line where nothing is trained and the selector reads what training reports."""
    server = SimpleNamespace(selector=catalogue.load("selectors", selector).Params())
    scenario = SimpleNamespace(name="mine", server=server)
    plan = SimpleNamespace(scenario=scenario, refusals=(), clients=range(3))
    planned = SimpleNamespace(plan=plan, learning=SimpleNamespace(measures=()))
    line = f"mine: selection reads {told}, and nothing is trained: it uses its cold-start values"
    assert run_notes(planned, trains=trains) == ([line] if told else [])
