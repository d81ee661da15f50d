"""Data: where images come from, how they are split among clients, and how batches are cut.

``sources``, ``partitions`` and ``augmentations`` hold one file each for a dataset, a partition and an
augmentation; the names here are those that a dataset's file needs. ``federation.federate`` joins a dataset
and a partition; ``batching.Together`` gives clients their training batches.
"""

from edgefl.data.dataset import Arrays, Labels, Source, Spec, stratified
from edgefl.data.images import decoded_once

__all__ = ["Arrays", "Labels", "Source", "Spec", "decoded_once", "stratified"]
