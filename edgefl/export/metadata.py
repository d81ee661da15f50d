"""The metadata of an ONNX file that edgefl exported, as records."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, Json, model_validator

from edgefl.core.errors import UserError
from edgefl.core.params import Positive, Strict
from edgefl.core.validation import validate
from edgefl.core.yamls import Document
from edgefl.export.model import ModelFile

Record = TypeVar("Record", bound=Strict)
# Pixels on a side, and in all: more than any camera has, and an array of them fits into memory.
Side = Annotated[int, Field(ge=1, le=65_535)]
MOST_PIXELS = 10**8


class ImageMetadata(Strict):
    """What a classifier of images takes and gives; but for texts, facts are JSON, see ``build``.

    Attributes:
        shape: (channels, height, width) of an image; 1 or 3 channels.
        class_names: of the classes, in order.
        mean, std: of the training images' pixels in 0 to 1, by channel.
    """

    shape: Json[tuple[Side, Side, Side]]
    class_names: Json[tuple[str, ...]]
    mean: Json[tuple[float, ...]]
    std: Json[tuple[Positive, ...]]

    @model_validator(mode="after")
    def _agree(self) -> ImageMetadata:
        channels, height, width = self.shape
        if channels not in {1, 3}:
            raise ValueError(f"the model takes {channels} channels; images have 1 or 3")
        if height * width > MOST_PIXELS:
            raise ValueError(f"'shape' must not exceed {MOST_PIXELS:,} pixels; got {height} x {width}")
        for key, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != channels:
                raise ValueError(f"{key!r} must have a number for each of {channels} channels")
        return self


class Origin(Strict):
    """The trained model that a file was exported from.

    Attributes:
        run_id: of its run.
        client: the client whose own model it is, or "global".
        version: of the server's state.
    """

    run_id: str
    client: Json[int] | Literal["global"]
    version: Json[int]


def image_metadata(model: ModelFile) -> ImageMetadata:
    """How a model takes images.

    Raises:
        UserError: the metadata lacks it or is damaged; edgefl may not have exported the file.
    """
    return _read(ImageMetadata, model)


def origin(model: ModelFile) -> Origin | None:
    """Where a model comes from; None if the file does not say.

    Raises:
        UserError: the metadata is damaged.
    """
    return _read(Origin, model) if "run_id" in model.facts else None


def _read(record: type[Record], model: ModelFile) -> Record:
    facts: dict[str, Any] = {key: model.facts[key] for key in record.model_fields if key in model.facts}
    missing = [key for key in record.model_fields if key not in facts]
    hint = "use a file that edgefl export wrote"
    if missing:
        what = f"{model.path.name} was not exported by edgefl: its metadata lacks {', '.join(missing)}"
        raise UserError(what, where=str(model.path), hint=hint)
    try:
        return validate(record, facts, Document(str(model.path), facts))
    except UserError as error:
        what = f"{model.path.name} has metadata that edgefl does not write: {error.what}"
        raise UserError(what, where=error.where, hint=hint) from error
