"""docs/scenarios.md lists every key of a scenario, its default and its meaning, as the records have them."""

from __future__ import annotations

from typing import Any

import pytest
from pages import check, table
from pydantic import BaseModel

from edgefl.core.fleet import Cell, Failures, Fleet, FleetMember
from edgefl.core.optimizers.sgd import Params as Sgd
from edgefl.core.scenario import (
    Checkpointing,
    Evaluation,
    Public,
    Scenario,
    Server,
    Tariffs,
    TaskSpec,
    Until,
    Wire,
)
from edgefl.core.training import LocalTraining
from edgefl.core.users import Users
from edgefl.data.sources.parquet import Params as OwnImages
from edgefl.planning.schema import schema

RECORDS: dict[str, type[BaseModel]] = {
    "the file": Scenario,
    "task": TaskSpec,
    "task.public": Public,
    "local": LocalTraining,
    "local.optimizer": Sgd,
    "server": Server,
    "server.until": Until,
    "evaluate": Evaluation,
    "wire": Wire,
    "checkpoint": Checkpointing,
    "costs": Tariffs,
    "fleet": Fleet,
    "fleet.members": FleetMember,
    "fleet.cells": Cell,
    "fleet.users": Users,
    "fleet.failures": Failures,
    "images": OwnImages,
}


def written(value: Any) -> str:
    """A default as a table has it."""
    if isinstance(value, tuple):
        return f"`[{', '.join(value)}]`"
    if isinstance(value, Sgd):
        return f"`{{name: sgd, lr: {value.lr}}}`"
    if isinstance(value, BaseModel):
        return f"`{value.name}`" if hasattr(value, "name") else "see below"
    if value in ("", {}):
        return "empty"
    return "null" if value is None else f"`{str(value).lower() if value is False else value}`"


def rows(record: type[BaseModel]) -> list[tuple[str, str, str]]:
    """Each key, its default and its meaning."""
    described = record.model_json_schema()["properties"]
    return [
        (
            f"`{key}`",
            "required" if field.is_required() else written(field.get_default(call_default_factory=True)),
            described[key]["description"].removesuffix("."),
        )
        for key, field in record.model_fields.items()
        if key != "name" or record is Scenario
    ]


@pytest.mark.parametrize("mark", RECORDS)
def test_table_is_the_record(mark, request):
    """A section's table is made of its record."""
    check("scenarios.md", mark, table(("key", "default", "meaning"), rows(RECORDS[mark])), request.config)


def test_editors_are_told_the_same():
    """The JSON Schema of scenarios describes every key of the file and of its sections."""
    found = schema()
    sections = [
        found,
        *(found["$defs"][one.__name__] for one in (TaskSpec, LocalTraining, Server, Until, Fleet, Failures)),
    ]
    assert all(key["description"] for one in sections for key in one["properties"].values())
