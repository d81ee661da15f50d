"""Data: where images come from, how they are split among clients, and how batches are cut.

``sources``, ``partitions`` and ``augmentations`` hold one file each for a dataset, a partition and an
augmentation. ``federate`` joins a dataset and a partition; ``batches`` gives a client its training batches.
"""

from edgefl.data.batching import Augment, Together, batches, normalised, prepared
from edgefl.data.federation import (
    Federation,
    Split,
    assumed_labels,
    drawn_public,
    federate,
    public_images,
    sized,
)
from edgefl.data.image_cache import decoded_once
from edgefl.data.source import Labels, Source
from edgefl.data.spec import Arrays, Spec, channels_last, stratified

__all__ = [
    "Arrays",
    "Augment",
    "Federation",
    "Labels",
    "Source",
    "Spec",
    "Split",
    "Together",
    "assumed_labels",
    "batches",
    "channels_last",
    "decoded_once",
    "drawn_public",
    "federate",
    "normalised",
    "prepared",
    "public_images",
    "sized",
    "stratified",
]
