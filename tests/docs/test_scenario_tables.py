"""docs/scenarios.md lists every key of a scenario, with the default that the code has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from edgefl.core.fleet import Cell, Failures, Fleet
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import (
    Checkpoint,
    Engine,
    Evaluate,
    Public,
    Published,
    Scenario,
    Server,
    Task,
    Until,
    Wire,
)
from edgefl.core.training import Local

PAGE = Path(__file__).parents[2] / "docs" / "scenarios.md"

# heading -> the record whose keys its table lists, and those that its text describes
RECORDS: dict[str, tuple[type[BaseModel], frozenset[str]]] = {
    "The file": (Scenario, frozenset()),
    "task": (Task, frozenset()),
    "task.public": (Public, frozenset()),
    "local": (Local, frozenset()),
    "local.optimizer": (Sgd, frozenset({"name", "momentum", "nesterov"})),
    "server": (Server, frozenset()),
    "server.until": (Until, frozenset()),
    "evaluate": (Evaluate, frozenset()),
    "wire": (Wire, frozenset()),
    "engine": (Engine, frozenset()),
    "checkpoint": (Checkpoint, frozenset()),
    "Published figures": (Published, frozenset()),
    "Fleets": (Fleet, frozenset()),
    "cells": (Cell, frozenset()),
    "failures": (Failures, frozenset()),
}


def table_under(heading: str) -> dict[str, str]:
    """Key -> default of the first table under a heading."""
    text = re.split(rf"^#+ {re.escape(heading)}$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    section = re.split(r"^#+ ", text, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", section, flags=re.MULTILINE)
    return {key: default.strip("`") for key, default in rows}


def written(value: Any) -> str:
    """A default as the page writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, Sgd):
        return f"{{name: sgd, lr: {value.lr}}}"
    if isinstance(value, Checkpoint | Engine | Local | Server | Until | Evaluate | Wire | Failures):
        return "see below"
    if isinstance(value, BaseModel):
        return str(value.model_dump()["name"])
    if value == {}:
        return "none"
    return {None: "null", "": "empty"}.get(value, str(value))


@pytest.mark.parametrize("heading", RECORDS)
def test_table_is_the_record(heading):
    """A section's table has the record's keys, no others, with its defaults."""
    record, elsewhere = RECORDS[heading]
    expected = {
        key: "required" if field.is_required() else written(field.get_default())
        for key, field in record.model_fields.items()
        if key not in elsewhere
    }
    assert table_under(heading) == expected
