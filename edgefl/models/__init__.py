"""Models, one family a file."""

from abc import abstractmethod

from edgefl.core.params import Component
from edgefl.protocol import Net


class ModelParams(Component):
    """The parameters of a model."""

    @abstractmethod
    def build(self, shape: tuple[int, int, int], classes: int) -> Net:
        """The model of samples of ``shape``, (channels, height, width), in so many classes."""
