"""Checks the engine that a scenario names, and starts it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from edgefl.compute.job import Engine
from edgefl.core import catalogue
from edgefl.core.components import component as component_of
from edgefl.core.drafts import Draft, placed
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.host import cores
from edgefl.core.params import Component
from edgefl.core.yamls import RESOLVED, Document
from edgefl.runs.auto import choose
from edgefl.runs.context import Context

NULL, AUTO = "null", "auto"
PINNED = "EDGEFL_ENGINE"


@dataclass(frozen=True)
class EngineOptions:
    """The engine that a scenario names: its name and parameters, and why this one, in words."""

    params: Any
    why: str = "as asked"

    @property
    def trains(self) -> bool:
        return bool(self.params.TRAINS)

    def written(self) -> dict[str, Any]:
        """The name and all parameters, as plain data."""
        written: dict[str, Any] = self.params.model_dump(mode="json")
        return written

    @property
    def device(self) -> torch.device:
        return _device(self.params.device)


@placed
def engine_options(draft: Draft) -> EngineOptions:
    """The scenario's engine; for ``auto`` the null engine, where clients have no data.

    Raises:
        UserError: its name, a parameter or the device is wrong, or its own check fails.
    """
    options = checked_engine(draft.scenario.engine)
    if draft.scenario.task.samples is None or not options.trains:
        return options
    if draft.scenario.engine.name == AUTO:
        return EngineOptions(_chosen(NULL))
    raise ScenarioError(
        f"with task.samples clients have no data, and the engine {options.params.name!r} trains",
        where=draft.document.place(["task", "samples"]),
        hint="use --engine null, for the clock alone, or remove task.samples",
    )


def checked_engine(component: Component) -> EngineOptions:
    """An engine that can work here.

    Raises:
        UserError: the device is wrong, or the engine's own check fails.
    """
    options = EngineOptions(component)
    pinned = os.environ.get(PINNED)
    if options.params.name == AUTO and pinned:
        options = _pinned(pinned, options.params)
    if options.trains:
        _ = options.device
    options.params.check()
    return options


def _pinned(name: str, auto: Component) -> EngineOptions:
    """A named engine, with the parameters that it shares with auto."""
    shared = auto.model_fields_set & set(catalogue.load("engines", name, where=PINNED).Params.model_fields)
    known = {key: value for key, value in auto.model_dump(mode="json").items() if key in shared}
    return EngineOptions(_chosen({**known, "name": name}, PINNED), f"named by {PINNED}")


@dataclass(frozen=True)
class StartedEngine:
    """An engine that is ready to train.

    Attributes:
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


def started(options: EngineOptions, context: Context) -> StartedEngine:
    """The engine for a run, ready to train.

    Raises:
        UserError: the engine cannot work here.
    """
    facts: dict[str, Any] = {}
    why = options.why
    if options.params.name == AUTO:
        choice = choose(context, options.params)
        why, facts = choice.why, {"auto": choice.facts()}
        options = EngineOptions(_chosen(choice.engine))
    engine: Engine = options.params.build(context)
    chosen = options.written()
    device = context.builder.device
    facts = {**chosen, "device": str(device), **facts}
    return StartedEngine(engine, _line(chosen, why), chosen, facts, _trainer(chosen, device))


def _trainer(chosen: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    family = chosen.get("inner", chosen["name"])
    groups = {key: chosen[key] for key in ("group", "memory")} if family == "vmapped" else {}
    return {"family": family, **groups, "device": device.type}


def _line(chosen: Mapping[str, Any], why: str) -> str:
    """What trains, why, and where, such as "engine: loop (as asked), 1 process"."""
    in_one = 1 if chosen["name"] not in {"processes", "ray"} else None
    workers = chosen.get("workers", in_one) or (cores() if chosen["name"] == "processes" else None)
    number = "a worker for each CPU of the cluster" if workers is None else f"{workers} process"
    inner = chosen.get("inner")
    what = f"{inner} in {chosen['name']}" if inner else chosen["name"]
    return f"engine: {what} ({why}), {number}{'es' * ((workers or 1) > 1)}"


def _chosen(engine: Any, by: str = "auto's choice") -> Any:
    """An engine that no scenario names, by its name and resolved parameters."""
    return component_of("engines", engine, Document(by, {}, context=RESOLVED))


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
