"""CINIC-10: CIFAR-10 and ImageNet's photographs of its classes, 32 x 32 (Darlow et al. 2018)."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.core.images import Form, files_decoded
from edgefl.data.image_cache import Decoded, decoded_once
from edgefl.data.image_folders import listed
from edgefl.data.readers import found_in
from edgefl.data.source import Source
from edgefl.data.sources import Dataset, cifar10
from edgefl.data.spec import Arrays, Spec

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

        def load(folder: Path | None, *, download: bool) -> Decoded:  # noqa: ARG001 - an archive of 650 MB
            root = found_in(spec.name, folder, _FOLDERS, ("train", "valid", "test"), _RECIPE)
            *train, test = (listed(root / part, spec.class_names) for part in (*parts, "test"))
            form = Form(spec.shape, spec.name)

            def decode() -> Arrays:
                x = np.concatenate([files_decoded(one.files, form) for one in train])
                y = np.concatenate([one.labels for one in train])
                return Arrays(x, y, files_decoded(test.files, form), test.labels)

            files = [file for one in (*train, test) for file in one.files]
            return decoded_once(
                files, {"layout": "cinic10", "parts": [len(one.files) for one in train]}, decode
            )

        return Source(spec, load, "CINIC-10")
