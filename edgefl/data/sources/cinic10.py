"""CINIC-10: CIFAR-10 and ImageNet's photographs of its classes, 32 x 32 (Darlow et al. 2018)."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import Field

from edgefl.data.dataset import Arrays, Source
from edgefl.data.images import decoded_pictures
from edgefl.data.readers import unpacked
from edgefl.data.sources import Dataset, cifar10
from edgefl.data.sources.folder import tree

_PART = 90_000
_RECIPE = "unpack there, from https://datashare.ed.ac.uk/handle/10283/3192, train/, valid/ and test/"


class Params(Dataset):
    validation: Literal["train", "leave"] = Field(
        description="train: it is trained on, too, which makes 180,000 images; leave: it is not used"
    )

    def build(self) -> Source:
        """Training and test images, each part in a folder of class folders."""
        parts = ("train", "valid") if self.validation == "train" else ("train",)
        train_size = len(parts) * _PART
        spec = replace(cifar10.SPEC, name="cinic10", train_size=train_size, test_size=_PART, mean=(), std=())

        def read(root: Path) -> Arrays:
            classes = [f"{part}/{name}" for part in parts for name in spec.class_names]
            train, test = tree(root, classes), tree(root / "test", spec.class_names)
            train = replace(train, labels=train.labels % spec.classes)
            return decoded_pictures(train, test, spec.shape, fit=False)

        return unpacked(
            spec,
            read,
            below=("cinic10", "cinic-10", "CINIC-10"),
            parts=("train", "valid", "test"),
            recipe=_RECIPE,
        )
