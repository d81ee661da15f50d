"""Datasets, one file each."""

from abc import abstractmethod

from edgefl.core.params import Component
from edgefl.data.dataset import Source


class Dataset(Component):
    """The parameters of a dataset."""

    @abstractmethod
    def build(self) -> Source:
        """What is known without reading images, and what reads them."""
