"""EMNIST: handwritten letters and digits, 28 x 28 grey (Cohen, Afshar, Tapson and van Schaik 2017)."""

import string
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from pydantic import Field

from edgefl.data.dataset import Source, Spec
from edgefl.data.readers import known
from edgefl.data.sources import Dataset
from edgefl.protocol.vision import torchvision

# Letters whose lower case is merged with the upper case are left out of the last.
_BALANCED = string.digits + string.ascii_uppercase + "abdefghnqrt"
# split -> classes, training and test images (Table II)
_SPLITS = {
    "balanced": (_BALANCED, 112_800, 18_800),
    "byclass": (string.digits + string.ascii_letters.swapcase(), 697_932, 116_323),
    "digits": (string.digits, 240_000, 40_000),
    "letters": (string.ascii_lowercase, 124_800, 20_800),
}


class Params(Dataset):
    split: Literal["balanced", "byclass", "digits", "letters"] = Field(
        "letters",
        description="letters: 26 classes; byclass: 62 of unequal sizes; balanced: 47; digits: 10",
    )

    def build(self) -> Source:
        names, train, test = _SPLITS[self.split]
        spec = Spec(f"emnist-{self.split}", (1, 28, 28), train, test, tuple(names))

        def dataset(root: Path, **how: Any) -> Any:
            found = torchvision().datasets.EMNIST(root, self.split, **how)
            # NIST's files hold images column by column, and count letters from 1.
            return SimpleNamespace(data=found.data.mT, targets=found.targets - int(self.split == "letters"))

        return known(spec, "EMNIST", dataset)
