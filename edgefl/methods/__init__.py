"""Federated methods, one file each: the paper in its docstring, and ``Params``."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from edgefl.core.params import Component
from edgefl.protocol import Method, Site


class MethodParams(Component):
    """The parameters of a method, among them the ``base`` that it changes, if it has one.

    Attributes:
        NEUTRAL: parameters at which it equals its base bit for bit on the same seeds, or FedAvg if it has
            none or they name another; None if there are no such parameters.
    """

    NEUTRAL: ClassVar[Mapping[str, Any] | None] = None

    @abstractmethod
    def build(self, site: Site) -> Method:
        """The method at a site; ``site.base`` builds the one that the parameter ``base`` names."""

    @property
    def neutral(self) -> Mapping[str, Any] | None:
        """The parameters, its base's among them, at which it equals FedAvg; None if there are none."""
        own, base = self.NEUTRAL, getattr(self, "base", None)
        if own is None or base is None or "base" in own:
            return own
        below = base.neutral
        return None if below is None else {**own, "base": {**base.model_dump(mode="json"), **below}}
