"""CINIC-10: CIFAR-10 and ImageNet's photographs of its classes, 32 x 32 (Darlow et al. 2018)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from edgefl.data.dataset import Arrays, Source, Spec
from edgefl.data.pictures import decoded_pictures, tree
from edgefl.data.readers import found_in
from edgefl.data.sources import Dataset, cifar10

_PART = 90_000
_FOLDERS = ("cinic10", "cinic-10", "CINIC-10")
_RECIPE = "unpack there, from https://datashare.ed.ac.uk/handle/10283/3192, train/, valid/ and test/"


class Params(Dataset):
    """What its validation part is for."""

    validation: Literal["train", "leave"] = Field(
        description="train: it is trained on, too, which makes 180,000 images; leave: it is not used"
    )

    def build(self) -> Source:
        """Training and test images, each part in a folder of class folders."""
        parts = ("train", "valid") if self.validation == "train" else ("train",)
        spec = Spec(
            "cinic10",
            cifar10.SPEC.shape,
            cifar10.SPEC.classes,
            len(parts) * _PART,
            _PART,
            cifar10.SPEC.class_names,
        )

        def load(folder: Path | None, *, download: bool) -> Arrays:  # noqa: ARG001 - an archive of 650 MB
            root = found_in(spec.name, folder, _FOLDERS, ("train", "valid", "test"), _RECIPE)
            classes = [f"{part}/{name}" for part in parts for name in spec.class_names]
            train, test = tree(root, classes), tree(root / "test", spec.class_names)
            train = replace(train, labels=train.labels % spec.classes)
            return decoded_pictures(train, test, spec.shape, fit=False)

        return Source(spec, load, "CINIC-10")
