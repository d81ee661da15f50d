"""What datasets of a user's own images share: their parameters, their split and their description."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from edgefl.core.errors import DataError
from edgefl.core.images import Encoded, Form, header
from edgefl.core.notes import note
from edgefl.data.source import Labels
from edgefl.data.sources import Dataset
from edgefl.data.spec import Ints, Spec, stratified

# Of so many images, the sizes are looked up where none is given.
LOOKED_AT = 256
# Independent of a run's seed: every run has the same test images. Any number would do.
_SPLIT_SEED = 2718
TEST_SHARE = 0.2

_Side = Annotated[int, Field(gt=0, le=1024)]


def _absolute(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError("'path' must name a folder")
    try:
        return str(Path(text).expanduser().absolute())
    except RuntimeError as error:  # no such user
        raise ValueError(f"'path' cannot be found: {error}") from error


def _sides(value: Any) -> Any:
    sides = value if isinstance(value, list | tuple) else (value, value)
    whole = all(isinstance(side, int) and not isinstance(side, bool) for side in sides)
    if value is not None and not (whole and len(sides) == 2):  # noqa: PLR2004 - height and width
        raise PydanticCustomError(
            "form", "Input should be {form}", {"form": "a whole number, or a list of height and width"}
        )
    return None if value is None else tuple(sides)


class OwnImages(Dataset):
    """Where the images are, and what they are turned into."""

    path: Annotated[
        str,
        AfterValidator(_absolute),
        Field(description="the folder; relative paths begin at the current directory"),
    ]
    size: Annotated[
        tuple[_Side, _Side] | None,
        BeforeValidator(_sides, json_schema_input_type=_Side | tuple[_Side, _Side] | None),
        Field(description="height and width to resize to, or one number; null: their own, 32 if they differ"),
    ] = None
    channels: Annotated[Literal[1, 3], Field(description="1 for grey, 3 for colour")] = 3
    test_share: Annotated[
        float | None,
        Field(
            gt=0,
            lt=1,
            description="share of each class's images for testing, 0.2 by default; only without a test part",
        ),
    ] = None

    def form(self, some: Iterable[Encoded]) -> Form:
        """What the images are turned into: those of ``some`` say what size all have, where none is given.

        Raises:
            DataError: one of them cannot be read.
        """
        whose = Path(self.path).name or "images"
        size, *others = {self.size} if self.size else {header(image, name)[1:] for name, image in some}
        if others:
            size = 32, 32
            note(f"{whose}: sizes differ, so images become 32 x 32; for others, set task.dataset.size")
        return Form((self.channels, *size), whose, fitted=True, resized=bool(self.size or others))

    def parts(self, labels: Ints) -> tuple[Ints, Ints]:
        """Indices of training and test images where there is no test part: the same ones for every seed.

        Raises:
            DataError: a class has too few images.
        """
        share = TEST_SHARE if self.test_share is None else self.test_share
        return stratified(labels, share, np.random.default_rng(_SPLIT_SEED), least=1)

    def check_parts(self, given: str) -> None:
        """Refuses ``test_share`` where there is a test part.

        Raises:
            DataError: it is set.
        """
        if self.test_share is not None:
            raise DataError(
                f"test_share is set, but the test images are given by {given}",
                where=self.path,
                hint="remove task.dataset.test_share",
            )

    def spec(self, form: Form, names: tuple[str, ...], labels: Labels) -> Spec:
        """The description of the dataset, named after its folder.

        Raises:
            DataError: there are fewer than two classes, or a class has no training images.
        """
        train, test = labels
        if len(names) < 2:  # noqa: PLR2004 - the least that can be told apart
            raise DataError(f"there is only the class {names[0]!r}; at least 2 are needed", where=self.path)
        if not len(test):
            raise DataError("there are no test images", where=self.path)
        counts = np.bincount(train, minlength=len(names))
        if not counts.all():
            raise DataError(f"class {names[int(counts.argmin())]!r} has no training images", where=self.path)
        known = [names, train.tolist(), test.tolist()]
        return Spec(
            name=form.whose,
            shape=form.shape,
            classes=len(names),
            train_size=len(train),
            test_size=len(test),
            class_names=names,
            content=hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32],
        )


def check_divisible(names: tuple[str, ...], labels: Ints, where: str) -> None:
    """Refuses classes that cannot be split into training and test images.

    Raises:
        DataError: a class has a single image.
    """
    counts = np.bincount(labels, minlength=len(names))
    if counts.min() < 2:  # noqa: PLR2004 - one for either part
        raise DataError(
            f"class {names[int(counts.argmin())]!r} has {'one image' if counts.min() else 'no images'}; "
            "at least 2 are needed, one for training and one for testing",
            where=where,
        )


def check_found(path: str) -> Path:
    """The folder.

    Raises:
        DataError: there is none.
    """
    folder = Path(path)
    try:
        found = folder.is_dir()
    except OSError:
        found = False
    if not found:
        raise DataError(
            f"there is no folder {folder.name!r}",
            where=path,
            hint="task.dataset.path must name a folder; relative paths begin at the current directory",
        )
    return folder
