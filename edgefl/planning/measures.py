"""Measures of a scenario, resolved and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from edgefl.core.components import resolve
from edgefl.core.errors import ScenarioError, UserError
from edgefl.core.params import Component
from edgefl.core.scenario import LearningSpec
from edgefl.core.yamls import Document
from edgefl.protocol import Net, Observation, Row

GLOBAL, PARTICIPANTS, STEPS = "global model", "participants", "local steps"


@dataclass(frozen=True)
class Measure:
    """A measure as the scenario names it, with its parameters, and the line that names it."""

    name: str
    module: ModuleType
    params: Any
    where: str

    @property
    def needs(self) -> Sequence[str]:
        """What there are no rows without: "global model", "participants"; and "local steps"."""
        return tuple(getattr(self.module, "NEEDS", ()))

    @property
    def unit(self) -> str:
        """Of its values: "share", another, or empty."""
        return str(getattr(self.module, "UNIT", ""))

    @property
    def rows(self) -> Callable[[Any, Observation], Iterable[Row]]:
        """The function that measures."""
        function: Callable[[Any, Observation], Iterable[Row]] = self.module.measure
        return function


def measures_of(spec: LearningSpec, document: Document) -> tuple[Measure, ...]:
    """The measures that a scenario asks for, in order.

    Raises:
        UserError: a name or a parameter is wrong.
    """
    asked, path = [*(spec.evaluate.measures or ())], list[str | int](["evaluate", "measures"])
    if spec.evaluate.steps is not None:
        asked.append(Component.model_validate({"name": "local-steps", "every": spec.evaluate.steps}))
    found = []
    for place, component in enumerate(asked):
        module, params = resolve("measures", component, document, [*path, place])
        name = component.name.replace("_", "-")
        found.append(Measure(name, module, params, str(document.place([*path, place]))))
    return tuple(found)


def check_measures(measures: Sequence[Measure], net: Net) -> None:
    """Makes the measures' own checks, which may read files of this machine; of several models, on the first.

    Raises:
        UserError: a parameter does not fit the run.
    """
    for one in measures:
        if not hasattr(one.module, "check"):
            continue
        try:
            one.module.check(one.params, net)
        except UserError as error:
            raise ScenarioError(f"{one.name}: {error.what}", where=one.where, hint=error.hint) from error
