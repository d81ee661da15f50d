"""From an engine's name in a scenario to one at work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from ruamel.yaml.comments import CommentedMap

from edgefl.compute.job import Engine
from edgefl.core import catalogue
from edgefl.core.components import resolve
from edgefl.core.errors import UserError
from edgefl.core.params import Component
from edgefl.core.scenario import Draft
from edgefl.core.yamls import Document
from edgefl.runs.auto import choose
from edgefl.runs.context import Context

NULL, AUTO = "null", "auto"
PINNED = "EDGEFL_ENGINE"


@dataclass(frozen=True)
class Wanted:
    """The engine that a scenario asks for.

    Attributes:
        component: its name and parameters, as given.
        module: the file that it names.
        params: its parameters, validated.
    """

    component: Component
    module: ModuleType
    params: Any

    @property
    def trains(self) -> bool:
        """Whether anything is trained."""
        return self.component.name != NULL

    @property
    def device(self) -> torch.device:
        """The device that trains."""
        return _device(self.params.place)


def wanted_of(draft: Draft) -> Wanted:
    """The scenario's engine.

    Raises:
        UserError: its name, a parameter or the device is wrong, or it says that it cannot work here.
    """
    found = _checked(draft.scenario.engine, draft.document, ["engine"])
    pinned = os.environ.get(PINNED)
    if found.component.name == AUTO and pinned:
        found = _pinned(pinned, found.component)
    if found.trains:
        _ = found.device
    if hasattr(found.module, "check"):
        found.module.check(found.params)
    return found


def _pinned(name: str, auto: Component) -> Wanted:
    """The engine of a name, with those of auto's parameters that it has."""
    module = catalogue.load("engines", name, where=PINNED)
    known = {key: value for key, value in auto.params.items() if key in module.Params.model_fields}
    return _checked(Component(name=name, **known), Document(PINNED, CommentedMap()), [])


def started(wanted: Wanted, context: Context) -> tuple[Engine, dict[str, Any]]:
    """The engine for a run, ready to train, and what ``host.json`` says about it.

    Raises:
        UserError: the engine cannot work here.
    """
    facts: dict[str, Any] = {}
    if wanted.component.name == AUTO:
        choice = choose(context, wanted.params)
        wanted, facts = (
            _checked(choice.component, Document("auto's choice", CommentedMap()), []),
            choice.facts,
        )
    engine: Engine = wanted.module.build(wanted.params, context)
    chosen = wanted.component.completed(wanted.params).model_dump()
    return engine, {**chosen, "device": str(context.builder.device), **facts}


def _checked(component: Component, document: Document, path: Sequence[str | int]) -> Wanted:
    return Wanted(component, *resolve("engines", component, document, path))


def _device(name: str) -> torch.device:
    cuda = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if cuda else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (not cuda or (device.index or 0) >= torch.cuda.device_count()):
        raise UserError(
            f"there is no device {name}",
            where="engine.device or --device",
            hint=f"torch sees {torch.cuda.device_count()} CUDA devices; or use cpu",
        )
    return device
