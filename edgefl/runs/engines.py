"""Checks the engine that a scenario names, and starts it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import torch

from edgefl.compute.job import Engine
from edgefl.core import catalogue
from edgefl.core.components import resolve
from edgefl.core.drafts import Draft, placed
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.host import cores
from edgefl.core.params import Component
from edgefl.core.user_code import user_code
from edgefl.core.yamls import Document
from edgefl.runs.auto import choose
from edgefl.runs.context import Context

NULL, AUTO = "null", "auto"
PINNED = "EDGEFL_ENGINE"


@dataclass(frozen=True)
class EngineOptions:
    """The engine that a scenario names.

    Attributes:
        component: its name and parameters, as given.
        module: its module.
        params: its parameters, validated.
        why: why this one, in words.
    """

    component: Component
    module: ModuleType
    params: Any
    why: str = "as asked"

    @property
    def trains(self) -> bool:
        """Whether anything is trained."""
        return self.component.name != NULL

    def written(self) -> dict[str, Any]:
        """The name and all parameters, as plain data."""
        return self.component.completed(self.params).model_dump()

    @property
    def device(self) -> torch.device:
        """The device that trains."""
        return _device(self.params.place)


@placed
@user_code()
def engine_options(draft: Draft) -> EngineOptions:
    """The scenario's engine; for ``auto`` the null engine, where clients have no data.

    Raises:
        UserError: its name, a parameter or the device is wrong, or its own check fails.
    """
    options = checked_engine(draft.scenario.engine, draft.document, ["engine"])
    if draft.scenario.task.samples is None or not options.trains:
        return options
    if draft.scenario.engine.name == AUTO:
        return _checked(Component(name=NULL), Document("auto's choice", {}), [])
    raise ScenarioError(
        f"with task.samples clients have no data, and the engine {options.component.name!r} trains",
        where=str(draft.document.place(["task", "samples"])),
        hint="use --engine null, for the clock alone, or remove task.samples",
    )


def checked_engine(component: Component, document: Document, path: Sequence[str | int]) -> EngineOptions:
    """An engine that can work here.

    Args:
        component: its name and parameters.
        document: where they come from.
        path: their place there.

    Raises:
        UserError: the name, a parameter or the device is wrong, or the engine's own check fails.
    """
    options = _checked(component, document, path)
    pinned = os.environ.get(PINNED)
    if options.component.name == AUTO and pinned:
        options = _pinned(pinned, options.component)
    if options.trains:
        _ = options.device
    if hasattr(options.module, "check"):
        options.module.check(options.params)
    return options


def _pinned(name: str, auto: Component) -> EngineOptions:
    """A named engine, with the parameters that it shares with auto."""
    module = catalogue.load("engines", name, where=PINNED)
    known = {key: value for key, value in auto.params.items() if key in module.Params.model_fields}
    options = _checked(Component(name=name, **known), Document(PINNED, {}), [])
    return replace(options, why=f"named by {PINNED}")


@dataclass(frozen=True)
class Started:
    """An engine that is ready to train.

    Attributes:
        engine: the engine.
        line: one line for users: what trains, why, and in how many processes.
        chosen: its name and all parameters.
        facts: what ``host.json`` says about it.
        trainer: what a result's last bits depend on: the family of engines, its groups, the processor's kind.
    """

    engine: Engine
    line: str
    chosen: dict[str, Any]
    facts: dict[str, Any]
    trainer: dict[str, Any]


def started(options: EngineOptions, context: Context) -> Started:
    """The engine for a run, ready to train.

    Raises:
        UserError: the engine cannot work here.
    """
    facts: dict[str, Any] = {}
    why = options.why
    if options.component.name == AUTO:
        choice = choose(context, options.params)
        why, facts = choice.why, {"auto": choice.facts()}
        options = _checked(choice.component, Document("auto's choice", {}), [])
    engine: Engine = options.module.build(options.params, context)
    chosen = options.written()
    device = context.builder.device
    facts = {**chosen, "device": str(device), **facts}
    return Started(engine, _line(chosen, why), chosen, facts, _trainer(chosen, device))


def _trainer(chosen: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    family = chosen.get("inner", chosen["name"])
    groups = {key: chosen[key] for key in ("group", "memory")} if family == "vmapped" else {}
    return {"family": family, **groups, "device": device.type}


def _line(chosen: Mapping[str, Any], why: str) -> str:
    """What trains, why, and where, such as "engine: loop (as asked), 1 process"."""
    workers = chosen.get("workers", 1) or (cores() if chosen["name"] == "processes" else None)
    number = "a worker for each CPU of the cluster" if workers is None else f"{workers} process"
    inner = chosen.get("inner")
    what = f"{inner} in {chosen['name']}" if inner else chosen["name"]
    return f"engine: {what} ({why}), {number}{'es' * ((workers or 1) > 1)}"


def _checked(component: Component, document: Document, path: Sequence[str | int]) -> EngineOptions:
    return EngineOptions(component, *resolve("engines", component, document, path))


def _device(name: str) -> torch.device:
    cuda = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if cuda else "cpu")
    device = torch.device(name)
    if device.type == "cuda" and (not cuda or (device.index or 0) >= torch.cuda.device_count()):
        raise UserError(
            f"unknown device {name}",
            where="engine.device",
            hint=f"torch sees {torch.cuda.device_count()} CUDA devices; use cpu",
        )
    return device
