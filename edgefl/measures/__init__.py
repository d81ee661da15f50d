"""Measures of server versions, a file each: a formula, its source, and the rows that it gives."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Literal, TypeAlias

from edgefl.core.params import Component
from edgefl.protocol import Net, Observation, Row

Needs: TypeAlias = Literal["global model", "participants", "local steps"]


class Measure(Component):
    """The parameters of a measure, and what it does.

    Attributes:
        NEEDS: what it has no rows without.
        UNIT: of its values; "share" for those that are shown in percent.
    """

    NEEDS: ClassVar[tuple[Needs, ...]] = ()
    UNIT: ClassVar[str] = ""

    @abstractmethod
    def measure(self, seen: Observation) -> Iterable[Row]:
        """Rows of the version that is evaluated."""

    def check(self, net: Net) -> None:
        """Refuses, before the run, parameters that do not fit the model; raises a ``UserError``."""
