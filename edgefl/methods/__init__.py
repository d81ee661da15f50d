"""Federated methods, one file each: the paper in its docstring, and ``Params``."""

from __future__ import annotations

from abc import abstractmethod

from edgefl.core.params import Component
from edgefl.protocol import Method, Site


class MethodParams(Component):
    """The parameters of a method, among them the ``base`` that it changes, if it has one."""

    @abstractmethod
    def build(self, site: Site) -> Method:
        """The method at a site; ``site.base`` builds the one that the parameter ``base`` names."""
