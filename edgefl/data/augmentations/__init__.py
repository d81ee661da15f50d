"""Augmentations, one file each: ``Params`` and ``augment``."""
